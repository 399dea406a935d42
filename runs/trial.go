// Trials: specs compiled for the datasets that they name, with errors told apart into those of the spec and of the
// data.

package runs

import (
	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/bagfile"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/train"
)

// Trial compiles a spec for a dataset. If they do not fit each other the error is a *SpecError. Too
// little memory is another error.
func Trial(spec *language.Spec, set *data.Dataset, split *data.Split) (*train.Trial, error) {
	sig, err := compile.SignatureOf(spec, set.Shape, set.Classes)
	if err != nil {
		return nil, &SpecError{err}
	}
	p, err := compile.Compile(spec, sig)
	if err != nil {
		return nil, &SpecError{err}
	}
	trial := &train.Trial{Program: p, Data: set, Split: split}
	if err := trial.CheckMeasures(); err != nil {
		return nil, &SpecError{err}
	}
	return trial, checkStep("training", p, stepOf(p, set))
}

// Trials opens the datasets of specs, each once, and returns their trials. Files are searched in
// the working directory and in folder. encode may be nil if no dataset has images.
func Trials(list []*language.Spec, folder bagfile.Folder, encode Encode) ([]*train.Trial, error) {
	opened := map[string]*Bags{} // by the identity of the keys that say how bags are read
	trials := make([]*train.Trial, len(list))
	for i, spec := range list {
		if err := spec.CheckValidation(); err != nil {
			return nil, &SpecError{err}
		}
		spec, err := withInit(withColumns(spec, folder.Reading.Columns), folder)
		if err != nil {
			return nil, err
		}
		d := &spec.Data
		from := (&language.Spec{Data: language.Data{Set: d.Set, Generated: d.Generated, SHA256: d.SHA256, Labels: d.Labels,
			Columns: d.Columns, Encoder: d.Encoder}}).Identity()
		set, known := opened[from]
		if !known {
			if set, err = openBags(spec, folder, encode); err != nil {
				return nil, err
			}
			opened[from] = set
		}
		split, err := openSplit(spec, set.Dataset, folder)
		if err != nil {
			return nil, err
		}
		if trials[i], err = Trial(spec, set.Dataset, split); err != nil {
			return nil, err
		}
		if trials[i].Init, err = initialParameters(trials[i].Program, set.Dataset, folder); err != nil {
			return nil, err
		}
		trials[i].Images = set.Images
	}
	return trials, nil
}

// openBags opens the dataset of a spec, and computes its features if the spec has an encoder.
func openBags(spec *language.Spec, folder bagfile.Folder, encode Encode) (*Bags, error) {
	set, images, err := openData(spec, folder)
	if err != nil || images == nil {
		return &Bags{Dataset: set}, err
	}
	return encode(images)
}

// SpecError marks an error of the spec, as opposed to the data and the machine.
type SpecError struct{ Err error }

func (e *SpecError) Error() string { return e.Err.Error() }
func (e *SpecError) Unwrap() error { return e.Err }
