package runs

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/outfile"
	"github.com/miplc/miplc/internal/parity"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/learners"
	"github.com/miplc/miplc/learners/miplgp"
	"github.com/miplc/miplc/learners/plaggd"
	"github.com/miplc/miplc/runtime/ortlib"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/engines"
	"github.com/miplc/miplc/train/ort"
)

// newLearner makes the learner that the spec names.
func (f *fitted) newLearner(o *Options) (learners.Learner, error) {
	l := o.Spec.Learner
	a := l.Args
	switch l.Kind.V {
	case plaggd.Name:
		return plaggd.New(plaggd.Settings{
			Vector: plaggd.Vector(a["vector"].Str), Neighbours: a["neighbours"].Int, Width: a["width"].Float,
			Gamma: a["gamma"].Float, Lambda: a["lambda"].Float, Mu: a["mu"].Float, Iterations: a["iterations"].Int,
		})
	case miplgp.Name:
		products, err := f.openProducts(o)
		if err != nil {
			return nil, err
		}
		return miplgp.New(miplgp.Settings{
			Iterations: a["iterations"].Int, LR: a["lr"].Float, Epsilon: a["epsilon"].Float,
			Confidences: a["confidences"].Str, Samples: a["samples"].Int, Solver: a["solver"].Str,
			Inducing: a["inducing"].Int, Subset: a["subset"].Int, Lengthscale: a["lengthscale"].Float,
			Probes: a["probes"].Int, Rank: a["rank"].Int, Tolerance: a["tolerance"].Float, Products: products,
		})
	}
	return nil, fmt.Errorf("this build of miplc has no learner %q", l.Kind.V)
}

// fitted is a learner with what it was fitted to and what came out.
type fitted struct {
	learner learners.Learner
	in      *Input // instances have the shape of sig
	sig     compile.Signature
	z       *data.Normalization // nil: none
	model   learners.Model
	record  train.Record
	sampled *float64 // accuracy on the test bags by draws, where the learner predicts so too
	report  *train.Report

	products *ort.Products // nil: none
}

// openProducts gives the products of onnxruntime, in the execution provider that
// is asked for, if any. Where this program cannot call onnxruntime it gives nil:
// a missing library is reported where the model is checked.
func (f *fitted) openProducts(o *Options) (miplgp.Products, error) {
	p, err := ort.NewProducts(ort.Options{Library: o.Library, Provider: o.Provider})
	switch {
	case err == nil:
		f.products = p
		return p, nil
	case o.Provider != "":
		return nil, err
	}
	return nil, nil
}

// close frees what the fit and its predictions used.
func (f *fitted) close() {
	if f.products != nil {
		f.products.Close()
	}
}

// prepare settles all that can be wrong before a fit.
func (o *Options) prepare(in *Input) (*fitted, error) {
	kind := o.Spec.Learner.Kind
	provider := o.Provider != "" && o.Provider != engines.CPU && kind.V != miplgp.Name
	if provider || o.Device != "" && o.Device != engines.CPU {
		return nil, &SpecError{o.Spec.Locate(diag.Errorf(kind.Pos,
			"learner %s is fitted on the CPU: no other device or provider can be asked for", kind.V))}
	}
	sig, err := compile.SignatureOf(o.Spec, in.Data.Shape, in.Data.Classes)
	if err != nil {
		return nil, &SpecError{err}
	}
	set, err := in.Data.Reshape(sig.Instance)
	if err != nil {
		return nil, err
	}
	f := &fitted{in: &Input{set, in.Split}, sig: sig}
	switch o.Spec.Data.Normalize.V {
	case "training":
		f.z = data.NewNormalization(set, in.Split.Train)
	case "all":
		all := make([]int, set.Bags())
		for i := range all {
			all[i] = i
		}
		f.z = data.NewNormalization(set, all)
	}
	if f.learner, err = f.newLearner(o); err != nil {
		f.close()
		err = &SpecError{o.Spec.Locate(diag.Errorf(o.Spec.Learner.Kind.Pos, "%v", err))}
	}
	return f, err
}

