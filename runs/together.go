package runs

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"time"

	"github.com/miplc/miplc/internal/outdir"
	"github.com/miplc/miplc/internal/outfile"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/runtime/ortlib"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/xla"
)

// Variant is one of several runs that differ in split, seed, learning rate and
// weights of loss terms alone.
type Variant struct {
	Name string // of its folder
	Spec *language.Spec
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
	t := &together{Options: o, variants: variants}
	if err := t.prepare(); err != nil {
		return nil, err
	}
	defer t.engine.Close()
	finished := 0
	made, err := outfile.MakeFolder(o.Dir)
	if err != nil {
		return nil, err
	}
	defer func() {
		for i, folder := range t.folders {
			if i >= finished {
				abandon(folder)
			}
			folder.Close()
		}
		outfile.RemoveFolders(made)
	}()
	for i, v := range variants {
		own := t.of(i)
		folder, err := claim(&own)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", v.Name, err)
		}
		t.folders = append(t.folders, folder)
	}
	began := time.Now()
	observe, err := t.observe(began)
	if err != nil {
		return nil, err
	}
	outcomes, err := t.engine.Run(ctx, t.trials, xla.JobsOptions{Epoch: observe})
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
			abandon(t.folders[i])
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
	variants []Variant
	trials   []Trial
	engine   *SideBySide
	folders  []*outdir.Folder // claimed, in the order of the variants
}

// of are the options of one run.
func (t *together) of(i int) Options {
	o := t.Options
	o.Spec, o.Input, o.Dir = t.trials[i].Spec, t.trials[i].Input, filepath.Join(t.Dir, t.variants[i].Name)
	return o
}

// prepare finds what is wrong before any folder is touched.
func (t *together) prepare() error {
	first := t.variants[0].Spec
	set, err := OpenData(first, t.DataDir)
	if err != nil {
		return err
	}
	for _, v := range t.variants {
		split, err := openSplit(v.Spec, set.Bags(), t.DataDir)
		if err != nil {
			return err
		}
		trial := Trial{v.Name, v.Spec, &Input{Data: set, Split: split}}
		if v.Spec.Learner == nil {
			_, err = compileFor(v.Spec, trial.Input)
		}
		if err != nil {
			return err
		}
		t.trials = append(t.trials, trial)
		if err := trial.fits(&t.trials[0]); err != nil {
			return err
		}
	}
	if _, err := ortlib.Find(ortlib.Options{Path: t.Library}); err != nil {
		return err
	}
	t.Spec, t.Resume = first, false
	t.engine, err = OpenSideBySide(t.Options)
	return err
}

// observe tells the observer of each epoch by the means over the runs.
func (t *together) observe(began time.Time) (func(epoch, epochs int, list []*train.Metrics), error) {
	if t.Observer == nil {
		return nil, nil
	}
	program, err := compileFor(t.trials[0].Spec, t.trials[0].Input)
	if err != nil {
		return nil, err
	}
	t.Observer.Begin(t.engine.plan(t.trials, program))
	return func(epoch, epochs int, list []*train.Metrics) {
		m := means(list)
		m.Epoch = epoch
		left := time.Duration(float64(time.Since(began)) / float64(epoch) * float64(epochs-epoch))
		t.Observer.Epoch(m, train.Progress{Epoch: epoch, Epochs: epochs, Step: 1, Steps: 1, Loss: m.Loss, Left: left})
	}, nil
}

// means are the means over the runs that go on; nil stands for one that ended.
func means(list []*train.Metrics) train.Metrics {
	var m train.Metrics
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
	return m
}

func appendKnown(list []float64, v *float64) []float64 {
	if v == nil {
		return list
	}
	return append(list, *v)
}

// keep writes the folder of one run, which is claimed.
func (t *together) keep(i int, report *train.Report, result *Together) error {
	s, err := t.engine.keep(t.of(i), report)
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
