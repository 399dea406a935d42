// Every fold has its share of each class, and groups stay together.

package data

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// unevenBags returns the labels of 97 bags of three uneven classes in 23 groups of 1 to 8
// bags.
func unevenBags() (labels []int, groups []string) {
	for i := 0; len(labels) < 97; i++ {
		for range 1 + i*i%8 {
			labels, groups = append(labels, min(len(labels)*7%10/4, 2)), append(groups, fmt.Sprint("p", i))
		}
	}
	return labels[:97], groups[:97]
}

// The test parts of the folds are disjoint and cover all bags. Without groups, the numbers of bags
// of a class in the folds differ by at most one.
func TestFolds(t *testing.T) {
	labels, groups := unevenBags()
	for _, o := range []SplitSettings{
		{Folds: 5, Stratify: true}, {Folds: 5}, {Folds: 4, Stratify: true, Groups: groups}, {Folds: 3, Groups: groups,
			Validation: 0.2, Stratify: true},
		{Folds: 5, Stratify: true, Validation: 0.15},
	} {
		for seed := range uint64(10) {
			tested := make([]int, len(labels))
			for o.Fold = 1; o.Fold <= o.Folds; o.Fold++ {
				o.Seed = seed
				s, err := RandomSplit(len(labels), sets(labels), o)
				if err != nil {
					t.Fatal(err)
				}
				all := *s
				all.Train = slices.Sorted(slices.Values(slices.Concat(s.Train, s.Validation)))
				checkPartition(t, &all, len(labels))
				for _, bag := range s.Test {
					tested[bag]++
				}
				if n := len(labels) / o.Folds; len(s.Test) < n-2 || len(s.Test) > n+2 {
					t.Errorf("%+v: fold of %d bags, want about %d", o, len(s.Test), n)
				}
				if o.Groups != nil {
					if err := CheckGroups(s, groups); err != nil {
						t.Error(err)
					}
				} else if o.Stratify {
					size := classCounts(labels, allOf(len(labels)))
					for c, n := range classCounts(labels, s.Test) {
						if share := float64(size[c]) / float64(o.Folds); float64(n) <= share-1 || float64(n) >= share+1 {
							t.Errorf("%+v: %d of %d bags of class %d", o, n, size[c], c)
						}
					}
				}
				if want := o.Validation * float64(len(s.Train)+len(s.Validation)); float64(len(s.Validation)) < want-3 ||
					float64(len(s.Validation)) > want+3 {
					t.Errorf("%+v: %d validation bags, want about %.0f", o, len(s.Validation), want)
				}
			}
			if slices.Max(tested) != 1 || slices.Min(tested) != 1 {
				t.Errorf("%+v: bags are tested %v times", o, tested)
			}
		}
	}
}

// A class with fewer bags, or groups with bags, than folds is divided as far as possible, with a warning. The other
// classes are stratified as before.
func TestFoldsOfRareClasses(t *testing.T) {
	labels := slices.Concat(slices.Repeat([]int{0}, 10), slices.Repeat([]int{1}, 15), []int{2, 2, 3})
	groups := make([]string, len(labels))
	for i := range groups {
		groups[i] = strconv.Itoa(i / 2)
	}
	o := SplitSettings{Folds: 5, Stratify: true, Seed: 1, Classes: []string{"cat", "dog", "elk", "fox"}}
	tested := make([]int, 4)
	for o.Fold = 1; o.Fold <= o.Folds; o.Fold++ {
		s, err := RandomSplit(len(labels), sets(labels), o)
		if err != nil {
			t.Fatal(err)
		}
		checkPartition(t, s, len(labels))
		counts := classCounts(labels, s.Test)
		if counts[0] != 2 || counts[1] != 3 || counts[2] > 1 || len(s.Test) < 5 || len(s.Test) > 6 {
			t.Errorf("fold %d: test bags by class %v", o.Fold, counts)
		}
		for c, n := range counts {
			tested[c] += n
		}
		want := []string{"class elk has only 2 bags, so that some of the 5 folds have no test bag of it",
			"class fox has only 1 bag, so that some of the 5 folds have no test bag of it, and one fold has no training bag " +
				"of it"}
		if !slices.Equal(s.Warnings, want) {
			t.Errorf("fold %d: %q", o.Fold, s.Warnings)
		}
	}
	if !slices.Equal(tested, []int{10, 15, 2, 1}) {
		t.Errorf("%v bags of the classes are tested", tested)
	}
	o.Fold, o.Inner = 1, true
	if s, err := RandomSplit(len(labels), sets(labels), o); err != nil || len(s.Warnings) != 2 || s.Warnings[0] !=
		"class elk has only 2 training bags, so that some of the 5 folds have no held-out bag of it" {
		t.Errorf("%v, %v", s, err)
	}
	many := make([]int, 100) // a hundred classes with one bag each
	for i := range many {
		many[i] = i
	}
	if s, err := RandomSplit(len(many), sets(many), SplitSettings{Folds: 5, Fold: 1, Stratify: true}); err != nil ||
		len(s.Warnings) != 6 || s.Warnings[5] != "95 other classes have too few bags for 5 folds, too" {
		t.Errorf("%v, %v", s, err)
	}
	o.Inner, o.Groups = false, groups
	if s, err := RandomSplit(len(labels), sets(labels), o); err != nil || len(s.Warnings) != 2 ||
		!strings.Contains(s.Warnings[0], "class elk has bags in only 2 groups") {
		t.Errorf("groups: %+v, %v", s, err)
	}
	o.Groups, o.Stratify = nil, false
	if s, err := RandomSplit(len(labels), sets(labels), o); err != nil || s.Warnings != nil {
		t.Errorf("not stratified: %+v, %v", s, err)
	}
}