// fitLearner is Train for a spec with a learner. Nothing of a fit that ends
// early is kept.
func (o *Options) fitLearner(ctx context.Context, in *Input) (*Summary, error) {
	f, err := o.prepare(in)
	if err != nil {
		return nil, err
	}
	defer f.close()
	if _, err := ortlib.Find(ortlib.Options{Path: o.Library}); err != nil {
		return nil, err
	}
	if done, err := o.alreadyDone(); done != nil || err != nil {
		return done, err
	}
	folder, err := claim(o)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	s, err := o.fitAndKeep(ctx, f)
	if err != nil {
		abandon(folder)
	}
	if errors.Is(err, context.Canceled) {
		err = &InterruptedError{o.Dir, 0}
	}
	return s, err
}

func (o *Options) fitAndKeep(ctx context.Context, f *fitted) (*Summary, error) {
	if err := outfile.Replace(filepath.Join(o.Dir, SpecFile), o.Spec.YAML()); err != nil {
		return nil, err
	}
	if err := writeSplit(o.Dir, f.in.Split); err != nil {
		return nil, err
	}
	if err := f.fit(ctx, o.Spec, o.Observer); err != nil {
		return nil, err
	}
	if o.Trained != nil {
		o.Trained(f.report)
	}
	if err := train.WriteMetrics(o.Dir, f.report.Metrics); err != nil {
		return nil, err
	}
	program, agreed, err := o.exportLearner(f)
	if err != nil {
		return nil, err
	}
	plots, err := writePlots(o.Dir, o.Spec.Name.V, f.forPlots(), f.in.Data)
	if err != nil {
		return nil, err
	}
	return o.summarize(program, f.in, &engines.Choice{Device: engines.CPU}, f.report, agreed, plots)
}

// evaluateLearner is Evaluate for a spec with a learner.
func (o *Options) evaluateLearner(ctx context.Context, in *Input) (*train.Report, error) {
	f, err := o.prepare(in)
	if err != nil {
		return nil, err
	}
	defer f.close()
	err = f.fit(ctx, o.Spec, o.Observer)
	return f.report, err
}

// fit fits the learner and measures what it found.
func (f *fitted) fit(ctx context.Context, spec *language.Spec, observer train.Observer) error {
	f.record = train.Record{
		Data: f.in.Data, Split: f.in.Split, Seed: uint64(spec.Train.Seed.V), Epochs: f.learner.Iterations(),
		Weights: train.InitialWeights(f.in.Data),
	}
	r := recorder{record: &f.record, observer: observer, began: time.Now(), last: time.Now()}
	if observer != nil {
		observer.Begin(train.Plan{Name: spec.Name.V, Learner: f.learner.Name(), Epochs: f.record.Epochs,
			TrainBags: len(f.in.Split.Train), TestBags: len(f.in.Split.Test)})
	}
	var err error
	f.model, err = f.learner.Fit(ctx, &learners.Problem{
		Data: f.in.Data, Train: f.in.Split.Train, Normalization: f.z, Seed: f.record.Seed,
	}, r.iteration)
	if err != nil {
		return err
	}
	if r.held == nil { // nothing to iterate
		r.held = &train.Metrics{Disambiguation: r.disambiguation}
	}
	if err := f.measure(ctx, r.held); err != nil {
		return err
	}
	r.release()
	f.report = f.record.Report(f.learner.Name(), nil)
	f.report.SampledAccuracy, f.report.Seconds = f.sampled, time.Since(r.began).Seconds()
	return nil
}

