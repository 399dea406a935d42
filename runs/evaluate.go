package runs

import (
	"context"

	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/train"
)

// Evaluate trains as Train does, to the same parameters, but writes no file and
// exports no model: what counts is how good the trained model is. Accuracies are
// measured at the last epoch and at those of o.Snapshots alone, whatever
// train.eval_every says. Dir, Resume and Force are not looked at.
func Evaluate(ctx context.Context, o Options) (*train.Report, error) {
	o.Resume = false
	if o.Spec.Learner != nil {
		in, err := o.input()
		if err != nil {
			return nil, err
		}
		return o.evaluateLearner(ctx, in)
	}
	choice, err := o.engine()
	if err != nil {
		return nil, err
	}
	defer choice.Close()
	in, err := o.input()
	if err != nil {
		return nil, err
	}
	spec := *o.Spec
	spec.Train.EvalEvery.V = spec.Train.Epochs.V
	program, err := compileFor(&spec, in)
	if err != nil {
		return nil, err
	}
	if o.Snapshots == nil {
		o.Snapshots = []int{} // the last epoch alone
	}
	return train.Run(ctx, train.Options{
		Program: program, Data: in.Data, Split: in.Split, NewEngine: choice.New,
		Observer: o.Observer, Snapshots: o.Snapshots,
	})
}

// Check compiles a spec for an input without training, or prepares its learner:
// what is wrong with the pair comes back as a *SpecError.
func Check(spec *language.Spec, in *Input) error {
	if spec.Learner != nil {
		o := Options{Spec: spec}
		_, err := o.prepare(in)
		return err
	}
	_, err := compileFor(spec, in)
	return err
}