// allOf lists the numbers from 0 to n-1.
func allOf(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// Validation bags come from the training bags: the test bags stay the same. A seed fixes
// the split.
func TestValidationBags(t *testing.T) {
	labels, groups := unevenBags()
	for _, groups := range [][]string{nil, groups} {
		o := SplitSettings{Train: 0.7, Seed: 3, Stratify: true, Groups: groups}
		plain, err := RandomSplit(len(labels), sets(labels), o)
		if err != nil {
			t.Fatal(err)
		}
		o.Validation = 0.2
		with, err := RandomSplit(len(labels), sets(labels), o)
		if err != nil {
			t.Fatal(err)
		}
		again, _ := RandomSplit(len(labels), sets(labels), o)
		if !slices.Equal(plain.Test, with.Test) || !slices.Equal(with.Validation, again.Validation) ||
			len(with.Validation) < 11 || len(with.Validation) > 17 {
			t.Errorf("test bags %v and %v, validation bags %v", plain.Test, with.Test, with.Validation)
		}
		if !strings.HasPrefix(with.Source, plain.Source[:len("stratified 0.7, seed 3")]+", validation 0.2") {
			t.Errorf("source %q", with.Source)
		}
		if share := float64(len(plain.Train)) / 97; share < 0.66 || share > 0.74 {
			t.Errorf("%d training bags", len(plain.Train))
		}
	}
}

// A class with one training bag keeps it: validation bags do not take the last one.
func TestValidationLeavesEachClass(t *testing.T) {
	labels := slices.Concat(slices.Repeat([]int{0}, 20), slices.Repeat([]int{1}, 10), []int{2, 2, 3})
	for seed := range uint64(20) {
		s, err := RandomSplit(len(labels), sets(labels), SplitSettings{Train: 0.7, Seed: seed, Stratify: true,
			Validation: 0.2})
		if err != nil {
			t.Fatal(err)
		}
		if counts := classCounts(labels, s.Train); len(counts) != 4 || slices.Contains(counts, 0) || len(s.Validation) != 5 {
			t.Errorf("seed %d: training bags of the classes %v, %d validation bags", seed, counts, len(s.Validation))
		}
	}
}

func TestSplitErrors(t *testing.T) {
	labels := []int{0, 0, 0, 0, 0, 0, 1, 1}
	groups := []string{"a", "a", "b", "b", "c", "c", "a", "a"}
	for _, c := range []struct {
		o       SplitSettings
		setting SplitSetting
		want    string
	}{
		{SplitSettings{Folds: 9, Fold: 1}, SettingFolds, "8 bags cannot be divided into 9 folds"},
		{SplitSettings{Folds: 4, Fold: 1, Groups: groups}, SettingFolds, "3 groups cannot be divided into 4 folds"},
		{SplitSettings{Train: 0.01}, SettingTrain, "leaves 0 for training"},
		{SplitSettings{Train: 0.01, Groups: []string{"a", "a", "a", "a", "a", "a", "a", "a"}}, SettingGroup,
			"in 1 group leaves"},
		{SplitSettings{Train: 0.7, Stratify: true, Groups: []string{"a", "a", "a", "a", "a", "a", "b", "b"}}, SettingGroup,
			"in 2 groups leaves"},
		{SplitSettings{Train: 0.5, Validation: 0.05}, SettingValidation,
			"a validation share of 0.05 of 4 training bags leaves 4 for training and 0"},
		{SplitSettings{Train: 0.5, Validation: 0.95}, SettingValidation, "leaves 0 for training and 4"},
	} {
		_, err := RandomSplit(8, sets(labels), c.o)
		found, ok := errors.AsType[*SplitError](err)
		if !ok || found.Setting != c.setting || !strings.Contains(found.Text, c.want) {
			t.Errorf("%+v: %v", c.o, err)
		}
	}
	classwise := SplitSettings{Train: 0.7, Stratify: true, Groups: []string{"a", "a", "a", "a", "a", "a", "b", "b"}}
	_, err := RandomSplit(8, sets(labels), classwise)
	if wrong, ok := errors.AsType[*SplitError](err); !ok || !strings.Contains(wrong.Note, "stratify: false") {
		t.Errorf("two groups of one class each: %v", err)
	}
	classwise.Stratify = false
	if _, err := RandomSplit(8, sets(labels), classwise); err != nil {
		t.Error(err)
	}
	s := &Split{Train: []int{0, 1, 2, 3}, Test: []int{4, 5, 6, 7}}
	if err := CheckGroups(s, groups); err == nil || !strings.Contains(err.Error(),
		`group "a" is in two parts: bag 1 is in part train, bag 7 in part test`) {
		t.Errorf("a group on both sides: %v", err)
	}
}

// Bags of one file are in one group, together with their groups.
func TestKeepTogether(t *testing.T) {
	for _, c := range []struct{ groups, want []string }{
		{nil, []string{"0", "1", "0", "3", "4", "3"}},
		{[]string{"p", "q", "r", "r", "s", "t"}, []string{"p", "q", "p", "p", "s", "p"}},
		{[]string{"p", "p", "p", "q", "r", "q"}, []string{"p", "p", "p", "q", "r", "q"}},
	} {
		if got := KeepTogether(c.groups, []int{0, 1, 0, 3, 4, 3}); !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.groups, got, c.want)
		}
		if got := KeepTogether(c.groups, nil); !slices.Equal(got, c.groups) {
			t.Errorf("%q without equal files: %q", c.groups, got)
		}
	}
}
