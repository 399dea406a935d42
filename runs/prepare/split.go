// The split of a dataset, drawn as the spec says or read from its index file.

package prepare

import (
	"errors"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/bagfile"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/language"
)

// OpenSplit splits bags as a document describes. Settings that do not fit the bags are a *diag.InvalidError, errors of
// index files are not.
func OpenSplit(s *language.Split, set *data.Dataset, folder bagfile.Folder) (*data.Split, error) {
	groups, err := data.GroupsBy(s.Group.V, set.Groups, set.GroupName) // whose bags stay together
	if err != nil {
		return nil, diag.Invalid(diag.Errorf(s.Group.Pos, "%v", err))
	}
	o := data.SplitSettings{Train: s.Train.V, Folds: s.Folds.V, Fold: s.Fold.V, Validation: s.Validation.V,
		Groups: data.KeepTogether(groups, set.SameFile), Classes: set.AllClassNames(), Stratify: s.Stratify.V,
		Seed: uint64(s.Seed.V)}
	if s.Index.V == "" {
		drawn, err := data.RandomSplit(set.Bags(), set.TrueLists(), o)
		return drawn, Misfit(s, err)
	}
	path, err := FindData(s.Index, folder)
	if err != nil {
		return nil, err
	}
	read, err := data.OpenSplit(path, s.Number.V, set.Bags(), set.BagNames)
	if err != nil {
		return nil, err
	}
	if groups != nil {
		err = data.CheckGroups(read, groups)
	}
	if err == nil && s.Validation.V > 0 {
		if len(read.Validation) > 0 {
			return nil, diag.Invalid(diag.Errorf(s.Validation.Pos, "data.split.validation has no effect: the index file has "+
				"validation bags"))
		}
		err = read.DrawValidation(set.Bags(), set.TrueLists(), o)
	}
	return read, Misfit(s, err)
}

// HoldOut splits off a share of the training bags of a split, or a fold: the result trains on the others, tests on
// these, and has the validation bags of the split. Bags of a group stay together if grouped. o.Train is the share that
// trains.
func HoldOut(set *data.Dataset, whole *data.Split, grouped bool, o data.SplitSettings) (*data.Split, error) {
	o.Inner, o.Classes = true, set.AllClassNames()
	all, groups := set.TrueLists(), []string(nil)
	if grouped {
		groups = set.Groups
	}
	groups = data.KeepTogether(groups, set.SameFile)
	var labels [][]int
	for _, bag := range whole.Train {
		if groups != nil {
			o.Groups = append(o.Groups, groups[bag])
		}
		if all != nil {
			labels = append(labels, all[bag])
		}
	}
	inner, err := data.RandomSplit(len(whole.Train), labels, o)
	if err != nil {
		return nil, err
	}
	out := &data.Split{Validation: whole.Validation, Source: whole.Source, Warnings: inner.Warnings}
	for _, i := range inner.Train {
		out.Train = append(out.Train, whole.Train[i])
	}
	for _, i := range inner.Test {
		out.Test = append(out.Test, whole.Train[i])
	}
	return out, nil
}

// HoldOutFolds divides the training bags of a split into o.Folds folds and returns a split for each, whose held-out
// bags are those of the fold. Without folds, it returns only the split of HoldOut.
func HoldOutFolds(set *data.Dataset, whole *data.Split, grouped bool, o data.SplitSettings) ([]*data.Split, error) {
	list := make([]*data.Split, max(1, o.Folds))
	for i := range list {
		var err error
		o.Fold = i + 1
		if list[i], err = HoldOut(set, whole, grouped, o); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// Misfit returns a *diag.InvalidError at the setting of the split that does not fit the bags.
func Misfit(s *language.Split, err error) error {
	wrong, ok := errors.AsType[*data.SplitError](err)
	if !ok {
		return err
	}
	pos := []diag.Pos{data.SettingTrain: s.Train.Pos, data.SettingFolds: s.Folds.Pos,
		data.SettingValidation: s.Validation.Pos, data.SettingGroup: s.Group.Pos}[wrong.Setting]
	return diag.Invalid(diag.Errorf(pos, "%s", wrong.Text).WithNote("%s", wrong.Note))
}
