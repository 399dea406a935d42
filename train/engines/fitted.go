// The trainer of learners that are fitted to all bags at once. Its reports are like those of the trainers that run
// steps.

package engines

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/measure"
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/miplgp"
	"github.com/miplc/miplc/train/plaggd"
)

// fitter is the trainer that fits learners and writes no checkpoints. Its choice is empty for learners that use no
// engine.
type fitter struct{ *Choice }

// CheckFittedDevice returns an error with a position in the spec if its learner cannot use a requested
// device.
func CheckFittedDevice(spec *language.Spec, device string) error {
	if !spec.Fitted() || device == "" || device == CPU {
		return nil
	}
	kind := spec.Learner.Kind
	return spec.AddSource(diag.Errorf(kind.Pos, "learner %s is fitted on the CPU and cannot use the device %s", kind.V,
		device).
		WithNote("leave out --device, or use --device %s", CPU))
}

// Train implements train.Trainer. It fits one learner after the other.
func (t fitter) Train(ctx context.Context, trials []*train.Trial, o train.Options,
	done func(i int, out train.Outcome)) {
	for i, trial := range trials {
		report, err := t.one(ctx, trial, o.ObserverOrSilent())
		done(i, train.Outcome{Report: report, Err: err})
	}
}

// one fits a learner.
func (t fitter) one(ctx context.Context, trial *train.Trial, observer train.Observer) (*train.Report, error) {
	own, err := *trial, error(nil)
	if own.Data, err = trial.Data.Reshape(trial.Program.Signature.Instance); err != nil {
		return nil, err
	}
	if err := own.Check(); err != nil {
		return nil, err
	}
	f := &fitLearner{fitter: t, observer: observer}
	f.Record = train.Record{Trial: &own, Epochs: own.Program.Spec.Train.Epochs.V, Weights: train.InitialWeights(own.Data)}
	report, err := f.run(ctx)
	if err == nil && trial.Log != "" {
		err = train.WriteMetrics(trial.Log, report.Metrics)
	}
	return report, err
}

// fitLearner is the state of the fit of one learner.
type fitLearner struct {
	train.Record
	fitter
	model          train.FittedModel
	observer       train.Observer
	began, last    time.Time
	disambiguation *float64
}

// run fits the learner and measures its predictions.
func (f *fitLearner) run(ctx context.Context) (*train.Report, error) {
	f.began, f.last = time.Now(), time.Now()
	learner := f.Program.Spec.Learner.Kind.V
	f.observer.Begin(train.Plan{Name: f.Program.Spec.Name.V, Trials: 1, Learner: learner, Epochs: f.Epochs,
		Engine: f.Engine, Device: f.Device, Reason: f.Reason, TrainBags: len(f.Split.Train),
		TestBags: len(f.Split.Test)})
	normalization, err := train.Normalization(f.Program.Spec, f.Data, f.Split.Train)
	if err != nil {
		return nil, err
	}
	p := &train.Problem{Data: f.Data, Train: f.Split.Train, Normalization: normalization, Seed: f.Seed()}
	if f.model, err = f.fit(ctx, p); err != nil {
		return nil, err
	}
	if f.Metrics == nil { // no iterations
		f.Metrics = []train.Metrics{{Disambiguation: f.disambiguation}}
	}
	sampled, err := f.measure(ctx)
	if err != nil {
		return nil, err
	}
	f.report()
	program, params, err := f.program()
	if err != nil {
		return nil, err
	}
	report := f.Report(f.EngineInfo, &train.State{Params: params}, f.Metrics)
	report.Engine, report.Program, report.Fitted = learner, program, f.model
	report.SampledAccuracy, report.Seconds = sampled, time.Since(f.began).Seconds()
	return report, nil
}

// fit fits the learner of the spec.
func (f *fitLearner) fit(ctx context.Context, p *train.Problem) (train.FittedModel, error) {
	spec := f.Program.Spec
	a := spec.Learner.Args
	switch kind := spec.Learner.Kind; kind.V {
	case plaggd.Name:
		return plaggd.Fit(ctx, plaggd.Settings{
			Vector: plaggd.Vector(a["vector"].Str()), Neighbors: a["neighbours"].Int(), Width: a["width"].Float(),
			Gamma: a["gamma"].Float(), Lambda: a["lambda"].Float(), Mu: a["mu"].Float(), Iterations: a["iterations"].Int(),
		}, p, f.iteration)
	case miplgp.Name:
		return miplgp.Fit(ctx, miplgp.Settings{
			Iterations: a["iterations"].Int(), LR: a["lr"].Float(), Epsilon: a["epsilon"].Float(),
			Confidences: a["confidences"].Str(), Samples: a["samples"].Int(), Solver: a["solver"].Str(),
			Inducing: a["inducing"].Int(), Subset: a["subset"].Int(), Lengthscale: a["lengthscale"].Float(),
			Probes: a["probes"].Int(), Rank: a["rank"].Int(), Tolerance: a["tolerance"].Float(), Kernels: f.own,
		}, p, f.iteration)
	default:
		return nil, spec.AtUserLine(diag.Errorf(kind.Pos, "bug: no package fits the learner %q", kind.V))
	}
}

