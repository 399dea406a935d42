// Validation of specs: all errors that would keep a spec from training, as far as they can be found before, at once.

package prepare

import (
	"errors"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/data/bagfile"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/language"
)

// Validation is the result of Validate.
type Validation struct {
	Parameters int      // learned numbers; 0 of a learner, which is as large as its data
	Note       string   // what was not checked
	Warnings   []string // of the compiler
}

// Validate checks everything in a spec that can be checked before training: names, types, values,
// shapes and the split. If the data is missing, it uses data.shape and data.classes, or assumed
// sizes. The error contains all faults in one diag.List. It is a *diag.InvalidError unless only the data is wrong.
func Validate(name string, overrides []string, folder bagfile.Folder) (Validation, error) {
	spec, err := language.Draft(name, overrides...)
	if spec == nil {
		return Validation{}, diag.Invalid(err)
	}
	if err != nil || spec.CheckValidation() != nil {
		return Validation{}, withShapes(err, spec, folder)
	}
	if err := spec.CheckSearch(); err != nil {
		return Validation{}, diag.Invalid(err)
	}
	sig, set, note, err := Describe(spec, folder)
	if err != nil {
		return Validation{}, err
	}
	program, err := compile.Compile(spec, sig)
	if err != nil {
		return Validation{}, diag.Invalid(err)
	}
	v := Validation{Parameters: program.FlatSize(), Note: note, Warnings: program.WarningTexts()}
	if _, err = withInit(spec, folder); err == nil {
		_, err = InitialParameters(program, set, folder)
	}
	if err = located(spec, err); errors.As(err, new(*notFoundError)) {
		v.note(err)
	} else if err != nil {
		return Validation{}, err
	}
	v.note(CheckStep("training", program, set))
	if spec.Generates() {
		v.note(prototypes(spec).CheckMemory())
	}
	if set != nil {
		if _, err := OpenSplit(&spec.Data.Split, set, folder); err != nil {
			return Validation{}, located(spec, err)
		}
	}
	return v, nil
}

// note adds a reason why training would fail on this machine, which is not an error of the spec.
func (v *Validation) note(err error) {
	switch {
	case err == nil:
	case v.Note == "":
		v.Note = err.Error()
	default:
		v.Note += "; " + err.Error()
	}
}

// withShapes adds the errors in the shapes of a draft. If the data cannot be used, the shapes are
// unknown.
func withShapes(wrong error, draft *language.Spec, folder bagfile.Folder) error {
	var all diag.List
	all.AddError(diag.Pos{}, wrong)
	all.AddError(diag.Pos{}, draft.CheckValidation())
	var sig compile.Signature
	if draft.Data.Set.V != "" {
		var err error
		if sig, _, _, err = Describe(draft, folder); err != nil {
			sig = compile.Signature{}
			if errors.As(err, new(*diag.InvalidError)) {
				all.AddError(diag.Pos{}, err)
			}
		}
	}
	all.AddError(diag.Pos{}, compile.Check(draft, sig))
	return diag.Invalid(all.Err())
}
