// Random parts of a split: shares, folds and validation bags.

package data

import (
	"errors"
	"fmt"
	"slices"

	"github.com/miplc/miplc/internal/diag"
)

// Stratified is the first word of the Source of stratified splits.
const Stratified = "stratified"

// SplitSettings are the settings of a random split.
type SplitSettings struct {
	Train    float64 // share of training bags, above 0; 1: no test bags; not used with Folds
	Seed     uint64
	Stratify bool // the same share of every class, if true labels are known
	// Folds divides the bags into that many parts of about the same size. Part Fold,
	// counted from 1, has the test bags. 0: no folds.
	Folds, Fold int
	// Validation is the share of the training bags that become validation bags; 0: none.
	Validation float64
	// Groups are the groups of the bags, such as patients: all bags of a group are in the
	// same part. nil: no groups.
	Groups  []string
	Classes []string // names of the classes, for messages; nil: their numbers
	Inner   bool     // the bags are the training bags of another split, and the test bags are held out; for messages
}

func (o *SplitSettings) className(class int) string {
	if class < len(o.Classes) {
		return o.Classes[class]
	}
	return fmt.Sprintf("%d (counted from 0)", class)
}

// SplitSetting is a field of SplitSettings.
type SplitSetting uint8

// The settings that may not fit the bags.
const (
	SettingTrain SplitSetting = iota
	SettingFolds
	SettingValidation
	SettingGroup
)

// SplitError reports a field of SplitSettings that does not fit the bags.
type SplitError struct {
	Setting SplitSetting
	Text    string
	Note    string // advice; may be empty
}

func (e *SplitError) Error() string { return e.Text }

// RandomSplit draws training bags at random: round(o.Train*bags), unless o has folds or groups. The
// others are test bags; with o.Train = 1 there are none. labels are the true labels of each bag, see
// Dataset.TrueLists; nil means that no label is known. A stratified split draws the same share of
// every class, as the splits of the DEMIPL authors do. Bags whose label is unknown count as one more
// class. If bags have several labels, the share of each label is about the same. Without labels, or
// without o.Stratify, the draw is uniform over all bags. Validation bags are drawn from the training
// bags in the same way, so that the test bags do not depend on o.Validation. Errors are *SplitError.
func RandomSplit(bags int, labels [][]int, o SplitSettings) (*Split, error) {
	labels, kind := o.strata(labels, bags)
	s := &Split{Source: fmt.Sprintf("%s %v, seed %d", kind, o.Train, o.Seed)}
	var err error
	switch {
	case o.Folds > 0:
		s.Source = fmt.Sprintf("%s fold %d of %d, seed %d", kind, o.Fold, o.Folds, o.Seed)
		s.Train, s.Test, s.Warnings, err = drawFold(labels, o)
	case o.Train == 1 && o.Validation == 0:
		return &Split{Source: "all bags for training", Train: numbers(bags)}, nil
	default:
		s.Train, s.Test, err = drawShare(labels, o)
	}
	if err == nil && o.Validation > 0 {
		err = s.drawValidation(labels, o)
	}
	if err != nil {
		return nil, err
	}
	if o.Groups != nil {
		s.Source += ", whole groups"
	}
	return s, nil
}

// drawShare draws training bags. labels are the classes to stratify by.
func drawShare(labels [][]int, o SplitSettings) (train, test []int, err error) {
	switch {
	case !(o.Train > 0 && o.Train <= 1):
		return nil, nil, &SplitError{Setting: SettingTrain, Text: fmt.Sprintf(
			"the training share %v must be above 0 and at most 1", o.Train)}
	case o.Train == 1:
		return numbers(len(labels)), nil, nil
	}
	train, test = partition(numbers(len(labels)), drawBags(labels, o.Groups, [2]float64{o.Train, 1 - o.Train}, 0, o.Seed,
		"split"))
	setting, of := SettingTrain, diag.Count(len(labels), "bag")
	if o.Groups != nil {
		setting, of = SettingGroup, "the bags in "+countUnits(len(distinct(o.Groups)), o)
	}
	err = CheckParts(setting, o.Train, of, len(train), len(test))
	if wrong, ok := errors.AsType[*SplitError](err); ok && o.Groups != nil {
		wrong.Note = "all bags of a group are in the same part"
		if len(distinct(o.Groups)) > 1 && len(distinct(slices.Concat(labels...))) > 1 {
			wrong.Note += "; divide the groups without regard to the classes of their bags with stratify: false"
		}
	}
	return train, test, err
}

