package prepare

import (
	"errors"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/data/bagfile"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/language"
)

// Verdict is what Validate finds out about a spec.
type Verdict struct {
	Parameters int    // learned numbers; 0 of a learner, which is as large as its data
	Note       string // what could not be checked
}

// Validate checks all of a spec that can be known before training: names, types
// and values, the shapes, for those of its data, and its split. Where the data is
// not at hand data.shape and data.classes are taken, or made-up extents. The error
// has all that is wrong in one diag.List; of a spec that is right, with data that
// is not, it is a *DataError.
func Validate(name string, overrides []string, folder bagfile.Folder) (Verdict, error) {
	spec, err := language.Draft(name, overrides...)
	if spec == nil {
		return Verdict{}, err
	}
	if err != nil {
		return Verdict{}, withShapes(err, spec, folder)
	}
	if spec.CheckValidation() != nil {
		return Verdict{}, withShapes(nil, spec, folder)
	}
	facts, err := look(spec, folder)
	if err != nil {
		return Verdict{}, err
	}
	program, err := compile.Compile(spec, facts.sig)
	if err != nil {
		return Verdict{}, err
	}
	v := Verdict{Parameters: program.FlatSize(), Note: facts.note}
	if err := checkInit(program, folder); errors.As(err, &missing{}) {
		v.note(err)
	} else if err != nil {
		return Verdict{}, err
	}
	v.note(CheckMemory("training", program, batchOf(program, facts.bags.count, facts.size)))
	if spec.Generates() {
		v.note(prototypes(spec.Data.Generated).CheckMemory())
	}
	if facts.bags.count > 0 {
		if _, err := openSplit(spec, facts.bags, folder); err != nil {
			return Verdict{}, err
		}
	}
	return v, nil
}

// note adds what would end a training on this machine, which is no fault of the
// spec.
func (v *Verdict) note(err error) {
	switch {
	case err == nil:
	case v.Note == "":
		v.Note = err.Error()
	default:
		v.Note += "; " + err.Error()
	}
}

// withShapes adds what is wrong with the shapes of a draft. Data that cannot be
// used leaves them unknown.
func withShapes(wrong error, draft *language.Spec, folder bagfile.Folder) error {
	var all diag.List
	all.AddError(diag.Pos{}, wrong)
	all.AddError(diag.Pos{}, draft.CheckValidation())
	var facts facts
	if draft.Data.Set.V != "" {
		found, err := look(draft, folder)
		if err == nil {
			facts = found
		} else if !errors.As(err, new(*DataError)) {
			all.AddError(diag.Pos{}, err)
		}
	}
	all.AddError(diag.Pos{}, compile.Check(draft, facts.sig))
	return all.Err()
}
