// Package solved is the trainer of learners that are solved as a whole: it fits
// them and keeps the same record as the trainers that go by steps.
package solved

import (
	"context"
	"fmt"
	"time"

	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/learners"
	"github.com/miplc/miplc/learners/miplgp"
	"github.com/miplc/miplc/learners/plaggd"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/ort"
)

// Trainer fits learners: MIPLGP on a device, others in Go. Nothing of a fit that
// ends early is kept.
type Trainer struct {
	train.EngineInfo                 // of the device; empty: none
	Device           learners.Device // for learners of specs that take an engine; others need none
	Library          string          // onnxruntime library for what is left of products; empty: searched
}

// Check reports settings of a learner that cannot be, at their place in the spec.
func Check(spec *language.Spec) error {
	_, err := new(Trainer).learner(spec.Learner, nil)
	return located(spec, err)
}

// CheckPlace reports a device or provider that a learner cannot be fitted on.
func CheckPlace(spec *language.Spec, device string) error {
	if device != "" && device != cpu && !spec.TakesEngine() {
		return located(spec, fmt.Errorf("learner %s is fitted on the CPU: no other device can be asked for", spec.Learner.Kind.V))
	}
	return nil
}

// cpu is a device and the execution provider that needs nothing.
const cpu = "cpu"

func located(spec *language.Spec, err error) error {
	if err != nil {
		err = spec.Locate(diag.Errorf(spec.Learner.Kind.Pos, "%v", err))
	}
	return err
}

// learner makes the learner that a spec names.
func (t *Trainer) learner(l *language.Learner, products miplgp.Products) (learners.Learner, error) {
	a := l.Args
	switch l.Kind.V {
	case plaggd.Name:
		return plaggd.New(plaggd.Settings{
			Vector: plaggd.Vector(a["vector"].Str()), Neighbours: a["neighbours"].Int(), Width: a["width"].Float(),
			Gamma: a["gamma"].Float(), Lambda: a["lambda"].Float(), Mu: a["mu"].Float(), Iterations: a["iterations"].Int(),
		}), nil
	case miplgp.Name:
		return miplgp.New(miplgp.Settings{
			Iterations: a["iterations"].Int(), LR: a["lr"].Float(), Epsilon: a["epsilon"].Float(),
			Confidences: a["confidences"].Str(), Samples: a["samples"].Int(), Solver: a["solver"].Str(),
			Inducing: a["inducing"].Int(), Subset: a["subset"].Int(), Lengthscale: a["lengthscale"].Float(),
			Probes: a["probes"].Int(), Rank: a["rank"].Int(), Tolerance: a["tolerance"].Float(), Device: t.Device, Products: products,
		})
	}
	return nil, fmt.Errorf("this build of miplc has no learner %q", l.Kind.V)
}

// Train implements train.Trainer, one learner after the other.
func (t *Trainer) Train(ctx context.Context, trials []*train.Trial, o train.Options, done func(i int, out train.Outcome)) {
	for i, trial := range trials {
		err := t.one(ctx, trial, o.ObserverOrSilent(), func(r *train.Report) { done(i, train.Outcome{Report: r}) })
		if err != nil {
			done(i, train.Outcome{Err: err})
		}
	}
}

// one fits a learner and hands the report to done while what the fitted model
// uses is open.
func (t *Trainer) one(ctx context.Context, trial *train.Trial, observer train.Observer, done func(*train.Report)) error {
	spec := trial.Program.Spec
	products, free, err := t.products(spec)
	if err != nil {
		return err
	}
	defer free()
	f := &fit{observer: observer, place: t.EngineInfo}
	if f.learner, err = t.learner(spec.Learner, products); err != nil {
		return located(spec, err)
	}
	own := *trial
	if own.Data, err = trial.Data.Reshape(trial.Program.Signature.Instance); err != nil {
		return err
	}
	f.Record = train.Record{Trial: &own, Epochs: f.learner.Iterations(), Weights: train.InitialWeights(own.Data)}
	report, err := f.run(ctx)
	if err == nil && trial.Log != "" {
		err = train.WriteMetrics(trial.Log, report.Metrics)
	}
	if err == nil {
		done(report)
	}
	return err
}

