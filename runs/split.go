// The split of a dataset: drawn as the spec says, and recorded by the run, so that its model knows its test bags.

package runs

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/bagfile"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/fileio"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/train"
)

// UnknownSplitError reports that a model was trained on some bags of a dataset, but the split is not
// available.
type UnknownSplitError struct{ Source string }

func (e *UnknownSplitError) Error() string {
	return fmt.Sprintf("the model was trained on some of these bags, and its split (%s) is not available", e.Source)
}

// PartsOf returns the name of the part of the split (training, validation or test) of each bag of a
// dataset, or nil if the model was not trained on these bags. Their labels may have changed since.
// Validation bags on which the model was trained again are training bags. split comes from the metadata
// of the model. PartsOf reads the split from SplitFile in the folder of the model, or draws it again if
// it was random, and compares its hash with that in the metadata. If that fails, it returns an
// *UnknownSplitError.
func PartsOf(model string, split json.RawMessage, set *data.Dataset) ([]string, error) {
	if split == nil { // the model is not trained
		return nil, nil
	}
	var facts SplitSummary
	if err := json.Unmarshal(split, &facts); err != nil {
		return nil, fmt.Errorf("the split in the metadata of %s: %w", model, err)
	}
	if set.HashOfInstances() != facts.Instances {
		return nil, nil
	}
	for _, s := range []*data.Split{readSplit(filepath.Dir(model), set.Bags()), redrawSplit(facts.Source, set)} {
		if s == nil || s.Hash() != facts.SHA256 {
			continue
		}
		parts := make([]string, set.Bags())
		for _, part := range s.Parts() {
			for _, bag := range part.Bags {
				if parts[bag] = part.Name; facts.Refit && part.Name == data.ValidationPart {
					parts[bag] = data.TrainPart
				}
			}
		}
		return parts, nil
	}
	return nil, &UnknownSplitError{facts.Source}
}

// splitFile is the content of SplitFile. Bags are counted from 1 in the order of the dataset.
type splitFile struct {
	Train      []int `json:"train"`
	Validation []int `json:"validation,omitempty"`
	Test       []int `json:"test"`
}

// writeSplit writes SplitFile, so that other programs can train and test on the same bags.
func writeSplit(dir string, s *data.Split) error {
	text, err := json.Marshal(splitFile{train.BagNumbers(s.Train), train.BagNumbers(s.Validation),
		train.BagNumbers(s.Test)})
	if err != nil {
		return err
	}
	return fileio.Replace(filepath.Join(dir, SplitFile), append(text, '\n'))
}

// readSplit reads the split of the run in a folder. It returns nil if there is no valid split for
// this number of bags.
func readSplit(dir string, bags int) *data.Split {
	var f splitFile
	valid := fileio.ReadJSON(filepath.Join(dir, SplitFile), &f) == nil
	indices := func(numbers []int) []int {
		for i, n := range numbers {
			valid = valid && n >= 1 && n <= bags
			numbers[i] = n - 1
		}
		return numbers
	}
	s := &data.Split{Train: indices(f.Train), Validation: indices(f.Validation), Test: indices(f.Test)}
	if !valid {
		return nil
	}
	return s
}

// redrawSplit draws a random split again from its description. It returns nil if the split was not
// random.
func redrawSplit(source string, set *data.Dataset) *data.Split {
	var kind string
	var o data.SplitSettings
	if _, err := fmt.Sscanf(source, "%s %g, seed %d", &kind, &o.Train, &o.Seed); err != nil {
		return nil
	}
	o.Stratify, o.Groups = kind == data.Stratified, data.KeepTogether(nil, set.SameFile)
	s, err := data.RandomSplit(set.Bags(), set.TrueLists(), o)
	if err != nil || s.Source != source {
		return nil
	}
	return s
}

// openSplit splits bags as the spec describes. Settings that do not fit the bags are a *SpecError,
// wrong index files a *DataError.
func openSplit(spec *language.Spec, set *data.Dataset, folder bagfile.Folder) (*data.Split, error) {
	s := spec.Data.Split
	groups, err := data.GroupsBy(s.Group.V, set.Groups, set.GroupName) // whose bags stay together
	if err != nil {
		return nil, &SpecError{spec.AtUserLine(diag.Errorf(s.Group.Pos, "%v", err))}
	}
	o := data.SplitSettings{Train: s.Train.V, Folds: s.Folds.V, Fold: s.Fold.V, Validation: s.Validation.V,
		Groups: data.KeepTogether(groups, set.SameFile), Classes: set.AllClassNames(), Stratify: s.Stratify.V,
		Seed: uint64(s.Seed.V)}
	if s.Index.V == "" {
		drawn, err := data.RandomSplit(set.Bags(), set.TrueLists(), o)
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
	if err == nil && s.Validation.V > 0 {
		if len(read.Validation) > 0 {
			return nil, &SpecError{spec.AtUserLine(diag.Errorf(s.Validation.Pos, "data.split.validation has no effect: the "+
				"index file has validation bags"))}
		}
		err = read.DrawValidation(set.Bags(), set.TrueLists(), o)
	}
	return read, misfit(spec, err)
}

// HoldOut splits off a share of the training bags of a split: the result trains on the others, tests on these, and has
// the validation bags of the split. Bags of a group stay together if grouped. o.Train is the share that trains.
func HoldOut(set *data.Dataset, whole *data.Split, grouped bool, o data.SplitSettings) (*data.Split, error) {
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
	out := &data.Split{Validation: whole.Validation, Source: whole.Source}
	for _, i := range inner.Train {
		out.Train = append(out.Train, whole.Train[i])
	}
	for _, i := range inner.Test {
		out.Test = append(out.Test, whole.Train[i])
	}
	return out, nil
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