// drawFold divides bags into o.Folds folds. The bags of fold o.Fold are test bags. Folds of the
// same seed are disjoint. labels are the classes to stratify by. The warnings name classes that are too
// rare for all folds; the others are stratified.
func drawFold(labels [][]int, o SplitSettings) (train, test []int, warnings []string, err error) {
	units := unitsOf(labels, o.Groups)
	if len(units) < o.Folds {
		return nil, nil, nil, &SplitError{Setting: SettingFolds, Text: fmt.Sprintf("%s cannot be divided into %d folds",
			countUnits(len(units), o), o.Folds)}
	}
	shares := slices.Repeat([]float64{1 / float64(o.Folds)}, o.Folds)
	fold := assign(units, labels, shares, o.Groups != nil, o.Seed, "split")
	if !slices.Contains(fold, o.Fold-1) {
		return nil, nil, nil, &SplitError{Setting: SettingFolds, Text: fmt.Sprintf("fold %d of %d has no bag", o.Fold,
			o.Folds), Note: "the groups differ too much in size: use fewer folds"}
	}
	marks := make([]bool, len(fold))
	for bag, f := range fold {
		marks[bag] = f == o.Fold-1
	}
	test, train = partition(numbers(len(fold)), marks)
	return train, test, rareClasses(units, labels, o), nil
}

// rareClasses returns warnings for the classes that have no bag in some fold.
func rareClasses(units []unit, labels [][]int, o SplitSettings) (warnings []string) {
	in := map[int]int{} // number of units with bags of the class
	for _, u := range units {
		var classes []int
		for _, bag := range u {
			classes = append(classes, labels[bag]...)
		}
		for _, class := range distinct(classes) {
			in[class]++
		}
	}
	for _, class := range distinct(slices.Concat(labels...)) {
		n := in[class]
		if class < 0 || n >= o.Folds {
			continue
		}
		bag, tested := "bag", "test"
		if o.Inner {
			bag, tested = "training bag", "held-out"
		}
		few := "only " + diag.Count(n, bag)
		if o.Groups != nil {
			few = bag + "s in only " + countUnits(n, o)
		}
		text := fmt.Sprintf("class %s has %s, so that some of the %d folds have no %s bag of it", o.className(class), few,
			o.Folds, tested)
		if n == 1 {
			text += ", and one fold has no training bag of it"
		}
		warnings = append(warnings, text)
	}
	const most = 5 // a list of thousands of classes says no more
	if more := len(warnings) - most; more > 0 {
		warnings = append(warnings[:most:most], fmt.Sprintf("%s too few bags for %d folds, too",
			diag.CountForms(more, "other class has", "other classes have"), o.Folds))
	}
	return warnings
}

// strata returns the classes to stratify by, the same for all bags if o or the labels do not allow it, and the
// first word of the source.
func (o *SplitSettings) strata(labels [][]int, bags int) (classes [][]int, kind string) {
	if !o.Stratify || labels == nil {
		return slices.Repeat([][]int{{0}}, bags), "random"
	}
	return labels, Stratified
}

// DrawValidation moves the share o.Validation of the training bags to the validation part, as RandomSplit does.
// labels are the true labels of all bags of the dataset. Errors are *SplitError.
func (s *Split) DrawValidation(bags int, labels [][]int, o SplitSettings) error {
	labels, _ = o.strata(labels, bags)
	return s.drawValidation(labels, o)
}

// drawValidation is DrawValidation with the classes to stratify by.
func (s *Split) drawValidation(labels [][]int, o SplitSettings) error {
	all, inner := s.Train, make([][]int, len(s.Train))
	var groups []string
	for i, bag := range all {
		inner[i] = labels[bag]
		if o.Groups != nil {
			groups = append(groups, o.Groups[bag])
		}
	}
	s.Validation, s.Train = partition(all, drawBags(inner, groups, [2]float64{1 - o.Validation, o.Validation}, 1, o.Seed,
		"split/validation"))
	s.Source += fmt.Sprintf(", validation %v", o.Validation)
	return CheckParts(SettingValidation, o.Validation, diag.Count(len(all), "training bag"), len(s.Train),
		len(s.Validation))
}

// CheckParts returns a *SplitError if a share of bags leaves no bag for training or for the other part.
// of describes the bags, e.g. "8 bags".
func CheckParts(setting SplitSetting, share float64, of string, train, rest int) error {
	if train > 0 && rest > 0 {
		return nil
	}
	part, purpose := "training", "testing"
	if setting == SettingValidation {
		part, purpose = "validation", "validation"
	}
	return &SplitError{
		Setting: setting,
		Text: fmt.Sprintf("a %s share of %v of %s leaves %d for training and %d for %s; both need one", part, share, of,
			train, rest, purpose),
	}
}

func countUnits(n int, o SplitSettings) string {
	if o.Groups != nil {
		return diag.Count(n, "group")
	}
	return diag.Count(n, "bag")
}
