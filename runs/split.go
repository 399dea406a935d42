// The split that a run records, so that its model finds its test bags again.

package runs

import (
	"encoding/json"
	"fmt"
	"path/filepath"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/internal/fileio"
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
