package data

import (
	"slices"
	"strings"
	"testing"
)

func TestRandomSplit(t *testing.T) {
	a, err := RandomSplit(500, 0.7, 1)
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Train) != 350 || len(a.Test) != 150 {
		t.Fatalf("parts of %d and %d bags, want 350 and 150", len(a.Train), len(a.Test))
	}
	all := slices.Concat(a.Train, a.Test)
	slices.Sort(all)
	for i, b := range all {
		if i != b {
			t.Fatalf("the parts are no partition: place %d holds bag %d", i, b)
		}
	}
	if !slices.IsSorted(a.Train) || !slices.IsSorted(a.Test) {
		t.Error("the parts are not sorted")
	}
	again, _ := RandomSplit(500, 0.7, 1)
	other, _ := RandomSplit(500, 0.7, 2)
	if !slices.Equal(a.Train, again.Train) {
		t.Error("the same seed gives another split")
	}
	if slices.Equal(a.Train, other.Train) {
		t.Error("another seed gives the same split")
	}
	small, _ := RandomSplit(10, 0.7, 1)
	if want := []int{0, 1, 4, 5, 6, 7, 8}; !slices.Equal(small.Train, want) {
		t.Errorf("golden split of 10 bags: %v, want %v", small.Train, want)
	}
}

func TestRandomSplitErrors(t *testing.T) {
	for _, c := range []struct {
		bags  int
		share float64
		want  string
	}{
		{10, 0, "between 0 and 1"}, {10, 1, "between 0 and 1"}, {10, -1, "between 0 and 1"},
		{2, 0.1, "leaves 0 for training"}, {3, 0.9, "0 for testing"}, {0, 0.5, "leaves 0"},
	} {
		_, err := RandomSplit(c.bags, c.share, 1)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("RandomSplit(%d, %v): %v, want %q", c.bags, c.share, err, c.want)
		}
	}
}
