// Random splits have the shares that were asked for.

package data

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func uniform(share float64, seed uint64) SplitSettings {
	return SplitSettings{Train: share, Seed: seed}
}

func stratified(share float64, seed uint64) SplitSettings {
	return SplitSettings{Train: share, Seed: seed, Stratify: true}
}

func TestRandomSplit(t *testing.T) {
	a, err := RandomSplit(500, nil, uniform(0.7, 1))
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Train) != 350 || len(a.Test) != 150 {
		t.Fatalf("parts of %d and %d bags, want 350 and 150", len(a.Train), len(a.Test))
	}
	checkPartition(t, a, 500)
	again, _ := RandomSplit(500, nil, uniform(0.7, 1))
	other, _ := RandomSplit(500, nil, uniform(0.7, 2))
	if !slices.Equal(a.Train, again.Train) {
		t.Error("the same seed gives a different split")
	}
	if slices.Equal(a.Train, other.Train) {
		t.Error("another seed gives the same split")
	}
	small, _ := RandomSplit(10, nil, uniform(0.7, 1))
	if want := []int{0, 1, 4, 5, 6, 7, 8}; !slices.Equal(small.Train, want) {
		t.Errorf("golden split of 10 bags: %v, want %v", small.Train, want)
	}
	halves, _ := RandomSplit(10, sets([]int{0, 0, 0, 0, 1, 1, 1, 1, 1, 1}), stratified(0.5, 1))
	if want := []int{0, 1, 5, 6, 7}; !slices.Equal(halves.Train, want) || halves.Source != "stratified 0.5, seed 1" {
		t.Errorf("golden stratified split of 10 bags: %v, %s, want %v", halves.Train, halves.Source, want)
	}
}

// The validation bags that are drawn from the training bags of a file are those of these bags alone.
func TestDrawValidation(t *testing.T) {
	labels, o := sets([]int{0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1}), stratified(1, 3)
	o.Validation = 0.25
	s := &Split{Train: []int{2, 3, 4, 5, 8, 9, 10, 11}, Test: []int{0, 1}}
	if err := s.DrawValidation(len(labels), labels, o); err != nil {
		t.Fatal(err)
	}
	alone, err := RandomSplit(8, sets([]int{0, 1, 0, 1, 0, 1, 0, 1}), o)
	if err != nil {
		t.Fatal(err)
	}
	all := []int{2, 3, 4, 5, 8, 9, 10, 11}
	for i, bag := range alone.Validation {
		if len(s.Validation) != len(alone.Validation) || s.Validation[i] != all[bag] {
			t.Fatalf("validation bags %v, want those of %v in %v", s.Validation, alone.Validation, all)
		}
	}
	if drawn := slices.Sorted(slices.Values(slices.Concat(s.Train, s.Validation))); !slices.Equal(drawn, all) {
		t.Errorf("training and validation bags %v, want %v", drawn, all)
	}
}

func TestAllBagsForTraining(t *testing.T) {
	all, err := RandomSplit(10, nil, uniform(1, 1))
	if err != nil || len(all.Train) != 10 || len(all.Test) != 0 {
		t.Fatalf("a share of 1: %v, %v", all, err)
	}
	o := uniform(1, 1)
	o.Validation = 0.2
	validated, err := RandomSplit(10, nil, o)
	if err != nil || len(validated.Train) != 8 || len(validated.Validation) != 2 || len(validated.Test) != 0 {
		t.Fatalf("a share of 1 with validation: %v, %v", validated, err)
	}
}

func checkPartition(t *testing.T, s *Split, bags int) {
	t.Helper()
	all := slices.Concat(s.Train, s.Test)
	slices.Sort(all)
	if len(all) != bags {
		t.Fatalf("the parts have %d bags, want %d", len(all), bags)
	}
	for i, b := range all {
		if i != b {
			t.Fatalf("the parts are not a partition: index %d has bag %d", i, b)
		}
	}
	if !slices.IsSorted(s.Train) || !slices.IsSorted(s.Test) {
		t.Error("the parts are not sorted")
	}
}

// classCounts counts the bags of a part by class.
func classCounts(labels, part []int) []int {
	counts := make([]int, slices.Max(labels)+1)
	for _, bag := range part {
		counts[labels[bag]]++
	}
	return counts
}

// sortedLabels returns the labels of bags in the order of their classes.
func sortedLabels(bags, classes int) []int {
	labels := make([]int, bags)
	for i := range labels {
		labels[i] = i * classes / bags
	}
	return labels
}

// Every class has the same share in both parts, for any order of the bags.
func TestStratifiedSplit(t *testing.T) {
	sorted := sortedLabels(300, 5)
	shuffled := slices.Clone(sorted)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(shuffled), func(i, j int) {
		shuffled[i], shuffled[j] = shuffled[j], shuffled[i]
	})
	for _, labels := range [][]int{sorted, shuffled} {
		for seed := range uint64(20) {
			s, err := RandomSplit(len(labels), sets(labels), stratified(0.7, seed))
			if err != nil {
				t.Fatal(err)
			}
			checkPartition(t, s, len(labels))
			if got := classCounts(labels, s.Test); !slices.Equal(got, []int{18, 18, 18, 18, 18}) {
				t.Errorf("seed %d: %v test bags of the classes, want 18 of each", seed, got)
			}
		}
	}
}

