package bagfile

import (
	"archive/zip"
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/datatest"
)

// Bags to predict need no candidates: unknown labels may be any class of the model.
func TestNPZWithoutCandidates(t *testing.T) {
	d := datatest.Small()
	var b bytes.Buffer
	z := &npzWriter{zip: zip.NewWriter(&b)}
	writeArray(z, keyInstances, npyStart("<f4", 6, 2), d.Instances)
	z.ints(keyOffsets, d.Offsets)
	z.ints(keyLabels, []int{1, -1, 2})
	z.zip.Close()
	read := func(classes ...string) (*data.Dataset, error) {
		return decodeNPZ(bytes.NewReader(b.Bytes()), int64(b.Len()), "bags.npz", Options{Columns: Columns{Classes: classes}})
	}
	got, err := read("x", "y", "z")
	if err != nil || !slices.Equal(got.Candidates, []uint8{0, 1, 0, 1, 1, 1, 0, 0, 1}) || !slices.Equal(got.ClassNames, []string{"x", "y", "z"}) {
		t.Errorf("%v, %+v", err, got)
	}
	for want, classes := range map[string][]string{"bag 3 has the label 2, the model has 2 classes": {"x", "y"}, `no array "candidates"`: nil} {
		if _, err := read(classes...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// Certain labels need no candidates.
func TestKnownLabels(t *testing.T) {
	d := datatest.Small()
	d.Labels = []int{0, 2, 1}
	var b bytes.Buffer
	z := &npzWriter{zip: zip.NewWriter(&b)}
	writeArray(z, keyInstances, npyStart("<f4", 6, 2), d.Instances)
	z.ints(keyOffsets, d.Offsets)
	z.ints(keyLabels, d.Labels)
	z.zip.Close()
	got, err := decodeNPZ(bytes.NewReader(b.Bytes()), int64(b.Len()), "bags.npz", Options{KnownLabels: true})
	if err != nil || !slices.Equal(got.Candidates, []uint8{1, 0, 0, 0, 0, 1, 0, 1, 0}) || got.Classes != 3 {
		t.Errorf("%v, %+v", err, got)
	}
	text := "bag,label,candidates,f1\na,x,x y,1\na,,,2\nb,y,x y,1\n"
	got, err = decodeCSV(strings.NewReader(text), "bags.csv", Options{KnownLabels: true})
	if err != nil || !slices.Equal(got.Candidates, []uint8{1, 0, 0, 1}) || !slices.Equal(got.Labels, []int{0, 1}) {
		t.Errorf("%v, %+v", err, got)
	}
	d.Labels = []int{0, -1, 2}
	b.Reset()
	if err := Write(&b, d, "bags.npz"); err != nil {
		t.Fatal(err)
	}
	if _, err := decodeNPZ(bytes.NewReader(b.Bytes()), int64(b.Len()), "bags.npz", Options{KnownLabels: true}); err == nil || !strings.Contains(err.Error(), "bag 2 has the label -1 of 3 classes, but data.labels is known") {
		t.Error(err)
	}
}

// Groups come back from every format that is written.
func TestGroups(t *testing.T) {
	d := datatest.Small()
	d.Groups, d.GroupName = []string{"p 1", "p,2", "p 1"}, "patient"
	for name, o := range map[string]Options{"bags.npz": {}, "bags.csv": {Columns: Columns{Roles: Roles{Group: "patient"}}}} {
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
		"bag,label,candidates,patient,f1\na,x,x y,p,1\na,,,q,2\nb,y,x y,q,1\n": `bag 1 ("a") has the group "q" here and "p" in line 2`,
		"bag,label,candidates,patient,f1\na,x,x y,p,1\nb,y,x y,,1\n":           `bag 2 ("b") has no group: the column patient is empty`,
		"bag,label,candidates,f1\na,x,x y,1\nb,y,x y,1\n":                      `the header has no column "patient"`,
	} {
		_, err := decodeCSV(strings.NewReader(text), "bags.csv", Options{Columns: Columns{Roles: Roles{Group: "patient"}}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
