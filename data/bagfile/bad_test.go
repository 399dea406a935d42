// Messages for bad files.

package bagfile

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/testkit/testsupport"
)

// badFile is a broken file and the function that opens it.
type badFile struct {
	name  string // with its extension
	bytes []byte
	open  func(path string) error // nil: OpenWith under a limit of 1 MiB
}

// TestBadFiles opens broken files of every kind. The expected messages are in testdata/bad, one .out
// for each file.
func TestBadFiles(t *testing.T) {
	files := slices.Concat(badNPZ(t), badCSV(t), badMAT(t))
	if len(files) < 20 {
		t.Fatalf("only %d files", len(files))
	}
	for _, f := range files {
		t.Run(f.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), f.name)
			if err := os.WriteFile(path, f.bytes, 0o644); err != nil {
				t.Fatal(err)
			}
			if f.open == nil {
				f.open = func(path string) error {
					_, err := OpenWith(path, Reading{MaxBytes: 1 << 20})
					return err
				}
			}
			err := f.open(path)
			if err == nil {
				t.Fatal("the file was read without an error")
			}
			got := strings.ReplaceAll(err.Error(), path, f.name) + "\n"
			testsupport.CheckGolden(t, filepath.Join("testdata", "bad", f.name+".out"), got)
			if !strings.Contains(got, f.name) {
				t.Errorf("the error does not name the file: %s", got)
			}
		})
	}
}

// npzEntry is one array of an archive, with header and elements.
type npzEntry struct {
	name  string
	bytes []byte
}

