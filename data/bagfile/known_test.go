// Certain labels, several labels, and groups.

package bagfile

import (
	"archive/zip"
	"bytes"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/internal/diag"
)

// Bags to predict need no candidates: unknown labels may be any class of the model.
func TestNPZWithoutCandidates(t *testing.T) {
	d := small()
	var b bytes.Buffer
	z := &npzWriter{zip: zip.NewWriter(&b)}
	writeArray(z, keyInstances, npyStart("<f4", 6, 2), d.Instances)
	z.ints(keyOffsets, d.Offsets)
	z.ints(keyLabels, []int{1, -1, 2})
	z.zip.Close()
	read := func(classes ...string) (*data.Dataset, error) {
		return decodeNPZ(bytes.NewReader(b.Bytes()), int64(b.Len()), "bags.npz",
			Reading{Columns: Columns{ModelClasses: classes}})
	}
	got, err := read("x", "y", "z")
	if err != nil || !slices.Equal(got.Candidates, []uint8{0, 1, 0, 1, 1, 1, 0, 0, 1}) ||
		!slices.Equal(got.ClassNames, []string{"x", "y", "z"}) {
		t.Errorf("%v, %+v", err, got)
	}
	one := "bag,label,candidates,f1\na,y,,1\n"
	if got, err := decodeCSV(strings.NewReader(one), "one.csv",
		Reading{Columns: Columns{ModelClasses: []string{"x", "y"}}}); err != nil ||
		!slices.Equal(got.TrueNames(0), []string{"y"}) {
		t.Errorf("one bag with a label: %v, %+v", err, got)
	}
	for want, classes := range map[string][]string{"bag 3 has the label 2, the model has 2 classes": {"x", "y"},
		`no array "candidates"`: nil} {
		if _, err := read(classes...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	_, err = read()
	if list, _ := diag.ListOf(err); len(list) != 1 || list[0].Pos.File != "bags.npz" ||
		!slices.Equal(list[0].Notes, []string{FlagForm.certainLabels()}) {
		t.Errorf("no advice: %#v", err)
	}
}

// With certain labels no candidates are needed.
func TestKnownLabels(t *testing.T) {
	d := small()
	d.Labels = []int{0, 2, 1}
	var b bytes.Buffer
	z := &npzWriter{zip: zip.NewWriter(&b)}
	writeArray(z, keyInstances, npyStart("<f4", 6, 2), d.Instances)
	z.ints(keyOffsets, d.Offsets)
	z.ints(keyLabels, d.Labels)
	z.zip.Close()
	got, err := decodeNPZ(bytes.NewReader(b.Bytes()), int64(b.Len()), "bags.npz", Reading{Labels: KnownLabels})
	if err != nil || !slices.Equal(got.Candidates, []uint8{1, 0, 0, 0, 0, 1, 0, 1, 0}) || got.Classes != 3 {
		t.Errorf("%v, %+v", err, got)
	}
	text := "bag,label,candidates,f1\na,x,x y,1\na,,,2\nb,y,x y,1\n"
	got, err = decodeCSV(strings.NewReader(text), "bags.csv", Reading{Labels: KnownLabels})
	if err != nil || !slices.Equal(got.Candidates, []uint8{1, 0, 0, 1}) || !slices.Equal(got.Labels, []int{0, 1}) {
		t.Errorf("%v, %+v", err, got)
	}
	d.Labels = []int{0, -1, 2}
	b.Reset()
	if err := Write(&b, d, "bags.npz"); err != nil {
		t.Fatal(err)
	}
	if _, err := decodeNPZ(bytes.NewReader(b.Bytes()), int64(b.Len()), "bags.npz",
		Reading{Labels: KnownLabels}); err == nil || !strings.Contains(err.Error(),
		"bag 2 has the label -1 of 3 classes, but data.labels is known") {
		t.Error(err)
	}
}

// Numbers that are no classes, such as dates or numbers of patients, are one error, without memory for all of them.
func TestLargeLabels(t *testing.T) {
	npz := func(labels ...int) (*data.Dataset, error) {
		var b bytes.Buffer
		z := &npzWriter{zip: zip.NewWriter(&b)}
		writeArray(z, keyInstances, npyStart("<f4", 6, 2), small().Instances)
		z.ints(keyOffsets, small().Offsets)
		z.ints(keyLabels, labels)
		z.zip.Close()
		return decodeNPZ(bytes.NewReader(b.Bytes()), int64(b.Len()), "bags.npz", Reading{Labels: KnownLabels})
	}
	for _, labels := range [][]int{{0, 1, 1 << 61}, {0, 1, math.MaxInt64}, {20250131, 20250131, 20250131}, {0, 1, 3}} {
		want := fmt.Sprintf(`array "labels": the largest label is %d, but the bags have only 3 true labels in all`,
			slices.Max(labels))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := npz(labels...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("labels %v: %v", labels, err)
		}
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > 16<<20 {
			t.Errorf("labels %v: %d bytes were allocated", labels, used)
		}
	}
	// A model's bags may have a label that no other bag has.
	predicted := Reading{Labels: KnownLabels, Columns: Columns{ModelClasses: strings.Split("abcdef", "")}}
	d := &data.Dataset{Offsets: []int{0, 1}, Labels: []int{5}}
	if err := setLabelsAsCandidates(d, predicted); err != nil || d.Classes != 6 {
		t.Errorf("one bag of the last class: %d classes, %v", d.Classes, err)
	}
}

// Bags with any number of labels come back from every format; bags to predict need no labels.
func TestMultiLabels(t *testing.T) {
	d := small()
	d.Multi, d.Labels, d.Candidates = true, nil, []uint8{1, 1, 0, 0, 0, 0, 0, 1, 1}
	for _, name := range []string{"bags.npz", "bags.csv"} {
		var b bytes.Buffer
		if err := Write(&b, d, name); err != nil {
			t.Fatal(err)
		}
		read := func(o Reading) (*data.Dataset, error) {
			if name == "bags.npz" {
				return decodeNPZ(bytes.NewReader(b.Bytes()), int64(b.Len()), name, o)
			}
			return decodeCSV(bytes.NewReader(b.Bytes()), name, o)
		}
		got, err := read(Reading{Labels: MultiLabels})
		if err != nil || !got.Multi || got.Hash() != d.Hash() {
			t.Errorf("%s: %v, %+v", name, err, got)
		}
		if _, err := read(Reading{}); err == nil {
			t.Errorf("%s: sets of labels are read as one label", name)
		}
	}
	classes := Columns{ModelClasses: []string{"x", "y", "z"}}
	for text, want := range map[string]struct {
		multi  bool
		labels []uint8
	}{
		"bag,label,f1\na,y x,1\na,,2\nb,,1\n": {true, []uint8{1, 1, 0, 0, 0, 0}},
		"bag,label,f1\na,,1\nb,,1\n":          {false, []uint8{1, 1, 1, 1, 1, 1}},
		"bag,f1\na,1\nb,1\n":                  {false, []uint8{1, 1, 1, 1, 1, 1}},
	} {
		got, err := decodeCSV(strings.NewReader(text), "bags.csv", Reading{Labels: MultiLabels, Columns: classes})
		if err != nil || got.Multi != want.multi || !slices.Equal(got.Candidates, want.labels) {
			t.Errorf("%q: %v, %+v", text, err, got)
		}
	}
	for text, want := range map[string]string{
		"bag,label,f1\na,x y,1\na,x,2\n":        `bag 1 ("a") has the labels "x" here and "x y" in line 2`,
		"bag,label,f1\na,x x,1\n":               `bag 1 ("a") lists the label "x" twice`,
		"bag,label,f1\na,x|y,1\n":               `bag 1: "x|y" does not look like the name of a class`,
		"bag,f1\na,1\n":                         `the header has no column "label"`,
		"bag,label,f1\na,x,1\nb,,2\n":           "the number of classes is 1",
		"# classes: x y\nbag,label,f1\na,x,1\n": `class "y" has no examples: it is a label of no bag`,
	} {
		if _, err := decodeCSV(strings.NewReader(text), "bags.csv", Reading{Labels: MultiLabels}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// Groups come back from every format that is written.
func TestGroups(t *testing.T) {
	d := small()
	d.Groups, d.GroupName = []string{"p 1", "p,2", "p 1"}, "patient"
	for name, o := range map[string]Reading{"bags.npz": {},
		"bags.csv": {Columns: Columns{Roles: Roles{Group: "patient"}}}} {
		var b bytes.Buffer
		if err := Write(&b, d, name); err != nil {
			t.Fatal(err)
		}
		var got *data.Dataset
		var err error
		if name == "bags.npz" {
			got, err = decodeNPZ(bytes.NewReader(b.Bytes()), int64(b.Len()), name, o)
		} else {
			got, err = decodeCSV(&b, name, o)
		}
		if err != nil || !slices.Equal(got.Groups, d.Groups) || got.GroupName != "patient" || got.Hash() != d.Hash() {
			t.Errorf("%s: %v, groups %q of %q", name, err, got.Groups, got.GroupName)
		}
	}
	for text, want := range map[string]string{
		"bag,label,candidates,patient,f1\na,x,x y,p,1\na,,,q,2\nb,y,x y,q,1\n": `bag 1 ("a") has the group "q" here and ` +
			`"p" in line 2`,
		"bag,label,candidates,patient,f1\na,x,x y,p,1\nb,y,x y,,1\n": `bag 2 ("b") has no group: the column patient is empty`,
		"bag,label,candidates,f1\na,x,x y,1\nb,y,x y,1\n":            `the header has no column "patient"`,
	} {
		_, err := decodeCSV(strings.NewReader(text), "bags.csv", Reading{Columns: Columns{Roles: Roles{Group: "patient"}}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
