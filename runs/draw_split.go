// The split of a dataset into training, validation and test bags, drawn as the spec says.

package runs

import (
	"cmp"
	"errors"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/bagfile"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/language"
)

// openSplit splits bags as the spec describes. Settings that do not fit the bags are a *SpecError,
// wrong index files a *DataError.
func openSplit(spec *language.Spec, set *data.Dataset, folder bagfile.Folder) (*data.Split, error) {
	s := spec.Data.Split
	groups, err := data.GroupsBy(s.Group.V, set.Groups, set.GroupName) // whose bags stay together
	if err != nil {
		return nil, &SpecError{spec.AtUserLine(diag.Errorf(s.Group.Pos, "%v", err))}
	}
	if s.Index.V == "" {
		drawn, err := data.RandomSplit(set.Bags(), set.TrueLists(), data.SplitSettings{
			Train: s.Train.V, Folds: s.Folds.V, Fold: s.Fold.V, Validation: s.Validation.V, Groups: data.KeepTogether(groups,
				set.SameFile), Classes: set.AllClassNames(), Stratify: s.Stratify.V, Seed: uint64(s.Seed.V),
		})
		return drawn, misfit(spec, err)
	}
	path, err := find(spec, s.Index, folder)
	if err != nil {
		return nil, &DataError{err}
	}
	read, err := data.OpenSplit(path, s.Number.V, set.Bags(), set.BagNames)
	if err != nil {
		return nil, &DataError{err}
	}
	if groups != nil {
		err = data.CheckGroups(read, groups)
	}
	return read, misfit(spec, err)
}

// misfit returns a *SpecError at the setting of the split that does not fit the bags.
func misfit(spec *language.Spec, err error) error {
	wrong, ok := errors.AsType[*data.SplitError](err)
	if !ok {
		return err
	}
	s := &spec.Data.Split
	pos := map[string]diag.Pos{"train": s.Train.Pos, "folds": s.Folds.Pos, "validation": s.Validation.Pos,
		"group": s.Group.Pos}[wrong.Setting]
	d := diag.Errorf(cmp.Or(pos, spec.Data.Set.Pos), "%s", wrong.Text)
	if wrong.Note != "" {
		d = d.WithNote("%s", wrong.Note)
	}
	return &SpecError{spec.AtUserLine(d)}
}