// exportLearner writes the checked model. The program that it gives back has
// the inference graph alone.
func (o *Options) exportLearner(f *fitted) (*compile.Program, *parity.Report, error) {
	g, params, err := f.model.Graph()
	if err != nil {
		return nil, nil, err
	}
	if g, err = graph.Optimize(g); err != nil {
		return nil, nil, fmt.Errorf("bug: cleaning the inference graph: %w", err)
	}
	p := &compile.Program{Spec: o.Spec, Signature: f.sig, Infer: g, Normalize: f.z != nil}
	for _, n := range g.ByOp(graph.OpParam) {
		if n.Name != compile.ParamMean && n.Name != compile.ParamStd {
			p.Params = append(p.Params, compile.Param{Name: n.Name, Shape: n.Shape.Concrete(0, 0)})
		}
	}
	meta, err := metadata(p, f.in, f.learner.Name(), o.Version)
	if err != nil {
		return nil, nil, err
	}
	seen := data.NewNormalization(f.in.Data, f.in.Split.Train)
	draw := parity.Options{Instance: f.sig.Instance, Seed: paritySeed, Mean: seen.Mean, Std: seen.Std, Tolerance: f.model.Tolerance()}
	agreed, err := exportChecked(ModelPath(o.Dir), p, params, meta, o.Library, draw, func(e *predictors) error {
		e.list = append(e.list, f.native())
		e.addReference(p, params)
		return nil
	})
	return p, agreed, err
}

// forPlots is the report without the accuracies of its iterations: the last one
// alone has any, and one point makes no curve.
func (f *fitted) forPlots() *train.Report {
	r := *f.report
	r.Metrics = slices.Clone(r.Metrics)
	for i := range r.Metrics {
		r.Metrics[i].TrainAccuracy, r.Metrics[i].TestAccuracy = nil, nil
	}
	return &r
}

// native is the learner's own prediction, in float64.
func (f *fitted) native() parity.Engine {
	return parity.Engine{Name: f.learner.Name(), Predict: func(x []float32, n int) ([]float32, []float32, error) {
		p, a, err := f.model.Predict(x, n)
		return float32s(p), float32s(a), err
	}}
}

// ErrLearner says that a learner keeps no checkpoint.
var ErrLearner = errors.New("a learner keeps no checkpoint; " + SummaryFile + " has its parity")

// learnerRun reports whether the run in dir is one of a learner.
func learnerRun(dir string) bool {
	spec, err := language.Load(filepath.Join(dir, SpecFile), language.Options{})
	return err == nil && spec.Learner != nil
}

// refuseBuild says why a spec with a learner cannot be built.
func refuseBuild(spec *language.Spec) error {
	l := spec.Learner
	return &SpecError{spec.Locate(diag.Errorf(l.Kind.Pos, "learner %s has no model before it is fitted: there is nothing to build", l.Kind.V).
		WithNote("miplc train fits it and leaves model.onnx"))}
}

// recorder turns the iterations of a fit into a record.
type recorder struct {
	record         *train.Record
	observer       train.Observer
	began, last    time.Time
	disambiguation *float64
	held           *train.Metrics // the last iteration, whose accuracies are still to come
}

// iteration records one iteration; the observer hears of it when the next one
// comes, since the last one is told with its accuracies.
func (r *recorder) iteration(i learners.Iteration) {
	if i.Confidences != nil {
		r.confidences(i)
	}
	now := time.Now()
	if i.Number > 0 {
		r.release()
		r.held = &train.Metrics{Epoch: i.Number, Loss: i.Loss, Disambiguation: r.disambiguation, Seconds: now.Sub(r.last).Seconds()}
	}
	r.last = now
}

// confidences keeps those of all training bags, and the paths of a few.
func (r *recorder) confidences(i learners.Iteration) {
	k := r.record.Data.Classes
	found := make([]int, len(r.record.Split.Train))
	for row, bag := range r.record.Split.Train {
		own := i.Confidences[row*k : (row+1)*k]
		copy(r.record.BagWeights(bag), float32s(own))
		found[row] = train.Argmax(own)
	}
	r.disambiguation = r.record.Accuracy(r.record.Split.Train, found)
	if r.record.Trajectories == nil {
		r.record.FollowWeights()
	}
	r.record.Extend()
}

// release hands the held iteration on.
func (r *recorder) release() {
	if r.held == nil {
		return
	}
	r.record.Metrics = append(r.record.Metrics, *r.held)
	if r.observer != nil && r.held.Epoch > 0 {
		done, all := r.held.Epoch, r.record.Epochs
		left := time.Duration(float64(time.Since(r.began)) / float64(done) * float64(all-done))
		r.observer.Epoch(*r.held, train.Progress{Epoch: done, Epochs: all, Step: 1, Steps: 1, Loss: r.held.Loss, Left: left})
	}
	r.held = nil
}
