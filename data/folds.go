// Folds, validation bags and groups that stay together.

package data

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/ndarray"
)

// drawFold divides bags into o.Folds folds. The bags of fold o.Fold are test bags. Folds of the
// same seed are disjoint. labels are the classes to stratify by. The warnings name classes that are too
// rare for all folds; the others are stratified.
func drawFold(labels [][]int, o SplitSettings) (train, test []int, warnings []string, err error) {
	units := unitsOf(labels, o.Groups)
	if len(units) < o.Folds {
		return nil, nil, nil, &SplitError{Setting: "folds", Text: fmt.Sprintf("%s cannot be divided into %d folds",
			countUnits(len(units), o), o.Folds)}
	}
	shares := slices.Repeat([]float64{1 / float64(o.Folds)}, o.Folds)
	fold := assign(units, labels, shares, o.Groups != nil, o.Seed, "split")
	if !slices.Contains(fold, o.Fold-1) {
		return nil, nil, nil, &SplitError{Setting: "folds", Text: fmt.Sprintf("fold %d of %d has no bag", o.Fold, o.Folds),
			Note: "the groups differ too much in size: use fewer folds"}
	}
	marks := make([]bool, len(fold))
	for bag, f := range fold {
		marks[bag] = f == o.Fold-1
	}
	test, train = partition(numbers(len(fold)), marks)
	return train, test, rareClasses(units, labels, o), nil
}

// rareClasses returns a warning for each class that has no bag in some fold.
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
		text := fmt.Sprintf("class %s has %s, so that some of the %d folds have no test bag of it", o.className(class),
			only(n, o), o.Folds)
		if n == 1 {
			text += ", and one fold has no training bag of it"
		}
		warnings = append(warnings, text)
	}
	return warnings
}

func (o *SplitSettings) className(class int) string {
	if class < len(o.Classes) {
		return o.Classes[class]
	}
	return fmt.Sprintf("%d (counted from 0)", class)
}

// drawValidation moves a share of the training bags to the validation part.
func drawValidation(s *Split, labels [][]int, o SplitSettings) error {
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
	return CheckParts("validation", o.Validation, diag.Count(len(all), "training bag"), len(s.Train), len(s.Validation))
}

// unit is a list of bags that stay together: a group, or one bag.
type unit []int

// unitsOf returns the units in the order of their first bags.
func unitsOf(labels [][]int, groups []string) []unit {
	var units []unit
	of := map[string]int{}
	for bag := range labels {
		if groups == nil {
			units = append(units, unit{bag})
			continue
		}
		u, known := of[groups[bag]]
		if !known {
			u, units = len(units), append(units, nil)
			of[groups[bag]] = u
		}
		units[u] = append(units[u], bag)
	}
	return units
}

func countUnits(n int, o SplitSettings) string {
	if o.Groups != nil {
		return diag.Count(n, "group")
	}
	return diag.Count(n, "bag")
}

func only(n int, o SplitSettings) string {
	if o.Groups != nil {
		return "bags in only " + countUnits(n, o)
	}
	return "only " + countUnits(n, o)
}

// distinct returns the distinct values in the order of their first occurrence.
func distinct[T comparable](values []T) (list []T) {
	seen := map[T]bool{}
	for _, v := range values {
		if !seen[v] {
			seen[v], list = true, append(list, v)
		}
	}
	return list
}

