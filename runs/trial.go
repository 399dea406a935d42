package runs

import (
	"fmt"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/solved"
)

// NewTrial compiles a spec for a data set, or prepares its learner. What is wrong
// with the pair comes back as a *SpecError; too little memory is another error.
func NewTrial(spec *language.Spec, set *data.Dataset, split *data.Split) (*train.Trial, error) {
	sig, err := compile.SignatureOf(spec, set.Shape, set.Classes)
	if err != nil {
		return nil, &SpecError{err}
	}
	p := &compile.Program{Spec: spec, Signature: sig, Normalize: spec.Data.Normalize.V != "none"}
	if spec.Learner != nil {
		err = solved.Check(spec)
	} else {
		p, err = compile.Compile(spec, sig)
	}
	if err != nil {
		return nil, &SpecError{err}
	}
	if spec.Learner == nil {
		if err := runFits("training", p, batchOf(p, set.Bags(), meanSize(set))); err != nil {
			return nil, err
		}
	}
	return &train.Trial{Program: p, Data: set, Split: split}, nil
}

// OpenTrials opens what specs train on, each data set once, and makes their
// trials. Files are looked up from the working directory and then in the
// folder.
func OpenTrials(list []*language.Spec, folder data.Folder) ([]*train.Trial, error) {
	type source struct {
		set       string
		generated language.Generated
	}
	opened := map[source]*data.Dataset{}
	trials := make([]*train.Trial, len(list))
	for i, spec := range list {
		from := source{spec.Data.Set.V, spec.Data.Generated}
		set, err := opened[from], error(nil)
		if set == nil {
			if set, err = openData(spec, folder); err != nil {
				return nil, err
			}
			opened[from] = set
		}
		split, err := openSplit(spec, set.Bags(), set.Labels, folder)
		if err != nil {
			return nil, err
		}
		if trials[i], err = NewTrial(spec, set, split); err != nil {
			return nil, err
		}
	}
	return trials, nil
}

// checkDistinct reports two trials that train the same settings on the same bags and
// split: they would count twice in the mean and deviation.
func checkDistinct(trials []*train.Trial) error {
	if len(trials) < 2 {
		return nil
	}
	type identity struct{ settings, bags, split string }
	first, bags := map[identity]*train.Trial{}, map[*data.Dataset]string{}
	for _, t := range trials {
		if bags[t.Data] == "" {
			bags[t.Data] = t.Data.Hash()
		}
		id := identity{t.Program.Spec.SettingsHash(), bags[t.Data], train.SplitHash(t.Split)}
		if had := first[id]; had != nil {
			return &SpecError{fmt.Errorf("%s and %s are the same run: their settings, bags and split are equal; remove one of them", had.Name, t.Name)}
		}
		first[id] = t
	}
	return nil
}

// SpecError marks an error as one of the spec, so that callers can tell it from
// those of the data and the machine.
type SpecError struct{ Err error }

func (e *SpecError) Error() string { return e.Err.Error() }
func (e *SpecError) Unwrap() error { return e.Err }