// products gives those of onnxruntime, in the execution provider of the device if
// it has one. Where this program cannot call onnxruntime it gives nil: a missing
// library is reported where the model is checked.
func (t *Trainer) products(spec *language.Spec) (miplgp.Products, func(), error) {
	if !spec.TakesEngine() {
		return nil, func() {}, nil
	}
	o := ort.Options{Library: t.Library}
	if t.Engine == ort.Name && t.EngineInfo.Device != cpu {
		o.Provider = t.EngineInfo.Device
	}
	p, err := ort.NewProducts(o)
	switch {
	case err == nil:
		return p, func() { p.Close() }, nil
	case o.Provider != "":
		return nil, nil, err
	}
	return nil, func() {}, nil
}

// fit is the fit of one learner under way.
type fit struct {
	train.Record
	place          train.EngineInfo
	learner        learners.Learner
	model          learners.Model
	observer       train.Observer
	began, last    time.Time
	disambiguation *float64
	held           *train.Metrics // the last iteration, whose accuracies are still to come
}

// run fits the learner and measures what it found.
func (f *fit) run(ctx context.Context) (*train.Report, error) {
	f.began, f.last = time.Now(), time.Now()
	f.observer.Begin(train.Plan{Name: f.Program.Spec.Name.V, Trials: 1, Learner: f.learner.Name(), Epochs: f.Epochs,
		Engine: f.place.Engine, Device: f.place.Device, Reason: f.place.Reason, TrainBags: len(f.Split.Train), TestBags: len(f.Split.Test)})
	normalization, err := train.Normalization(f.Program.Spec, f.Data, f.Split.Train)
	if err != nil {
		return nil, err
	}
	f.model, err = f.learner.Fit(ctx, &learners.Problem{
		Data: f.Data, Train: f.Split.Train, Normalization: normalization, Seed: f.Seed(),
	}, f.iteration)
	if err != nil {
		return nil, err
	}
	if f.held == nil { // nothing to iterate
		f.held = &train.Metrics{Disambiguation: f.disambiguation}
	}
	sampled, err := f.measure(ctx)
	if err != nil {
		return nil, err
	}
	f.release()
	report := f.Report(f.learner.Name(), nil)
	report.SampledAccuracy, report.Seconds, report.Solved = sampled, time.Since(f.began).Seconds(), f.model
	return report, nil
}

// iteration records one iteration; the observer hears of it when the next one
// comes, since the last one is told with its accuracies.
func (f *fit) iteration(i learners.Iteration) {
	if i.Confidences != nil {
		f.confidences(i)
	}
	now := time.Now()
	if i.Number > 0 {
		f.release()
		f.held = &train.Metrics{Epoch: i.Number, Loss: i.Loss, Disambiguation: f.disambiguation, Seconds: now.Sub(f.last).Seconds()}
	}
	f.last = now
}

// confidences keeps those of all training bags, and the paths of a few.
func (f *fit) confidences(i learners.Iteration) {
	k := f.Data.Classes
	found := make([]int, len(f.Split.Train))
	for row, bag := range f.Split.Train {
		own := i.Confidences[row*k : (row+1)*k]
		for c, v := range own {
			f.BagWeights(bag)[c] = float32(v)
		}
		found[row] = train.Argmax(own)
	}
	f.disambiguation = f.Accuracy(f.Split.Train, found)
	if f.Trajectories == nil {
		f.StartTrajectories()
	}
	f.ExtendTrajectories()
}

// release hands the held iteration on.
func (f *fit) release() {
	if f.held == nil {
		return
	}
	f.Metrics = append(f.Metrics, *f.held)
	if done := f.held.Epoch; done > 0 {
		f.observer.Epoch(*f.held, train.Progress{Trial: f.Name, Epoch: done, Epochs: f.Epochs, Step: 1, Steps: 1, Loss: f.held.Loss,
			Left: train.TimeLeft(f.began, done, f.Epochs)})
	}
	f.held = nil
}