// Each class of any size gets its share within one bag, the parts have the requested sizes, and a
// class of at least two bags is in both parts.
func TestStratifiedSplitOfUnevenClasses(t *testing.T) {
	labels := slices.Concat(slices.Repeat([]int{0}, 101), slices.Repeat([]int{1}, 17), slices.Repeat([]int{2}, 5),
		[]int{3, 3, 4})
	extra := map[int]int{} // by class: splits that round its share up
	for seed := range uint64(50) {
		s, err := RandomSplit(len(labels), sets(labels), stratified(0.7, seed))
		if err != nil {
			t.Fatal(err)
		}
		checkPartition(t, s, len(labels))
		if len(s.Train) != 88 { // 0.7 * 126 = 88.2
			t.Fatalf("%d training bags, want 88", len(s.Train))
		}
		train := classCounts(labels, s.Train)
		if train[0] < 70 || train[0] > 71 || train[1] < 11 || train[1] > 12 || train[2] < 3 || train[2] > 4 ||
			train[3] != 1 || train[4] != 1 {
			t.Errorf("seed %d: %v training bags of the classes", seed, train)
		}
	}
	// Three classes of 5 bags have the same remainder: no class is preferred.
	labels = []int{0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2}
	for seed := range uint64(300) {
		s, err := RandomSplit(15, sets(labels), stratified(0.7, seed))
		if err != nil {
			t.Fatal(err)
		}
		for class, n := range classCounts(labels, s.Train) {
			extra[class] += n - 3
		}
	}
	for class, n := range extra {
		if n < 170 || n > 230 { // 11 training bags: 2 of 3 classes have 4; deviation 8
			t.Errorf("class %d has one more training bag in %d of 300 splits, want about 200", class, n)
		}
	}
}

// Bags without a true label count as one class. Without any labels, or without stratification, the
// draw is uniform.
func TestStratifiedSplitWithoutLabels(t *testing.T) {
	labels := make([]int, 100)
	for i := range labels {
		labels[i] = -1
		if i < 20 {
			labels[i] = i % 2
		}
	}
	s, err := RandomSplit(100, sets(labels), stratified(0.5, 1))
	if err != nil {
		t.Fatal(err)
	}
	if known := slices.IndexFunc(s.Train, func(bag int) bool { return bag >= 20 }); known != 10 || len(s.Train) != 50 {
		t.Errorf("%d of 50 training bags have a label, want 10", known)
	}
	plain, _ := RandomSplit(100, nil, uniform(0.5, 1))
	for name, c := range map[string]struct {
		labels []int
		o      SplitSettings
	}{"no labels": {nil, stratified(0.5, 1)}, "unknown labels": {slices.Repeat([]int{-1}, 100), stratified(0.5, 1)},
		"turned off": {labels, uniform(0.5, 1)}} {
		s, err := RandomSplit(100, sets(c.labels), c.o)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(s.Train, plain.Train) || s.Source != "random 0.5, seed 1" {
			t.Errorf("%s: %s with the bags %v, want %v", name, s.Source, s.Train, plain.Train)
		}
	}
}

func TestRandomSplitErrors(t *testing.T) {
	for _, c := range []struct {
		bags  int
		share float64
		want  string
	}{
		{10, 0, "above 0 and at most 1"}, {10, 1.1, "above 0 and at most 1"}, {10, -1, "above 0 and at most 1"},
		{2, 0.1, "leaves 0 for training"}, {3, 0.9, "0 for testing"}, {0, 0.5, "leaves 0"},
	} {
		_, err := RandomSplit(c.bags, nil, uniform(c.share, 1))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("RandomSplit(%d, %v): %v, want %q", c.bags, c.share, err, c.want)
		}
	}
}

// sets returns the labels of bags with one label each, as data.Dataset.TrueLists does.
func sets(labels []int) (out [][]int) {
	if !AnyKnown(labels) {
		return nil
	}
	for _, label := range labels {
		out = append(out, []int{label})
	}
	return out
}

// Bags with several labels are divided so that every part has about its share of each label, the
// rarest one included.
func TestSeveralLabels(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		labels, size := make([][]int, 120), make([]float64, 6)
		for i := range labels {
			for c := range size {
				if r.Float64() < 0.6/float64(c*c+1) || i%20 == c {
					labels[i] = append(labels[i], c)
					size[c]++
				}
			}
		}
		share := func(bags []int, of float64, what string) {
			found := make([]float64, len(size))
			for _, bag := range bags {
				for _, c := range labels[bag] {
					found[c]++
				}
			}
			for c, n := range found {
				if math.Abs(n-of*size[c]) > 2 {
					t.Errorf("seed %d, %s: %v of %v bags with label %d, want about %.1f", seed, what, n, size[c], c, of*size[c])
				}
			}
			if n := float64(len(bags)); math.Abs(n-of*120) > 2 {
				t.Errorf("seed %d, %s: %v bags, want about %.0f", seed, what, n, of*120)
			}
		}
		for fold := 1; fold <= 5; fold++ {
			s, err := RandomSplit(len(labels), labels, SplitSettings{Folds: 5, Fold: fold, Seed: seed, Stratify: true})
			if err != nil {
				t.Fatal(err)
			}
			share(s.Test, 0.2, "fold")
		}
		s, err := RandomSplit(len(labels), labels, SplitSettings{Train: 0.75, Validation: 0.2, Seed: seed, Stratify: true})
		if err != nil {
			t.Fatal(err)
		}
		share(s.Train, 0.6, "training")
		share(s.Validation, 0.15, "validation")
		share(s.Test, 0.25, "test")
	}
}
