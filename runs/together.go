package runs

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/runtime/ortlib"
	"github.com/miplc/miplc/specs"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/engines"
	"github.com/miplc/miplc/train/xla"
)

// Variant is one of several runs that differ in seed and split alone.
type Variant struct {
	Name string // of its folder
	Spec *specs.Spec
}

// Together is what came of runs side by side.
type Together struct {
	Runs    []OneOf  `json:"runs"`
	Failed  []string `json:"failed"`             // runs whose numbers ran away, with the error
	Mean    *float64 `json:"accuracy,omitempty"` // of the test bags, over the runs
	Std     *float64 `json:"accuracy_std,omitempty"`
	Seconds float64  `json:"seconds"` // of training all of them
}

// OneOf is one run of several.
type OneOf struct {
	Folder string `json:"folder"`
	*Summary
}

// TrainTogether trains all variants side by side in one XLA program and leaves
// each in a folder of its own below o.Dir, as Train would, but without a
// checkpoint: what is interrupted starts again. o.Spec is not looked at.
func TrainTogether(ctx context.Context, o Options, variants []Variant) (*Together, error) {
	t := &together{Options: o, ctx: ctx, variants: variants}
	if err := t.prepare(); err != nil {
		return nil, err
	}
	defer t.choice.Close()
	backend := t.choice.Backend()
	defer backend.Close()
	for i, v := range variants {
		if err := claim(t.dir(i), false, o.Force); err != nil {
			return nil, fmt.Errorf("%s: %w", v.Name, err)
		}
	}
	finished := 0
	defer func() {
		for i := finished; i < len(variants); i++ {
			abandon(t.dir(i))
		}
		_ = os.Remove(o.Dir) // fails, rightly, where anything is left in it
	}()
	began := time.Now()
	outcomes, err := xla.RunJobs(ctx, backend, t.programs[0], t.data, t.jobs, xla.JobsOptions{Epoch: t.observe(began)})
	if errors.Is(err, context.Canceled) {
		return nil, errors.New("interrupted: runs side by side keep nothing before they are done")
	}
	if err != nil {
		return nil, err
	}
	result := &Together{Seconds: time.Since(began).Seconds(), Failed: []string{}}
	for i, outcome := range outcomes {
		if outcome.Err != nil {
			result.Failed = append(result.Failed, fmt.Sprintf("%s: %v", variants[i].Name, outcome.Err))
			abandon(t.dir(i))
		} else if err := t.keep(i, outcome.Report, result); err != nil {
			return nil, fmt.Errorf("%s: %w", variants[i].Name, err)
		}
		finished = i + 1
	}
	result.sum()
	if len(result.Runs) == 0 {
		return nil, errors.New(result.Failed[0])
	}
	return result, nil
}

// together is a call of TrainTogether under way.
type together struct {
	Options
	ctx      context.Context
	variants []Variant
	data     *data.Dataset
	splits   []*data.Split
	programs []*compile.Program
	jobs     []xla.Job
	choice   *engines.Choice
}

func (t *together) dir(i int) string { return filepath.Join(t.Dir, t.variants[i].Name) }

// prepare finds what is wrong before any folder is touched.
func (t *together) prepare() error {
	first := t.variants[0].Spec
	if first.Learner != nil {
		return fmt.Errorf("the learner %s is fitted as a whole: runs of it do not go side by side", first.Learner.Kind.V)
	}
	var err error
	if t.data, err = OpenData(first, t.DataDir); err != nil {
		return err
	}
	for _, v := range t.variants {
		split, err := openSplit(v.Spec, t.data, t.DataDir)
		if err != nil {
			return err
		}
		p, err := compileFor(v.Spec, &Input{Data: t.data, Split: split})
		if err != nil {
			return err
		}
		t.splits, t.programs = append(t.splits, split), append(t.programs, p)
		t.jobs = append(t.jobs, xla.Job{Name: v.Name, Split: split, Seed: uint64(v.Spec.Train.Seed.V)})
	}
	if _, err := ortlib.Find(ortlib.Options{Path: t.Library}); err != nil {
		return err
	}
	t.Spec, t.Resume = first, false
	request, _, err := t.engineRequest()
	if err != nil {
		return err
	}
	if request.Engine == engines.Auto {
		request.Engine = engines.XLA
	}
	if request.Engine != engines.XLA {
		return fmt.Errorf("runs go side by side in the engine %s alone, not in %s", engines.XLA, request.Engine)
	}
	t.choice, err = engines.Choose(request)
	return err
}