// program returns the program of the trial with the inference graph of the model, and its
// parameters.
func (f *fitLearner) program() (*compile.Program, map[string][]float32, error) {
	g, params, err := f.model.Graph()
	if err != nil {
		return nil, nil, err
	}
	if g, err = graph.Optimize(g); err != nil {
		return nil, nil, fmt.Errorf("bug: optimizing the inference graph: %w", err)
	}
	p := *f.Program
	p.Infer = g
	for _, n := range g.ByOp(graph.OpParam) {
		if n.Name != compile.ParamMean && n.Name != compile.ParamStd {
			p.Params = append(p.Params, compile.Param{Name: n.Name, Shape: n.Shape.Concrete(0, 0)})
		}
	}
	return &p, params, nil
}

// iteration records one iteration. The last one is reported later, with accuracies. Labelling confidences of the
// training bags are recorded as their label weights.
func (f *fitLearner) iteration(i train.Iteration) {
	if i.Confidences != nil {
		k, found := f.Data.Classes, make([]int, len(f.Split.Train))
		for row, bag := range f.Split.Train {
			own := i.Confidences[row*k : (row+1)*k]
			copy(f.BagWeights(bag), ndarray.Convert[float32](own))
			found[row] = measure.Argmax(own)
		}
		f.disambiguation = f.Accuracy(f.Split.Train, found)
		if f.Trajectories == nil {
			f.StartTrajectories()
		}
		f.ExtendTrajectories()
	}
	now := time.Now()
	if i.Number > 0 {
		f.Metrics = append(f.Metrics, train.Metrics{Epoch: i.Number, Loss: i.Loss, Disambiguation: f.disambiguation,
			Seconds: now.Sub(f.last).Seconds()})
		if i.Number < f.Epochs {
			f.report()
		}
	}
	f.last = now
}

// report reports the last iteration.
func (f *fitLearner) report() {
	if m := f.Metrics[len(f.Metrics)-1]; m.Epoch > 0 {
		f.observer.Epoch(m, train.Progress{Trial: f.Name, Epoch: m.Epoch, Epochs: f.Epochs, Step: 1, Steps: 1, Loss: m.Loss,
			Left: train.TimeLeft(f.began, m.Epoch, f.Epochs)})
	}
}

// predict predicts bags, many at a time if the model can. sampled requests sampled predictions
// too.
func (f *fitLearner) predict(ctx context.Context, bags []int, sampled bool) ([]train.Prediction, error) {
	if m, ok := f.model.(train.Batcher); ok {
		return m.PredictBags(ctx, f.Data, bags, sampled)
	}
	list := make([]train.Prediction, len(bags))
	for i, bag := range bags {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		x, err := f.Data.Bag(bag)
		if err != nil {
			return nil, err
		}
		if list[i].Probabilities, list[i].Attention, err = f.model.Predict(x, f.Data.Size(bag)); err != nil {
			return nil, fmt.Errorf("prediction of bag %d of %s: %w", bag+1, f.Data.Name, err)
		}
	}
	return list, nil
}

// measure predicts all bags of the split and adds the measures to the metrics of the last
// iteration. sampled is the accuracy of sampled predictions on the test bags, nil if the learner
// has none.
func (f *fitLearner) measure(ctx context.Context) (sampled *float64, err error) {
	found := train.PartPredictions{}
	var byDraws []int
	scored := false // some bag has different scores
	for _, part := range f.Split.Parts() {
		list, err := f.predict(ctx, part.Bags, part.Name == data.TestPart)
		if err != nil {
			return nil, err
		}
		found[part.Name] = &train.Predictions{}
		for n, p := range list {
			scored = scored || slices.Max(p.Attention) != slices.Min(p.Attention)
			f.Add(found[part.Name], part.Bags[n], ndarray.Convert[float32](p.Probabilities),
				ndarray.Convert[float32](p.Attention))
			if p.Sampled != nil {
				byDraws = append(byDraws, measure.Argmax(p.Sampled))
			}
		}
	}
	f.RecordEvaluation(f.Epochs, &f.Metrics[len(f.Metrics)-1], found)
	if !scored {
		f.Attention = nil
	}
	if byDraws == nil {
		return nil, nil
	}
	return f.Accuracy(f.Split.Test, byDraws), nil
}
