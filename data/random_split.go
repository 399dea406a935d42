// Divides the bags of datasets: random splits, folds, groups, and index files.

package data

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/ndarray"
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
}

// SplitError reports a setting of Settings that does not fit the bags.
type SplitError struct {
	Setting string // train, folds, validation or group
	Text    string
	Note    string // advice; may be empty
}

func (e *SplitError) Error() string { return e.Text }

// RandomSplit draws training bags at random: round(o.Train*bags), unless o has folds or groups. The
// others are test bags; with o.Train = 1 there are none. labels are the true labels of each bag, see
// data.Dataset.TrueLists; nil means that no label is known. A stratified split draws the same share of
// every class, as the splits of the DEMIPL authors do. Bags whose label is unknown count as one more
// class. If bags have several labels, the share of each label is about the same. Without labels, or
// without o.Stratify, the draw is uniform over all bags. Validation bags are drawn from the training
// bags in the same way, so that the test bags do not depend on o.Validation. Errors are *Error.
func RandomSplit(bags int, labels [][]int, o SplitSettings) (*Split, error) {
	kind := Stratified
	if !o.Stratify || labels == nil {
		kind, labels = "random", slices.Repeat([][]int{{0}}, bags)
	}
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
		err = drawValidation(s, labels, o)
	}
	if err != nil {
		return nil, err
	}
	if o.Groups != nil {
		s.Source += ", whole groups"
	}
	return s, nil
}

// several reports whether a bag has several labels or none.
func several(labels [][]int) bool {
	return slices.ContainsFunc(labels, func(set []int) bool { return len(set) != 1 })
}

// partition returns the bags with and without a mark; marks[i] is that of bags[i].
func partition(bags []int, marks []bool) (marked, others []int) {
	for i, bag := range bags {
		if marks[i] {
			marked = append(marked, bag)
		} else {
			others = append(others, bag)
		}
	}
	return marked, others
}

// numbers returns 0 to n-1.
func numbers(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// drawShare draws training bags. labels are the classes to stratify by.
func drawShare(labels [][]int, o SplitSettings) (train, test []int, err error) {
	switch {
	case !(o.Train > 0 && o.Train <= 1):
		return nil, nil, &SplitError{Setting: "train", Text: fmt.Sprintf(
			"the training share %v must be above 0 and at most 1", o.Train)}
	case o.Train == 1:
		return numbers(len(labels)), nil, nil
	}
	train, test = partition(numbers(len(labels)), drawBags(labels, o.Groups, [2]float64{o.Train, 1 - o.Train}, 0, o.Seed,
		"split"))
	setting, of := "train", diag.Count(len(labels), "bag")
	if o.Groups != nil {
		setting, of = "group", "the bags in "+countUnits(len(distinct(o.Groups)), o)
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

// drawBags divides bags into two parts with the given shares, and marks the bags of one part. Part 0 has
// the training bags. Whole groups, and bags with several labels, are divided about by the shares.
func drawBags(labels [][]int, groups []string, shares [2]float64, part int, seed uint64, purpose string) []bool {
	marks := make([]bool, len(labels))
	if groups != nil || several(labels) {
		for bag, p := range assign(unitsOf(labels, groups), labels, shares[:], groups != nil, seed, purpose) {
			marks[bag] = p == part
		}
		return marks
	}
	order := ndarray.NewStream(seed, purpose).Perm(len(labels))
	left := quotas(order, labels, shares[part], int(math.Round(shares[part]*float64(len(labels)))), part == 0)
	for _, bag := range order {
		class := labels[bag][0]
		marks[bag] = left[class] > 0
		left[class]--
	}
	return marks
}

// CheckParts returns an *Error if a share of bags leaves no bag for training or for the other part.
// setting is train, group or validation; of describes the bags, e.g. "8 bags".
func CheckParts(setting string, share float64, of string, train, rest int) error {
	if train > 0 && rest > 0 {
		return nil
	}
	part, purpose := "training", "testing"
	if setting == "validation" {
		part, purpose = "validation", "validation"
	}
	return &SplitError{
		Setting: setting,
		Text: fmt.Sprintf("a %s share of %v of %s leaves %d for training and %d for %s; both need one", part, share, of,
			train, rest, purpose),
	}
}

// quotas returns the number of bags of each class in a part, n in total: its share rounded down, and
// one more for the classes with the largest remainders. If n allows it, a class of two or more bags is
// in both parts, and the only bag of a class is a training bag. The random order breaks ties, so that
// no class is preferred.
func quotas(order []int, labels [][]int, share float64, n int, training bool) map[int]int {
	type class struct{ label, size, quota int }
	var classes []*class
	byLabel := map[int]*class{}
	for _, bag := range order {
		c := byLabel[labels[bag][0]]
		if c == nil {
			c = &class{label: labels[bag][0]}
			byLabel[c.label], classes = c, append(classes, c)
		}
		c.size++
	}
	for _, c := range classes {
		c.quota = int(share * float64(c.size))
		n -= c.quota
	}
	urgency := func(c *class) float64 {
		remainder := share*float64(c.size) - float64(c.quota)
		switch {
		case c.quota == 0 && (training || c.size > 1):
			return 1 + remainder // otherwise the class has no bag in this part
		case c.quota+1 == c.size:
			return remainder - 1 // the class would have no bag in the other part
		}
		return remainder
	}
	slices.SortStableFunc(classes, func(a, b *class) int { return cmp.Compare(urgency(b), urgency(a)) })
	out := map[int]int{}
	for i, c := range classes {
		out[c.label] = c.quota
		if i < n {
			out[c.label]++
		}
	}
	return out
}
