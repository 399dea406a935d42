// Tests of the arrays of a bag: its features, which must not be coordinates, and coordinates that fit them.

package bagfile

import (
	"archive/zip"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/miplc/miplc/internal/diag"
)

// archiveOf returns an uncompressed archive of arrays.
func archiveOf(t *testing.T, arrays map[string][]byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for array, content := range arrays {
		w, err := z.CreateHeader(&zip.FileHeader{Name: array + ".npy", Method: zip.Store})
		if err == nil {
			_, err = w.Write(content)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	z.Close()
	return b.Bytes()
}

// writeFiles writes files into a folder.
func writeFiles(t *testing.T, dir string, files map[string][]byte) {
	t.Helper()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// zeros returns an array of a shape.
func zeros(shape ...int) []byte {
	n := 1
	for _, extent := range shape {
		n *= extent
	}
	return npyBytes(make([]float32, n), shape...)
}

// The files of a table have coordinates next to the features. If a bag has none, the others keep theirs.
func TestCoordsOfTables(t *testing.T) {
	dir := t.TempDir()
	writeFiles(t, dir, map[string][]byte{
		"1.npz": archiveOf(t, map[string][]byte{"features": npyBytes(bagValues(0, 2, 3), 2, 3),
			"coords": npyBytes([]float32{1, 2, 3, 4}, 2, 2)}),
		"2.npz": archiveOf(t, map[string][]byte{"features": npyBytes(bagValues(1, 1, 3), 1, 3),
			"coords": npyBytes([]float32{5, 6}, 1, 2)}),
		"3.npz": archiveOf(t, map[string][]byte{"features": npyBytes(bagValues(1, 1, 3), 1, 3)}),
	})
	for second, want := range map[string][]float32{"2.npz": {1, 2, 3, 4, 5, 6}, "3.npz": nil} {
		writeFiles(t, dir, map[string][]byte{"table.csv": []byte(
			"bag,label,candidates,file\na,no,no yes,1.npz\nb,yes,no yes," + second + "\n")})
		d, err := Open(filepath.Join(dir, "table.csv"))
		if err != nil || !slices.Equal(d.Coords, want) || !slices.Equal(d.CoordsOf(0), []float32{1, 2, 3, 4}) ||
			want == nil && d.CoordsOf(1) != nil || want != nil && !slices.Equal(d.CoordsOf(1), want[4:]) {
			t.Errorf("%s: %v, %v", second, d, err)
		}
	}
}

// Coordinates must fit the features of their file, and features must not be coordinates, labels or indices.
// An empty message means that the file is read.
func TestArraysOfABag(t *testing.T) {
	const transposed = "features is [4, 6] and coords [2, 6]: the file has one column per instance, as Julia and " +
		"MATLAB write it; transpose features and coords"
	pair := func(features, coords []byte) []byte {
		return archiveOf(t, map[string][]byte{"features": features, "coords": coords})
	}
	one := func(name string) []byte { return archiveOf(t, map[string][]byte{name: zeros(6, 2)}) }
	coords := zeros(6, 2)
	dir := t.TempDir()
	for _, c := range []struct {
		file    string
		content []byte // nil: the file of testdata/cases
		want    string
	}{
		{"right.h5", nil, ""},
		{"soft-link.h5", nil, ""},
		{"fewer.h5", nil, "coords has 7 rows, features 9: the file mixes two extractions"},
		{"more.h5", nil, "coords has 11 rows, features 9: the file mixes two extractions"},
		{"three.h5", nil, "coords is [9, 3]; [9, 2] is needed: x and y of each instance"},
		{"transposed.h5", nil, transposed},
		{"coords-only.h5", nil, `the file has no array "features"; it has coords`},
		{"transposed.npz", pair(zeros(4, 6), zeros(2, 6)), transposed},
		{"features.npz", pair(zeros(4, 6), coords), "features is [4, 6] and coords [6, 2]: the features have one column " +
			"per instance; transpose features"},
		{"coords.npz", pair(zeros(6, 4), zeros(2, 6)), "features is [6, 4] and coords [2, 6]: the coordinates have one " +
			"column per instance; transpose coords"},
		{"squeezed.npz", pair(zeros(1, 6, 4), zeros(1, 6, 2)), ""},
		{"vector.npz", pair(zeros(6, 4), zeros(6)), "coords is [6]; [6, 2] is needed: x and y of each instance"},
		{"only.npz", one("coords"), `the file has no array "features"; it has coords`},
		{"only.safetensors", safetensorsBytes("coords", "F32", make([]byte, 48), 6, 2),
			`the file has no array "features"; it has coords`},
		{"labels.npz", one("labels"), `the file has no array "features"; it has labels`},
		{"y.npz", one("y"), `the file has no array "features"; it has y`},
		{"indices.npz", one("patch_indices"), `the file has no array "features"; it has patch_indices`},
		{"x.npz", one("x"), ""}, {"X.npz", one("X"), ""}, {"arr.npz", one("arr_0"), ""}, {"feats.npz", one("feats"), ""},
		{"embeddings.npz", one("embeddings"), ""}, {"images.npz", one("images"), ""}, {"instances.npz", one("instances"), ""},
		{"index.npz#index", one("index"), ""}, // the user names it
	} {
		name, _, _ := strings.Cut(c.file, "#")
		if c.content == nil {
			var err error
			if c.content, err = os.ReadFile(filepath.Join("testdata", "cases", name)); err != nil {
				t.Fatal(err)
			}
		}
		table := strings.ReplaceAll("bag,label,file\ns0,no,FILE\ns1,yes,FILE\n", "FILE", c.file)
		writeFiles(t, dir, map[string][]byte{name: c.content, "table.csv": []byte(table)})
		_, err := OpenWith(filepath.Join(dir, "table.csv"), Reading{Labels: KnownLabels})
		want := "<nil>"
		if c.want != "" {
			path := filepath.Join(dir, name)
			want = fmt.Sprintf("%s: bag 1 (\"s0\"): %s\n%[1]s: bag 2 (\"s1\"): %[2]s", path, c.want)
		}
		if got := fmt.Sprint(err); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", c.file, got, want)
		}
	}
}

// If all files are transposed, the bags have as many rows and different features.
func TestTransposedFeatures(t *testing.T) {
	dir := t.TempDir()
	writeFiles(t, dir, map[string][]byte{"1.npy": zeros(4, 7), "2.npy": zeros(4, 6),
		"table.csv": []byte("bag,label,file\na,no,1.npy\nb,yes,2.npy\n")})
	_, err := OpenWith(filepath.Join(dir, "table.csv"), Reading{Labels: KnownLabels})
	const want = "both have 4 rows: if the files have one column per instance, as Julia and MATLAB write them, " +
		"transpose the features"
	if faults, ok := diag.ListOf(err); !ok || len(faults) != 1 || !slices.Equal(faults[0].Notes, []string{want}) {
		t.Errorf("%#v", err)
	}
}