func npzBytes(t testing.TB, entries ...npzEntry) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, e := range entries {
		w, err := z.Create(e.name + ".npy")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(e.bytes); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func f4(shape []int, x ...float32) npzEntry {
	b := npyStart("<f4", shape...)
	for _, v := range x {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return npzEntry{keyInstances, b}
}

func i8(name string, x ...int) npzEntry {
	b := npyStart("<i8", len(x))
	for _, v := range x {
		b = binary.LittleEndian.AppendUint64(b, uint64(v))
	}
	return npzEntry{name, b}
}

func u1(shape []int, x ...uint8) npzEntry {
	return npzEntry{keyCandidates, append(npyStart("|u1", shape...), x...)}
}

func badNPZ(t testing.TB) []badFile {
	x := f4([]int{3, 2}, 1, 2, 3, 4, 5, 6)
	offsets := i8(keyOffsets, 0, 2, 3)
	s := u1([]int{2, 2}, 1, 1, 0, 1)
	good := npzBytes(t, x, offsets, s)
	nan := float32(math.NaN())
	damaged := slices.Clone(good)
	damaged[30+len("instances.npy")+12] ^= 0x55 // in the packed data of the first array
	bomb := npzEntry{keyInstances, append(npyStart("<f4", 1<<20, 2), make([]byte, 8<<20)...)}
	return []badFile{
		{name: "truncated.npz", bytes: good[:len(good)/2]},
		{name: "empty.npz", bytes: nil},
		{name: "one-array.npz", bytes: x.bytes},
		{name: "no-candidates.npz", bytes: npzBytes(t, x, offsets, u1([]int{2, 2}, 1, 1, 0, 0), i8(keyLabels, 0, 1))},
		{name: "not-zip.npz", bytes: []byte("bag,label,candidates,f1\n")},
		{name: "damaged.npz", bytes: damaged},
		{name: "missing-keys.npz", bytes: npzBytes(t, x)},
		{name: "twice.npz", bytes: npzBytes(t, x, offsets, s, s)},
		{name: "nan.npz", bytes: npzBytes(t, f4([]int{3, 2}, 1, 2, 3, nan, 5, 6), offsets, s)},
		{name: "float64-too-large.npz", bytes: npzBytes(t, npzEntry{keyInstances,
			binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(npyStart("<f8", 2, 1), math.Float64bits(1e300)),
				0)}, i8(keyOffsets, 0, 1, 2), s)},
		{name: "empty-bag.npz", bytes: npzBytes(t, x, i8(keyOffsets, 0, 3, 3), s)},
		{name: "offsets-none.npz", bytes: npzBytes(t, x, i8(keyOffsets, 0)), open: func(path string) error { // to predict
			_, err := OpenWith(path, Reading{Columns: Columns{ModelClasses: []string{"a", "b"}}})
			return err
		}},
		{name: "offsets-sizes.npz", bytes: npzBytes(t, x, i8(keyOffsets, 2, 1), s)},
		{name: "offsets-fall.npz", bytes: npzBytes(t, x, i8(keyOffsets, 0, 4, 3), s)},
		{name: "offsets-beyond.npz", bytes: npzBytes(t, x, i8(keyOffsets, 0, 2, 1<<40), s)},
		{name: "offsets-count.npz", bytes: npzBytes(t, x, i8(keyOffsets, 0, 3), s)},
		{name: "truth-outside.npz", bytes: npzBytes(t, x, offsets, s, i8(keyLabels, 1, 0))},
		{name: "group-name-of-two.npz", bytes: npzBytes(t, x, offsets, s, i8(keyGroups, 1, 2), i8(keyGroupName, 1, 2))},
		{name: "labels-from-one.npz", bytes: npzBytes(t, x, offsets, s, i8(keyLabels, 1, 2))},
		{name: "labels-float.npz", bytes: npzBytes(t, x, offsets, s, npzEntry{keyLabels, append(npyStart("<f4", 2),
			words(math.Float32bits(0.5), 0)...)})},
		{name: "class-without-examples.npz", bytes: npzBytes(t, x, offsets, u1([]int{2, 3}, 1, 0, 1, 1, 0, 0))},
		{name: "candidate-numbers.npz", bytes: npzBytes(t, x, offsets, u1([]int{2, 2}, 1, 2, 2, 3))},
		{name: "candidates-flat.npz", bytes: npzBytes(t, x, offsets, u1([]int{4}, 1, 1, 0, 1))},
		{name: "text-instances.npz", bytes: npzBytes(t, npzEntry{keyInstances, append(npyStart("<U1", 3, 2),
			make([]byte, 24)...)}, offsets, s)},
		{name: "object-type.npz", bytes: npzBytes(t, npzEntry{keyInstances, npyStart("|O", 3, 2)}, offsets, s)},
		{name: "wrong-magic.npz", bytes: npzBytes(t, npzEntry{keyInstances, []byte("NUMPY, or so it says")}, offsets, s)},
		{name: "array-cut.npz", bytes: npzBytes(t, npzEntry{keyInstances, x.bytes[:len(x.bytes)-4]}, offsets, s)},
		{name: "array-long.npz", bytes: npzBytes(t, npzEntry{keyInstances, append(slices.Clone(x.bytes), 0)}, offsets, s)},
		{name: "shape-overflow.npz", bytes: npzBytes(t, npzEntry{keyInstances, npyStart("<f4", 1<<62, 1<<62)}, offsets, s)},
		{name: "zip-bomb.npz", bytes: npzBytes(t, bomb, offsets, s)},
		{name: "zip-bomb-hidden.npz", bytes: npzBytes(t, npzEntry{keyInstances, append(npyStart("<f4", 3, 2),
			make([]byte, 8<<20)...)}, offsets, s)},
		{name: "claims-much.npz", bytes: npzBytes(t, npzEntry{keyInstances, npyStart("<f4", 1<<30, 1<<10)}, offsets, s)},
	}
}

func gzipped(t testing.TB, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if _, err := z.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func badCSV(t testing.TB) []badFile {
	const head = "bag,label,candidates,f1,f2\n"
	packed := gzipped(t, []byte(head+"1,a,a b,1,2\n"))
	damaged := slices.Clone(packed)
	damaged[len(damaged)-6] ^= 1 // in the checksum
	text := func(name, s string) badFile { return badFile{name: name + ".csv", bytes: []byte(s)} }
	return []badFile{
		text("empty", ""),
		text("only-header", head),
		text("header", "bag,labels,candidates,f1\n"),
		text("no-features", "bag,label,candidates\n"),
		text("nan", head+"1,a,a b,1,2\n1,,,3,NaN\n"),
		text("too-large", head+"1,a,a b,1e60,2\n"),
		text("not-a-number", head+"1,a,a b,1,2\n2,b,a b,x,2\n"),
		text("fields", head+"1,a,a b,1\n"),
		text("quote", head+"1,a,a b,1,\"2\n"),
		text("quote-over-rows", head+"1,a,a b,1,2\n2,a,a b,\"1,2\n3,a,a b,1,2\n4,a,a b,1,2\n"),
		text("quote-closed-by-another", "# classes: a b\n"+head+"1,a,a b,1,2\n2,\"a,a b,1,2\n3,\"a\",a b,1,2\n"),
		text("truth-outside", head+"1,c,a b,1,2\n2,c,b c,1,2\n"),
		text("no-candidates", head+"1,,,1,2\n"),
		text("bag-comes-back", head+"1,a,a b,1,2\n2,b,a b,1,2\n1,a,a b,1,2\n"),
		text("two-truths", head+"1,a,a b,1,2\n1,b,,1,2\n"),
		text("two-candidate-sets", head+"1,a,a b,1,2\n1,,b c,1,2\n"),
		text("unknown-class", "# classes: cat dog\n"+head+"1,cat,cat dgo,1,2\n"),
		text("instance-label", "bag,label,candidates,instance_label,f1\n1,a,a b,,1\n2,b,a b,b|,2\n"),
		text("class-without-examples", "# classes: cat dog cow\n"+head+"1,cat,cat dog,1,2\n"),
		text("one-class", head+"1,a,a,1,2\n"),
		{"long-line.csv", []byte(head + strings.Repeat(",", 9<<20)), func(path string) error {
			_, err := Open(path)
			return err
		}},
		{name: "truncated.csv.gz", bytes: packed[:len(packed)-12]},
		{name: "checksum.csv.gz", bytes: damaged},
		{name: "not-gzip.csv.gz", bytes: []byte(head)},
		{name: "gzip-bomb.csv.gz", bytes: gzipped(t, []byte(head+strings.Repeat("1,a,a b,1,2\n", 1<<20)))},
	}
}

// element returns a data element of a MAT file, little-endian and padded.
func element(typ uint32, data []byte) []byte {
	b := binary.LittleEndian.AppendUint32(nil, typ)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(data)))
	b = append(b, data...)
	return append(b, make([]byte, -len(data)&7)...)
}

