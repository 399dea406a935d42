// What is written is read again, in every format.

package bagfile

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/miplc/miplc/data"
)

// small returns a valid dataset of 3 bags with 2, 1 and 3 instances, 2 features and 3 classes.
// It has every optional field of a dataset except groups, coordinates and names of features.
func small() *data.Dataset {
	return &data.Dataset{
		Name:       "small",
		Shape:      []int{2},
		Instances:  []float32{0.5, -1, 2, 1e-20, 3, 4, 0, 1, -7.25, 3e8, 0.1, 0.2},
		Offsets:    []int{0, 2, 3, 6},
		Candidates: []uint8{1, 1, 0, 0, 1, 1, 1, 0, 1},
		Classes:    3,
		Labels:     []int{0, 2, -1},
		InstLabels: []int{0, -1, 2, -1, -1, 1},
		ClassNames: []string{"wren", "jay", "crow"},
		BagNames:   []string{"a/1.png", "a/2.png", "b, c/1.png"},
	}
}

func TestRoundTrips(t *testing.T) {
	full := small()
	plain := small()
	plain.Labels, plain.InstLabels, plain.ClassNames, plain.BagNames = nil, nil, nil, nil
	sorted := small()
	sorted.ClassNames = []string{"crow", "jay", "wren"}
	numbers := small()
	numbers.ClassNames = []string{"2", "4", "10"}
	quoted := small()
	quoted.ClassNames = []string{`a"b`, "c,d", "é"}
	for name, d := range map[string]*data.Dataset{"full": full, "plain": plain, "sorted": sorted, "numbers": numbers,
		"quoted": quoted} {
		for _, ending := range []string{".npz", ".csv", ".csv.gz"} {
			t.Run(name+ending, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "set"+ending)
				if err := Save(path, d); err != nil {
					t.Fatal(err)
				}
				got, err := Open(path)
				if err != nil {
					t.Fatal(err)
				}
				if got.Hash() != d.Hash() {
					t.Errorf("the set changed:\ngot  %+v\nwant %+v", got, d)
				}
				if !reflect.DeepEqual(got.BagNames, d.BagNames) {
					t.Errorf("bag names %q, want %q", got.BagNames, d.BagNames)
				}
				if got.Name != "set" {
					t.Errorf("the name is %q", got.Name)
				}
			})
		}
	}
}

// .npz stores every field of a dataset, including the shape of images.
func TestNPZKeepsEverything(t *testing.T) {
	d := small()
	d.Shape = []int{1, 2}
	path := filepath.Join(t.TempDir(), "small.npz")
	if err := Save(path, d); err != nil {
		t.Fatal(err)
	}
	got, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, d) {
		t.Errorf("got  %+v\nwant %+v", got, d)
	}
}

func TestSaveIsDeterministicAndLeavesNothingAside(t *testing.T) {
	for _, ending := range []string{".npz", ".csv", ".csv.gz"} {
		dir := t.TempDir()
		a, b := filepath.Join(dir, "a"+ending), filepath.Join(dir, "b"+ending)
		if err := Save(a, small()); err != nil {
			t.Fatal(err)
		}
		if err := Save(b, small()); err != nil {
			t.Fatal(err)
		}
		x, _ := os.ReadFile(a)
		y, _ := os.ReadFile(b)
		if !bytes.Equal(x, y) {
			t.Errorf("%s: the same set gives two different files", ending)
		}
		if files, _ := os.ReadDir(dir); len(files) != 2 {
			t.Errorf("%s: %d files are left, want 2", ending, len(files))
		}
	}
}
