// Steps late in a training, when scores are close to 0 and 1.

package engines_test

import (
	"math"
	"slices"
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/internal/testkit/enginetest"
	"github.com/miplc/miplc/train"
)

// recorder is an engine that keeps every tenth step of a training, with the states before and after.
type recorder struct {
	train.Engine
	steps int
	kept  []keptStep
}

type keptStep struct {
	before, after *train.State
	batch         train.Batch
	result        train.StepResult
}

func (r *recorder) Step(b *train.Batch) (*train.StepResult, error) {
	r.steps++
	if r.steps%10 != 0 {
		return r.Engine.Step(b)
	}
	k := keptStep{batch: *b}
	k.batch.Instances, k.batch.BagOf = slices.Clone(b.Instances), slices.Clone(b.BagOf)
	k.batch.Candidates, k.batch.LabelWeights = slices.Clone(b.Candidates), slices.Clone(b.LabelWeights)
	k.batch.Masks = map[string][]float32{}
	for name, values := range b.Masks {
		k.batch.Masks[name] = slices.Clone(values)
	}
	var err error
	if k.before, err = r.State(); err != nil {
		return nil, err
	}
	if err := r.SetState(k.before); err != nil { // rounded to float32, as the other engines get it
		return nil, err
	}
	out, err := r.Engine.Step(b)
	if err != nil {
		return nil, err
	}
	k.result = train.StepResult{Loss: out.Loss, Terms: slices.Clone(out.Terms),
		LabelWeights:  slices.Clone(out.LabelWeights),
		Probabilities: slices.Clone(out.Probabilities), Attention: slices.Clone(out.Attention)}
	k.after, err = r.State()
	r.kept = append(r.kept, k)
	return out, err
}

// All engines compute the same step from each state of a whole training, also from late states, in
// which label weights and attention are near 0 and 1. Whole trainings cannot show that: the rounding
// of single steps grows until trainings have different losses (docs/studies.md).
func TestStepsOfAWholeTraining(t *testing.T) {
	t.Parallel()
	o := options(t, "extends: demipl\nname: late\ndata: {set: \"generated:prototypes\", generated: {bags: 150, "+
		"features: 20, classes: 6, noise: 0.7}}\n"+
		"train: {epochs: 12, batch: 1, lr: 0.05}\n")
	r := &recorder{}
	by := &train.StepTrainer{New: func(p *compile.Program) (train.Engine, error) {
		e, err := train.NewOracle(p)
		r.Engine = e
		return r, err
	}}
	report, err := train.TrainOne(t.Context(), by, o, train.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if *report.Measures.Accuracy("train") < 0.9 {
		t.Errorf("training accuracy %v: the training does not reach late states", *report.Measures.Accuracy("train"))
	}
	for _, m := range compared(t) {
		worst := map[string]float64{}
		e := m.started(t, o.Program, r.kept[0].before)
		for i := range r.kept {
			k := &r.kept[i]
			if err := e.SetState(k.before); err != nil {
				t.Fatal(err)
			}
			out, err := e.Step(&k.batch)
			if err != nil {
				t.Fatal(err)
			}
			got, want := &trajectory{}, &trajectory{}
			got.add(out)
			want.add(&k.result)
			after, err := e.State()
			if err != nil {
				t.Fatal(err)
			}
			got.params, want.params = after.Params, k.after.Params
			for what, diff := range got.differences(want, 0.1) {
				worst[what] = math.Max(worst[what], diff)
			}
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		for what, diff := range worst {
			if !(diff <= enginetest.Tolerance(1e-5)) {
				t.Errorf("%s: %s differs by %.2g in one of %d steps", m.name, what, diff, len(r.kept))
			}
		}
		t.Logf("%s: %d steps, training accuracy %.3f: %v", m.name, len(r.kept), *report.Measures.Accuracy("train"), worst)
	}
}