// assign divides the bags of units into parts with the given shares. It returns the part of each bag. In the order of
// sortUnits, each unit is assigned to the part where it decreases most the squared differences between the number of
// bags and the target (share times size), summed over its classes and all bags, each divided by its size; with several
// labels also by the share.
func assign(units []unit, labels [][]int, shares []float64, grouped bool, seed uint64, purpose string) []int {
	size, sets := map[int]float64{}, several(labels)
	for _, set := range labels {
		for _, c := range set {
			size[c]++
		}
	}
	order := ndarray.NewStream(seed, purpose).Perm(len(units))
	sortUnits(order, units, labels, size, grouped)
	counts, bags := make([]map[int]float64, len(shares)), make([]float64, len(shares))
	for p := range counts {
		counts[p] = map[int]float64{}
	}
	parts := make([]int, len(labels))
	for _, u := range order {
		own := map[int]float64{}
		var classes []int // in a fixed order, because sums of floats depend on it
		for _, bag := range units[u] {
			for _, c := range labels[bag] {
				if own[c] == 0 {
					classes = append(classes, c)
				}
				own[c]++
			}
		}
		n, best, least := float64(len(units[u])), 0, math.Inf(1)
		for p, share := range shares {
			cost := n * (n + 2*(bags[p]-share*float64(len(labels)))) / float64(len(labels))
			for _, c := range classes {
				cost += own[c] * (own[c] + 2*(counts[p][c]-share*size[c])) / size[c]
			}
			if sets {
				cost /= share // fills the parts in proportion: common labels must not draw bags of rare ones to the larger part
			}
			if cost < least-1e-9 {
				best, least = p, cost
			}
		}
		for _, bag := range units[u] {
			parts[bag] = best
			for _, c := range labels[bag] {
				counts[best][c]++
			}
		}
		bags[best] += n
	}
	return parts
}

// sortUnits sorts units in random order: groups from the largest to the smallest, bags with several labels by their
// rarest label, and others class by class. size is the number of bags of each class.
func sortUnits(order []int, units []unit, labels [][]int, size map[int]float64, grouped bool) {
	rarest := func(u int) float64 { // of bags without labels: the number of bags
		least := float64(len(labels))
		for _, c := range labels[units[u][0]] {
			least = min(least, size[c])
		}
		return least
	}
	switch {
	case grouped:
		slices.SortStableFunc(order, func(a, b int) int { return len(units[b]) - len(units[a]) })
	case several(labels):
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(rarest(a), rarest(b)) })
	default:
		slices.SortStableFunc(order, func(a, b int) int { return labels[units[a][0]][0] - labels[units[b][0]][0] })
	}
}

// GroupsBy returns groups if want, the name of the groups in a spec, is not empty, and nil
// otherwise. name is the kind of the groups in the file, empty if unknown.
func GroupsBy(want string, groups []string, name string) ([]string, error) {
	switch {
	case want == "":
		return nil, nil
	case groups == nil:
		return nil, fmt.Errorf("the bags have no groups: an .npz file has the groups of its bags in the array groups; a "+
			"CSV file in the column %s", want)
	case name != "" && !strings.EqualFold(name, want):
		return nil, fmt.Errorf("the bags have no groups %q; they have %q", want, name)
	}
	return groups, nil
}

// KeepTogether returns groups in which the bags of one file are in one group, so that no test bag is a training
// bag under another name. sameFile is that of data.Dataset; groups may be nil.
func KeepTogether(groups []string, sameFile []int) []string {
	if sameFile == nil {
		return groups
	}
	out, merged := slices.Clone(groups), map[string]string{} // a group and the one that it is part of
	of := func(group string) string {
		for merged[group] != "" {
			group = merged[group]
		}
		return group
	}
	for bag, first := range sameFile {
		switch {
		case groups == nil:
			out = append(out, strconv.Itoa(first))
		case of(groups[bag]) != of(groups[first]):
			merged[of(groups[bag])] = of(groups[first])
		}
	}
	for bag := range groups {
		out[bag] = of(groups[bag])
	}
	return out
}

// CheckGroups returns an *Error if a group has bags in several parts of s. groups are the groups of
// all bags.
func CheckGroups(s *Split, groups []string) error {
	type member struct {
		part string
		bag  int
	}
	first := map[string]member{}
	for _, part := range s.Parts() {
		for _, bag := range part.Bags {
			was, known := first[groups[bag]]
			if known && was.part != part.Name {
				return &SplitError{
					Setting: "group", Text: fmt.Sprintf("group %q is in two parts: bag %d is in part %s, bag %d in part %s",
						groups[bag], was.bag+1, was.part, bag+1, part.Name),
					Note: "all bags of a group must be in the same part",
				}
			}
			if !known {
				first[groups[bag]] = member{part.Name, bag}
			}
		}
	}
	return nil
}