func words(numbers ...uint32) (b []byte) {
	for _, n := range numbers {
		b = binary.LittleEndian.AppendUint32(b, n)
	}
	return b
}

// matDoubles returns a column-major array of doubles.
func matDoubles(name string, rows, columns int, x ...float64) []byte {
	var data []byte
	for _, v := range x {
		data = binary.LittleEndian.AppendUint64(data, math.Float64bits(v))
	}
	return element(14, slices.Concat(element(6, words(6, 0)), element(5, words(uint32(rows), uint32(columns))),
		element(1, []byte(name)), element(9, data)))
}

func matCells(name string, rows, columns int, cells ...[]byte) []byte {
	return element(14, slices.Concat(element(6, words(1, 0)), element(5, words(uint32(rows), uint32(columns))),
		element(1, []byte(name)), slices.Concat(cells...)))
}

func matFile(variables ...[]byte) []byte {
	head := append(bytes.Repeat([]byte(" "), 124), 0, 1, 'I', 'M')
	return append(head, slices.Concat(variables...)...)
}

func packed(t testing.TB, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	z := zlib.NewWriter(&out)
	if _, err := z.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return append(words(15, uint32(out.Len())), out.Bytes()...)
}

// matBagsFile returns a file of bags, each given by its instances, candidates and true label.
func matBagsFile(bags ...[3][]byte) []byte {
	var cells [][]byte
	for column := range 3 {
		for _, b := range bags {
			cells = append(cells, b[column])
		}
	}
	return matFile(matCells("data", len(bags), 3, cells...))
}

