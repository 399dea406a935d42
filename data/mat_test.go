package data

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/miplc/miplc/internal/testsupport"
)

// The .mat files of testdata hold the same three bags in the layouts that are
// accepted (see mat.py beside them).
func TestMATLayouts(t *testing.T) {
	want := Dataset{
		Shape:      []int{2},
		Instances:  []float32{0.5, -1, 2, 0.25, 3, 4, 0, 1, -7.25, 300, 0.125, 0.75},
		Offsets:    []int{0, 2, 3, 6},
		Candidates: []uint8{1, 1, 0, 0, 1, 1, 1, 0, 1},
		Classes:    3,
		Labels:     []int{0, 2, 0},
		ClassNames: []string{"1", "2", "3"},
	}
	unlabelled, twice, instances := want, want, want
	unlabelled.Labels = nil
	twice.Instances = slices.Repeat(want.Instances, 2)
	twice.Offsets = []int{0, 2, 3, 6, 8, 9, 12}
	twice.Candidates = slices.Repeat(want.Candidates, 2)
	twice.Labels = slices.Repeat(want.Labels, 2)
	instances.InstLabels = []int{0, -1, 2, -1, -1, 0}
	for name, want := range map[string]Dataset{
		"bags": want, "bags-plain": want, "bags-vector": want, "bags-named": want, "bags-transposed": want,
		"bags-logical": unlabelled, "bags-across": twice, "bags-instances": instances,
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Open(filepath.Join("testdata", name+".mat"))
			if err != nil {
				t.Fatal(err)
			}
			want.Name = name
			if !reflect.DeepEqual(*got, want) {
				t.Errorf("got  %+v\nwant %+v", *got, want)
			}
		})
	}
}

func TestOpenSplit(t *testing.T) {
	s, err := OpenSplit(filepath.Join("testdata", "index-small.mat"), 0, 3)
	if err != nil {
		t.Fatal(err)
	}
	if want := (&Split{Train: []int{0, 2}, Test: []int{1}, Source: "index-small.mat"}); !reflect.DeepEqual(s, want) {
		t.Errorf("got %+v, want %+v", s, want)
	}
}

// The authors' index files and their copy as text are equal. They are stratified for
// bags in the order of five classes, so on a generated set they test 30 bags of each.
func TestAuthorsSplits(t *testing.T) {
	o := DefaultPrototypes
	o.Bags = 500
	set, err := Prototypes(o)
	if err != nil {
		t.Fatal(err)
	}
	dir := testsupport.Data(t, "mipl-splits", "its files are in data/MNIST_MIPL/index of the repository tangw-seu/DEMIPL")
	for part := 1; part <= 10; part++ {
		mat, err := OpenSplit(filepath.Join(dir, fmt.Sprintf("index%d.mat", part)), 0, 500)
		if err != nil {
			t.Fatal(err)
		}
		text, err := OpenSplit(filepath.Join(dir, "splits.csv"), part, 500)
		if err != nil {
			t.Fatal(err)
		}
		if len(mat.Train) != 350 || len(mat.Test) != 150 {
			t.Errorf("split %d has %d and %d bags", part, len(mat.Train), len(mat.Test))
		}
		if !slices.Equal(mat.Train, text.Train) || !slices.Equal(mat.Test, text.Test) {
			t.Errorf("split %d: the .mat and the CSV differ", part)
		}
		if got := classCounts(set.Labels, mat.Test); !slices.Equal(got, []int{30, 30, 30, 30, 30}) {
			t.Errorf("split %d tests %v bags of the classes, want 30 of each", part, got)
		}
	}
}
