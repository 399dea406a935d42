// What is written is read again, in every format.

package bagfile

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/internal/testkit/datatest"
)

func TestRoundTrips(t *testing.T) {
	full := datatest.Small()
	plain := datatest.Small()
	plain.Labels, plain.InstLabels, plain.ClassNames, plain.BagNames = nil, nil, nil, nil
	sorted := datatest.Small()
	sorted.ClassNames = []string{"crow", "jay", "wren"}
	numbers := datatest.Small()
	numbers.ClassNames = []string{"2", "4", "10"}
	quoted := datatest.Small()
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
	d := datatest.Small()
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
		if err := Save(a, datatest.Small()); err != nil {
			t.Fatal(err)
		}
		if err := Save(b, datatest.Small()); err != nil {
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
