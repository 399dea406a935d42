// Tests that readers warn of features whose differences float32 does not represent.

package bagfile

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/miplc/miplc/data/rawfile"
)

// doubles returns a .npy file of float64.
func doubles(start []byte, values ...float64) []byte {
	b := bytes.NewBuffer(start)
	_ = binary.Write(b, binary.LittleEndian, values)
	return b.Bytes()
}

func TestLossInFloat32(t *testing.T) {
	dir := t.TempDir()
	fortran := bytes.Replace(npyStart("<f8", 3, 2), []byte("'fortran_order': False, "), []byte("'fortran_order': True,  "),
		1)
	seconds, err := os.ReadFile(filepath.Join("testdata", "cases", "seconds.h5"))
	if err != nil {
		t.Fatal(err)
	}
	archive := func(instances []byte) []byte {
		offsets := bytes.NewBuffer(npyStart("<i8", 3))
		_ = binary.Write(offsets, binary.LittleEndian, []int64{0, 1, 3})
		labels := bytes.NewBuffer(npyStart("<i8", 2))
		_ = binary.Write(labels, binary.LittleEndian, []int64{0, 1})
		return archiveOf(t, map[string][]byte{"instances": instances, "offsets": offsets.Bytes(), "labels": labels.Bytes()})
	}
	writeFiles(t, dir, map[string][]byte{
		"seconds.csv":   []byte("bag,label,f1,f2\na,no,1699999998.1,1\na,,1700000003.9,2\nb,yes,1700000001,3\n"),
		"comma.csv":     []byte("bag;label;f1\na;no;1699999998,1\nb;yes;1700000003,9\n"),
		"rows.npz":      archive(doubles(npyStart("<f8", 3, 2), 1, 1699999998.1, 2, 1700000003.9, 3, 1700000001)),
		"columns.npz":   archive(doubles(fortran, 1, 2, 3, 1699999998.1, 1700000003.9, 1700000001)),
		"seconds.h5":    seconds,
		"h5.csv":        []byte("bag,label,file\na,no,seconds.h5\nb,yes,seconds.h5#features\n"),
		"few.csv":       []byte("bag,label,f1\na,no,16777216.5\nb,yes,16777219.5\n"),
		"exact.csv":     []byte("bag,label,f1\na,no,16777216\nb,yes,16777218\n"), // differ by a few steps, exactly
		"days.csv":      []byte("bag,label,f1\na,no,1700000000\nb,yes,1700100000\n"),
		"roundoff.csv":  []byte("bag,label,f1\na,no,0.30000000000000004\nb,yes,0.3\n"),
		"constant.csv":  []byte("bag,label,f1,f2\na,no,1700000001,0\nb,yes,1700000001,0.1\n"),
		"small.csv":     []byte("bag,label,f1\na,no,1e-30\nb,yes,2e-30\n"),
		"extremes.csv":  []byte("bag,label,f1,f2\na,no,3.4e38,-1\nb,yes,-3.4e38,1\n"),
		"float32.npz":   archive(zeros(3, 2)),
		"plain.npy.csv": []byte("bag,label,file\na,no,zeros.npy\nb,yes,zeros.npy\n"), "zeros.npy": zeros(3, 2),
	})
	for file, want := range map[string][]string{
		"seconds.csv": {`feature "f1" has values from 1699999998.1 to 1700000003.9, of which float32 keeps one: subtract a ` +
			`constant such as 1700000000 from it`},
		"comma.csv": {`feature "f1" has values from 1699999998.1 to 1700000003.9, of which float32 keeps one: subtract a ` +
			`constant such as 1700000000 from it`},
		"rows.npz": {"feature 2 has values from 1699999998.1 to 1700000003.9, of which float32 keeps one: subtract a " +
			"constant such as 1700000000 from it"},
		"columns.npz": {"feature 2 has values from 1699999998.1 to 1700000003.9, of which float32 keeps one: subtract a " +
			"constant such as 1700000000 from it"},
		"h5.csv": {"feature 1 has values from 1700000000 to 1700000005, of which float32 keeps one: subtract a " +
			"constant such as 1700000000 from it"},
		"few.csv": {`feature "f1" has values from 16777216.5 to 16777219.5, of which float32 keeps at most 3: subtract a ` +
			`constant such as 16777200 from it`},
		"exact.csv": nil, "days.csv": nil, "roundoff.csv": nil, "constant.csv": nil, "small.csv": nil, "extremes.csv": nil,
		"float32.npz": nil, "plain.npy.csv": nil,
	} {
		path := filepath.Join(dir, file)
		d, err := OpenWith(path, Reading{Labels: KnownLabels})
		if err != nil {
			t.Error(err)
			continue
		}
		var got []string
		for _, text := range d.Warnings {
			if text, found := strings.CutPrefix(text, path+": "); found { // bags of the same file have a line
				got = append(got, text)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", file, got, want)
		}
	}
}

func TestLossInMAT(t *testing.T) {
	bag := func(label float64, instances ...float64) []*rawfile.MATArray { // of two features, in columns
		n := len(instances) / 2
		return []*rawfile.MATArray{{Class: rawfile.MATDouble, Dims: []int{n, 2}, Numbers: instances},
			{Class: rawfile.MATDouble, Dims: []int{1, 1}, Numbers: []float64{label}}}
	}
	a, b := bag(1, 1, 2, 1699999998.1, 1700000003.9), bag(2, 3, 1700000001)
	table := &rawfile.MATArray{Name: "data", Class: rawfile.MATCell, Dims: []int{2, 2}, Cells: []*rawfile.MATArray{a[0],
		b[0], a[1], b[1]}}
	d, err := bagsOfVariables([]*rawfile.MATArray{table}, "a.mat", Reading{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"a.mat: feature 2 has values from 1699999998.1 to 1700000003.9, of which float32 keeps one: " +
		"subtract a constant such as 1700000000 from it"}
	if !slices.Equal(d.Warnings, want) {
		t.Errorf("%q, want %q", d.Warnings, want)
	}
}