func badMAT(t testing.TB) []badFile {
	good, err := os.ReadFile(filepath.Join("testdata", "bags-plain.mat"))
	if err != nil {
		t.Fatal(err)
	}
	small, err := os.ReadFile(filepath.Join("testdata", "bags.mat"))
	if err != nil {
		t.Fatal(err)
	}
	damaged := slices.Clone(small)
	damaged[len(damaged)-3] ^= 1
	v73 := slices.Clone(good[:600])
	copy(v73[124:], []byte{0, 2, 'I', 'M'})
	one := matDoubles("", 1, 1, 1)
	x := matDoubles("", 1, 2, 0.5, 2)
	ab := matDoubles("", 1, 2, 1, 2)
	return []badFile{
		{name: "truncated.mat", bytes: good[:len(good)-40]},
		{name: "truncated-packed.mat", bytes: small[:len(small)-20]},
		{name: "checksum.mat", bytes: damaged},
		{name: "empty.mat", bytes: nil},
		{name: "v4.mat", bytes: append(make([]byte, 16), "data"...)},
		{name: "v7.3.mat", bytes: v73},
		{name: "hdf5.mat", bytes: append([]byte("\x89HDF\r\n\x1a\n"), make([]byte, 200)...)},
		{name: "not-mat.mat", bytes: bytes.Repeat([]byte("no MATLAB file here "), 10)},
		{name: "no-cells.mat", bytes: matFile(matDoubles("x", 1, 1, 1))},
		{name: "data-numbers.mat", bytes: matFile(matDoubles("data", 1, 1, 1))},
		{name: "no-variables.mat", bytes: matFile()},
		{name: "labels-from-zero.mat", bytes: matBagsFile([3][]byte{x, matDoubles("", 1, 2, 0, 3), matDoubles("", 1, 1, 3)})},
		{name: "truth-outside.mat", bytes: matBagsFile([3][]byte{x, ab, one}, [3][]byte{x, matDoubles("", 1, 2, 2, 3), one})},
		{name: "label-half.mat", bytes: matBagsFile([3][]byte{x, matDoubles("", 1, 2, 1, 1.5), one})},
		{name: "nan.mat", bytes: matBagsFile([3][]byte{x, ab, one}, [3][]byte{matDoubles("", 1, 2, math.NaN(), 2), ab, one})},
		{name: "empty-bag.mat", bytes: matBagsFile([3][]byte{x, ab, one}, [3][]byte{matDoubles("", 0, 2), ab, one})},
		{name: "features-differ.mat", bytes: matBagsFile([3][]byte{x, ab, one}, [3][]byte{matDoubles("", 2, 3, 1, 2, 3, 4, 5,
			6), ab, one})},
		{name: "transposed.mat", bytes: matBagsFile([3][]byte{x, ab, one}, [3][]byte{matDoubles("", 1, 3, 1, 2, 3), ab,
			one})},
		{name: "cell-in-cell.mat", bytes: matBagsFile([3][]byte{matCells("", 1, 1, one), ab, one})},
		{name: "numbers-missing.mat", bytes: matFile(matCells("data", 1, 2, matDoubles("", 2, 2, 1, 2), ab))},
		{name: "claims-cells.mat", bytes: matFile(matCells("data", 1<<20, 1<<10))},
		{name: "zlib-bomb.mat", bytes: matFile(packed(t, matDoubles("data", 1<<20, 1, make([]float64, 1<<20)...)))},
	}
}

