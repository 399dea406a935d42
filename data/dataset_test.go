// Hashes, shapes, and labels in the classes of a model.

package data_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/bagfile"
	"github.com/miplc/miplc/internal/diag"
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

func TestHash(t *testing.T) {
	base := small().Hash()
	changes := map[string]func(*data.Dataset){
		"feature":        func(d *data.Dataset) { d.Instances[3] = 1e-21 },
		"candidate":      func(d *data.Dataset) { d.Candidates[2] = 1 },
		"label":          func(d *data.Dataset) { d.Labels[2] = 0 },
		"instance label": func(d *data.Dataset) { d.InstLabels[1] = 0 },
		"class name":     func(d *data.Dataset) { d.ClassNames[0] = "Wren" },
		"offset":         func(d *data.Dataset) { d.Offsets[1] = 1 },
		"no labels":      func(d *data.Dataset) { d.Labels = nil },
	}
	for name, change := range changes {
		d := small()
		change(d)
		if d.Hash() == base {
			t.Errorf("%s: the change does not change the hash", name)
		}
	}
	same := small()
	same.Name, same.Shape, same.BagNames = "other", []int{1, 1, 2}, nil
	if same.Hash() != base {
		t.Error("the hash depends on the name, the shape or the names of the bags")
	}
}

func TestReshape(t *testing.T) {
	d := small()
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

// openCSV writes a CSV file and opens it.
func openCSV(t *testing.T, text string) *data.Dataset {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bags.csv")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	d, err := bagfile.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TrueMasksIn maps labels by class names. Classes of CSV files have only names.
func TestTrueMasksIn(t *testing.T) {
	const head = "bag,label,candidates,f1\n"
	for _, c := range []struct {
		text    string
		classes []string
		want    string // labels and the error
	}{
		{"1,dog,cat dog,1\n2,cat,cat dog,2\n3,,cat dog,3\n", []string{"cat", "cow", "dog"}, "[[0 0 1] [1 0 0] []] <nil>"},
		{"1,dog,cat dog,1\n", []string{"dog", "cow", "cat"}, "[[1 0 0]] <nil>"},
		{"1,cat,cat emu,1\n", []string{"dog", "cat"}, "[[0 1]] <nil>"},
		{"1,cat,cat emu,1\n2,emu,cat emu,1\n", []string{"dog", "cat"},
			"[[0 1] []] bags: the true label of bag 2, emu, is not one of the classes dog, cat"},
		{"1,emu,cat emu,1\n2,cat,cat emu,1\n3,emu,emu,1\n", []string{"cat"},
			"[[] [1] []] bags: the true label of bag 1, emu, is not one of the classes cat, nor are those of 1 other bag"},
	} {
		d := openCSV(t, head+c.text)
		labels, err := d.TrueMasksIn(c.classes)
		if got := fmt.Sprint(labels, err); got != c.want {
			t.Errorf("%q in %v: %s, want %s", c.text, c.classes, got, c.want)
		}
	}
	d := small()
	d.ClassNames = nil // their numbers alone are known
	if labels, err := d.TrueMasksIn([]string{"wren", "jay", "crow", "tit"}); err != nil ||
		fmt.Sprint(labels) != "[[1 0 0 0] [0 0 1 0] []]" {
		t.Errorf("without names: %v, %v", labels, err)
	}
	if _, err := d.TrueMasksIn([]string{"wren", "jay"}); err == nil ||
		!strings.Contains(err.Error(), "bag 2, 2, is not one of the classes wren, jay") {
		t.Errorf("without names, too many: %v", err)
	}
}

// Find looks up the bags of a file with names by name only: the names of many datasets are numbers, also
// with leading zeros and from 0. It suggests the name that is the same number.
func TestFind(t *testing.T) {
	named := openCSV(t, "bag,label,candidates,f1\n0,,cat dog,1\n3,,cat dog,2\n0002,,cat dog,3\n105,,cat "+
		"dog,4\nwren,,cat dog,5\n")
	numbered := openCSV(t, "bag,label,candidates,f1\n1,,cat dog,1\n2,,cat dog,2\n")
	for _, c := range []struct {
		d    *data.Dataset
		bag  string
		want string // the index and the error
	}{
		{named, "0", "0 <nil>"}, {named, "3", "1 <nil>"}, {named, "0002", "2 <nil>"}, {named, "105", "3 <nil>"},
		{named, "wren", "4 <nil>"},
		{named, "2", `0 f:1: no bag has the name "2" (did you mean "0002"?)`},
		{named, "2.0", `0 f:1: no bag has the name "2.0" (did you mean "0002"?)`},
		{named, "003", `0 f:1: no bag has the name "003" (did you mean "3"?)`},
		{named, "1.05e+02", `0 f:1: no bag has the name "1.05e+02" (did you mean "105"?)`},
		{named, "5", `0 f:1: no bag has the name "5"`}, {named, "jay", `0 f:1: no bag has the name "jay"`},
		{numbered, "2", "1 <nil>"}, {numbered, "0", "0 f:1: there is no bag 0; the dataset has 2 bags"},
		{numbered, "3", "0 f:1: there is no bag 3; the dataset has 2 bags"},
		{numbered, "2.0", `0 f:1: no bag has the name "2.0"; the bags have numbers from 1 to 2 (did you mean "2"?)`},
	} {
		i, err := c.d.Find(diag.Pos{File: "f", Line: 1}, c.bag)
		if got := fmt.Sprint(i, err); got != c.want {
			t.Errorf("%s: %s, want %s", c.bag, got, c.want)
		}
	}
}

// CandidateMasksIn maps candidate sets by class names too. Sets of all classes carry no information.
func TestCandidateMasksIn(t *testing.T) {
	d := openCSV(t, "bag,label,candidates,f1\n1,,cat dog,1\n2,,dog emu,2\n3,,cat dog emu,3\n")
	candidates := d.CandidateMasksIn([]string{"dog", "cow", "cat"})
	if got := fmt.Sprint(candidates(0), candidates(1), candidates(2)); got != "[1 0 1] [1 0 0] []" {
		t.Errorf("candidate sets %s", got)
	}
	d.ClassNames = nil
	candidates = d.CandidateMasksIn([]string{"a", "b"})
	if got := fmt.Sprint(candidates(0), candidates(1)); got != "[1 1] [0 1]" {
		t.Errorf("without names: %s", got)
	}
}
