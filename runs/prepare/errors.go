// Errors of specs and of their data.

package prepare

import (
	"cmp"
	"errors"
	"regexp"
	"strings"

	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/language/schema"
)

// notFoundError marks the error of a file that was not found.
type notFoundError struct {
	diag.Diagnostic
	name schema.Str // of the file
}

func (e *notFoundError) Unwrap() error { return e.Diagnostic }

// synthFile matches the file names of generated datasets in shipped specs.
var synthFile = regexp.MustCompile(`^([a-z]+-mipl)-r([0-9])\.npz$`)

// located completes an error of a value of a spec with the line of the user, at data.set if the value has no position.
// It adds advice to that of a missing dataset of a shipped spec, because most users do not have its file.
func located(spec *language.Spec, err error) error {
	if wrong, ok := errors.AsType[*diag.InvalidError](err); ok {
		if d, ok := wrong.Err.(diag.Diagnostic); ok {
			d.Pos = cmp.Or(d.Pos, spec.Data.Set.Pos)
			wrong.Err = spec.AtUserLine(d)
		}
		return err
	}
	gone, ok := errors.AsType[*notFoundError](err)
	if !ok {
		return err
	}
	gone.Diagnostic = spec.AddSource(gone.Diagnostic)
	if set := spec.Data.Set; gone.name == set && strings.HasPrefix(set.Pos.File, schema.Builtin) {
		if part := synthFile.FindStringSubmatch(set.V); part != nil {
			gone.Diagnostic = gone.WithNote("to create it: miplc data synth %s --r %s -o %s", part[1], part[2], set.V)
		}
		gone.Diagnostic = gone.WithNote("to use your own bags: --set data.set=FILE")
	}
	return err
}