// observe tells the observer of each epoch by the means over the runs.
func (t *together) observe(began time.Time) func(epoch, epochs int, list []*train.Metrics) {
	if t.Observer == nil {
		return nil
	}
	p := t.programs[0]
	t.Observer.Begin(train.Plan{
		Name: fmt.Sprintf("%d runs of %s side by side", len(t.variants), p.Spec.Name.V), Engine: t.choice.Name, Device: t.choice.Device,
		Reason: t.choice.Reason, Epochs: p.Spec.Train.Epochs.V, TrainBags: len(t.splits[0].Train), TestBags: len(t.splits[0].Test),
		Steps: len(data.Batches(t.splits[0].Train, max(1, p.Spec.Train.Batch.V))), Parameters: Parameters(p),
	})
	return func(epoch, epochs int, list []*train.Metrics) {
		m := train.Metrics{Epoch: epoch}
		var loss, trained, tested []float64
		for _, r := range list {
			if r != nil {
				loss = append(loss, r.Loss)
				trained, tested = appendKnown(trained, r.TrainAccuracy), appendKnown(tested, r.TestAccuracy)
			}
		}
		if len(loss) > 0 {
			m.Loss, _ = meanAndStd(loss)
		}
		for _, v := range []struct {
			from []float64
			to   **float64
		}{{trained, &m.TrainAccuracy}, {tested, &m.TestAccuracy}} {
			if len(v.from) > 0 {
				mean, _ := meanAndStd(v.from)
				*v.to = &mean
			}
		}
		left := time.Duration(float64(time.Since(began)) / float64(epoch) * float64(epochs-epoch))
		t.Observer.Epoch(m, train.Progress{Epoch: epoch, Epochs: epochs, Step: 1, Steps: 1, Loss: m.Loss, Left: left})
	}
}

func appendKnown(list []float64, v *float64) []float64 {
	if v == nil {
		return list
	}
	return append(list, *v)
}

// keep writes the folder of one run.
func (t *together) keep(i int, report *train.Report, result *Together) error {
	o := t.Options
	o.Spec, o.Dir = t.variants[i].Spec, t.dir(i)
	in := &Input{Data: t.data, Split: t.splits[i]}
	if err := o.begin(in); err != nil {
		return err
	}
	if err := train.WriteMetrics(o.Dir, report.Metrics); err != nil {
		return err
	}
	s, err := o.finish(t.programs[i], in, t.choice, report)
	if err == nil {
		result.Runs = append(result.Runs, OneOf{t.variants[i].Name, s})
	}
	return err
}

// sum gives mean and deviation of the accuracies.
func (t *Together) sum() {
	var list []float64
	for _, s := range t.Runs {
		list = appendKnown(list, s.Accuracy)
	}
	if len(list) > 0 {
		mean, std := meanAndStd(list)
		t.Mean, t.Std = &mean, &std
	}
}

// meanAndStd gives the mean and the sample deviation, 0 for one value.
func meanAndStd(list []float64) (mean, std float64) {
	for _, v := range list {
		mean += v / float64(len(list))
	}
	if len(list) < 2 {
		return mean, 0
	}
	for _, v := range list {
		std += (v - mean) * (v - mean) / float64(len(list)-1)
	}
	return mean, math.Sqrt(std)
}