func TestUnknownEndings(t *testing.T) {
	for path, files := range map[string]string{"x.h5": `files ending in ".h5"`, "x": "files without an ending",
		"x.npy": `files ending in ".npy"`} {
		path = filepath.Join(t.TempDir(), path)
		if _, err := Open(path); err == nil || !strings.Contains(err.Error(), "there is no such file") {
			t.Errorf("Open(%s), which is missing: %v", path, err)
		}
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(path); err == nil || !strings.Contains(err.Error(),
			files+" are not read; known are .npz, .mat, .csv and .csv.gz") {
			t.Errorf("Open(%s): %v", path, err)
		}
		// Files with the features of one bag must be listed in a table.
		_, err := Open(path)
		if d := (diag.Diagnostic{}); !errors.As(err, &d) || (len(d.Notes) == 1) != (files != "files without an ending") {
			t.Errorf("Open(%s): %#v", path, err)
		}
		if err := Save(path, small()); err == nil ||
			!strings.Contains(err.Error(), "known are .npz, .csv and .csv.gz") {
			t.Errorf("Save(%s): %v", path, err)
		}
	}
	if _, err := Open(t.TempDir()); err == nil || !strings.Contains(err.Error(), "is a directory, not a file") {
		t.Errorf("a folder: %v", err)
	}
	if _, err := Open("no-such.npz"); err == nil || err.Error() != "no-such.npz: there is no such file" {
		t.Errorf("a missing file: %v", err)
	}
}

// A dataset that cannot be written leaves no file behind.
func TestSaveFailsClean(t *testing.T) {
	dir := t.TempDir()
	spaces := small()
	spaces.ClassNames[1] = "blue jay"
	if err := Save(filepath.Join(dir, "x.csv"), spaces); err == nil ||
		!strings.Contains(err.Error(), `"blue jay" has spaces`) {
		t.Errorf("a class name with spaces: %v", err)
	}
	invalid := small()
	invalid.Labels[0] = 2
	if err := Save(filepath.Join(dir, "x.npz"), invalid); err == nil || !strings.Contains(err.Error(), "bag 1") {
		t.Errorf("an invalid set: %v", err)
	}
	if files, _ := os.ReadDir(dir); len(files) != 0 {
		t.Errorf("%d files are left", len(files))
	}
	if err := Save(dir+".npz/x.npz", small()); err != nil {
		t.Errorf("a missing folder: %v", err)
	}
	if err := Save(dir+".npz", small()); err == nil {
		t.Error("a folder of the same name gives no error")
	}
}

// An archive with other names gets the names that it needs.
func TestNamesOfArrays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.npz")
	x := f4([]int{3, 2}, 1, 2, 3, 4, 5, 6)
	x.name = "X"
	if err := os.WriteFile(path, npzBytes(t, x, i8("y", 0, 1, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := OpenWith(path, Reading{Labels: KnownLabels})
	faults, ok := diag.ListOf(err)
	want := []string{
		"the archive has X, y",
		"name the array with the instances of all bags, [instances, features], instances: instances=X",
		"offsets says where each bag begins: numpy.arange(len(X) + 1) if each row is a bag of one instance; if the array " +
			"is [bags, n, features], " +
			"write instances=X.reshape(-1, X.shape[2]) and offsets=numpy.arange(len(X) + 1) * X.shape[1]",
		"name the array with the class of each bag, from 0, labels: labels=y",
	}
	if !ok || faults[0].Text != `no array "instances" in the archive; instances, offsets and candidates are needed` ||
		!slices.Equal(faults[0].Notes, want) {
		t.Errorf("%q, want %q", faults, want)
	}
	x.name = keyInstances // the advice works
	if err := os.WriteFile(path, npzBytes(t, x, i8(keyOffsets, 0, 1, 2, 3), i8(keyLabels, 0, 1, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	if d, err := OpenWith(path, Reading{Labels: KnownLabels}); err != nil || d.Bags() != 3 {
		t.Errorf("%v, %v", d, err)
	}
}
