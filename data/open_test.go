package data

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

func TestRoundTrips(t *testing.T) {
	full := smallSet()
	plain := smallSet()
	plain.Labels, plain.InstLabels, plain.ClassNames, plain.BagNames = nil, nil, nil, nil
	sorted := smallSet()
	sorted.ClassNames = []string{"crow", "jay", "wren"}
	numbers := smallSet()
	numbers.ClassNames = []string{"2", "4", "10"}
	quoted := smallSet()
	quoted.ClassNames = []string{`a"b`, "c,d", "é"}
	for name, d := range map[string]*Dataset{"full": full, "plain": plain, "sorted": sorted, "numbers": numbers, "quoted": quoted} {
		for _, ending := range []string{".npz", ".csv", ".csv.gz"} {
			t.Run(name+ending, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "set"+ending)
				if err := d.Save(path); err != nil {
					t.Fatal(err)
				}
				got, err := Open(path)
				if err != nil {
					t.Fatal(err)
				}
				if got.Hash() != d.Hash() {
					t.Errorf("the set changed on the way:\ngot  %+v\nwant %+v", got, d)
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

// A set keeps every field through .npz, also the shape of an image.
func TestNPZKeepsEverything(t *testing.T) {
	d := smallSet()
	d.Shape = []int{1, 2}
	path := filepath.Join(t.TempDir(), "small.npz")
	if err := d.Save(path); err != nil {
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
		if err := smallSet().Save(a); err != nil {
			t.Fatal(err)
		}
		if err := smallSet().Save(b); err != nil {
			t.Fatal(err)
		}
		x, _ := os.ReadFile(a)
		y, _ := os.ReadFile(b)
		if !bytes.Equal(x, y) {
			t.Errorf("%s: the same set gives two files", ending)
		}
		if files, _ := os.ReadDir(dir); len(files) != 2 {
			t.Errorf("%s: %d files are left, want 2", ending, len(files))
		}
	}
}

func TestHash(t *testing.T) {
	base := smallSet().Hash()
	changes := map[string]func(*Dataset){
		"feature":        func(d *Dataset) { d.Instances[3] = 1e-21 },
		"candidate":      func(d *Dataset) { d.Candidates[2] = 1 },
		"label":          func(d *Dataset) { d.Labels[2] = 0 },
		"instance label": func(d *Dataset) { d.InstLabels[1] = 0 },
		"class name":     func(d *Dataset) { d.ClassNames[0] = "Wren" },
		"offset":         func(d *Dataset) { d.Offsets[1] = 1 },
		"no labels":      func(d *Dataset) { d.Labels = nil },
	}
	for name, change := range changes {
		d := smallSet()
		change(d)
		if d.Hash() == base {
			t.Errorf("%s: the change leaves the hash as it was", name)
		}
	}
	same := smallSet()
	same.Name, same.Shape, same.BagNames = "other", []int{1, 1, 2}, nil
	if same.Hash() != base {
		t.Error("the hash depends on the name, the shape or the names of the bags")
	}
}

func TestReshape(t *testing.T) {
	d := smallSet()
	r, err := d.Reshape([]int{1, 2, 1})
	if err != nil || !reflect.DeepEqual(r.Shape, []int{1, 2, 1}) || r.Hash() != d.Hash() || len(d.Shape) != 1 {
		t.Errorf("reshaped: %+v, %v", r, err)
	}
	for _, shape := range [][]int{nil, {3}, {-1, -2}, {1 << 62, 1 << 62}} {
		if _, err := d.Reshape(shape); err == nil {
			t.Errorf("the shape %v gives no error", shape)
		}
	}
}
