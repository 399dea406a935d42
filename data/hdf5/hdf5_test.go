// Files of h5py in every layout.

package hdf5

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/miplc/miplc/internal/ndarray"
)

func open(t testing.TB, name string) *File {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	f, err := Open(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// expected returns the array of the same name in testdata/make.py.
func expected(shape []int, shift float32) []float32 {
	out := make([]float32, ndarray.Size(shape))
	for i := range out {
		out[i] = float32(i%97-40) + shift
	}
	return out
}

// checkRows reads all ranges of rows.
func checkRows(t *testing.T, f *File, path string, shape []int, shift float32) {
	t.Helper()
	d, err := f.Dataset(path)
	if err != nil {
		t.Errorf("%s: %v", path, err)
		return
	}
	if !slices.Equal(d.Shape, shape) {
		t.Errorf("%s has the shape %v, expected %v", path, d.Shape, shape)
		return
	}
	want, width := expected(shape, shift), d.Width()
	for from := range d.Rows() + 1 {
		for until := from; until <= d.Rows(); until++ {
			got := make([]float32, (until-from)*width)
			if err := d.ReadRows(got, from); err != nil || !slices.Equal(got, want[from*width:until*width]) {
				t.Fatalf("%s, rows %d to %d: %v, %v", path, from, until, got, err)
			}
		}
	}
	if err := d.ReadRows(make([]float32, width), d.Rows()); err == nil {
		t.Errorf("%s: a row after the last one was read", path)
	}
}

func TestTypes(t *testing.T) {
	f := open(t, "types.h5")
	for _, name := range strings.Fields("f2 f4 f8 bf16 i1 i2 i4 i8 big-f4 big-f8 big-i2") {
		checkRows(t, f, name, []int{5, 3}, 0)
	}
	for _, name := range strings.Fields("u1 u2 u4 u8") {
		checkRows(t, f, name, []int{5, 3}, 40)
	}
}

func TestLayouts(t *testing.T) {
	f := open(t, "layouts.h5")
	for _, name := range strings.Fields("contiguous row-chunks chunks deflate shuffle checksum one-more lzf") {
		checkRows(t, f, name, []int{37, 6}, 0)
	}
	checkRows(t, f, "compact", []int{4, 3}, 0)
	checkRows(t, f, "images", []int{7, 2, 4, 3}, 0)
	checkRows(t, f, "vector", []int{9}, 0)
	checkRows(t, f, "smaller", []int{20, 6}, 0)
	checkRows(t, f, "linked/hard", []int{37, 6}, 0)
}

// Soft links are followed, from the group that they are in or from the root, also through others.
func TestSoftLinks(t *testing.T) {
	for _, name := range []string{"links.h5", "links-latest.h5"} {
		f := open(t, name)
		for path, shape := range map[string][]int{"g/near": {5, 3}, "g/far": {37, 6}, "chain": {37, 6}, "group/near": {5, 3},
			"group/far": {37, 6}} {
			checkRows(t, f, path, shape, 0)
		}
		if names, err := f.Names("group"); err != nil || fmt.Sprint(names) != "[far near x]" {
			t.Errorf("%s: %v, %v", name, names, err)
		}
	}
	checkRows(t, open(t, "layouts.h5"), "link", []int{37, 6}, 0)
}

// Booleans of h5py are enumerated values of one byte.
func TestBooleans(t *testing.T) {
	d, err := open(t, "types.h5").Dataset("flag")
	if err != nil {
		t.Fatal(err)
	}
	got := make([]float32, 2)
	if err := d.ReadRows(got, 0); err != nil || got[0] != 1 || got[1] != 0 {
		t.Errorf("%v, %v", got, err)
	}
}

// checkAll reads all rows together.
func checkAll(t *testing.T, f *File, path string, shape []int) {
	t.Helper()
	d, err := f.Dataset(path)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	got := make([]float32, ndarray.Size(shape))
	if err := d.ReadRows(got, 0); err != nil || !slices.Equal(d.Shape, shape) || !slices.Equal(got, expected(shape, 0)) {
		t.Errorf("%s: %v, %v", path, d.Shape, err)
	}
}

// Lists of members and indexes of chunks in forms of newer versions of HDF5 are refused, with a remedy.
func TestNewerFiles(t *testing.T) {
	f := open(t, "latest.h5")
	for path, want := range map[string]string{"many/slide-077": "list of members", "one-chunk": "HDF5 1.10",
		"chunks": "HDF5 1.10", "deflate": "HDF5 1.10", "grows": "HDF5 1.10", "limited": "HDF5 1.10"} {
		if _, err := f.Dataset(path); err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "write the file without libver") {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestGroups(t *testing.T) {
	f := open(t, "groups.h5")
	names, err := f.Names("bags")
	if err != nil || len(names) != 20 || names[7] != "slide-07" {
		t.Fatalf("%v, %v", names, err)
	}
	for i, name := range names {
		checkRows(t, f, "bags/"+name+"/features", []int{2, 3}, float32(i))
	}
	for _, path := range []string{"bags/slide-99", "other", "bags/slide-01/coords"} {
		if _, err := f.Dataset(path); !errors.Is(err, ErrNotFound) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// Unsupported features give an error that names them.
func TestUnsupported(t *testing.T) {
	for _, c := range []struct{ file, path, want string }{
		{"types.h5", "text", `"text": contains text or lists; numbers are needed`},
		{"types.h5", "scalar", "is a single value"},
		{"types.h5", "unwritten", "only 1 of its 2 chunks were written"},
		{"types.h5", "", "is a group, not a dataset"},
		{"types.h5", "f4/x", `"f4": is a dataset, not a group`},
		{"links.h5", "circle", `the path "circle" has more than`},
		{"links.h5", "dangling", `"dangling" is a soft link to "/g/none", but there is no "g/none"`},
		{"links-latest.h5", "circle", `the path "circle" has more than`},
		{"links-latest.h5", "dangling", `"dangling" is a soft link to "/g/none", but there is no "g/none"`},
		{"layouts.h5", "linked/external", `has no "linked/external"`},
	} {
		if _, err := open(t, c.file).Dataset(c.path); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: %v, expected %q", c.file, c.path, err, c.want)
		}
	}
	for _, content := range []string{"", "text", signature, signature + strings.Repeat("\x00", 40), signature + "\x09" +
		strings.Repeat("\x00", 90)} {
		if _, err := Open(strings.NewReader(content), int64(len(content))); err == nil {
			t.Errorf("%q was opened", content)
		}
	}
}

// h5py writes LZF with compression="lzf".
func TestLZF(t *testing.T) {
	f := open(t, "lzf.h5")
	checkRows(t, f, "small", []int{37, 6}, 0)
	checkRows(t, f, "half", []int{37, 6}, 0)
	checkAll(t, f, "large", []int{1500, 2})
	for name, want := range map[string]float32{"zeros": 0, "noise": 15505} {
		d, err := f.Dataset(name)
		if err != nil {
			t.Fatal(err)
		}
		row := []float32{1, 1}
		if err := d.ReadRows(row, 0); err != nil || row[0] != want {
			t.Errorf("%s: %v, %v", name, row, err)
		}
	}
	for _, damaged := range [][]byte{{31, 1}, {0x20}, {0x20, 0}, {0xe0}, {0xe0, 1}, {0, 7, 0x20, 1},
		{0, 7, 0xe0, 250, 0}} {
		if out, err := expandLZF(nil, damaged, 100); err == nil {
			t.Errorf("%v became %v", damaged, out)
		}
	}
}

// Filters that are not supported are named, with a remedy.
func TestUnsupportedFilters(t *testing.T) {
	for id, want := range map[uint16]string{4: "szip (HDF5 filter 4)", 32001: "blosc (HDF5 filter 32001)",
		32015: "zstd (HDF5 filter 32015)", 40000: "an unknown filter (HDF5 filter 40000)"} {
		b := []byte{2, 1, byte(id), byte(id >> 8), 0, 0, 0, 0, 0, 0}
		if id < 256 {
			b = append(b[:4], b[6:]...)
		}
		if _, err := readFilters(b); err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "h5repack") {
			t.Errorf("filter %d: %v", id, err)
		}
	}
}

// readAll reads all rows of all datasets, but only a part of large ones, because the fuzzer limits
// the time.
func readAll(f *File, path string, depth int) (err error) {
	names, err := f.Names(path)
	if err != nil || depth > 3 {
		return err
	}
	for _, name := range names[:min(len(names), 50)] {
		d, openErr := f.Dataset(path + "/" + name)
		if openErr != nil {
			err = errors.Join(err, openErr, readAll(f, path+"/"+name, depth+1))
			continue
		}
		if d.Width() == 0 {
			continue
		}
		rows := min(d.Rows(), 1<<20/d.Width())
		if readErr := d.ReadRows(make([]float32, rows*d.Width()), 0); readErr != nil {
			err = errors.Join(err, readErr)
		}
	}
	return err
}

// Damage anywhere in a file gives an error or other numbers, never a panic.
func TestDamaged(t *testing.T) {
	for _, name := range []string{"types.h5", "layouts.h5", "latest.h5", "lzf.h5"} {
		content, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		for at := 0; at < len(content); at += 41 {
			for _, damaged := range [][]byte{content[:at], slices.Concat(content[:at], []byte{0xff}, content[at+1:])} {
				if f, err := Open(bytes.NewReader(damaged), int64(len(damaged))); err == nil {
					_ = readAll(f, "", 0)
				}
			}
		}
	}
}

func FuzzOpen(f *testing.F) {
	files, err := filepath.Glob("testdata/*.h5")
	if err != nil || len(files) != 9 {
		f.Fatal(files, err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(content)
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		if file, err := Open(bytes.NewReader(content), int64(len(content))); err == nil {
			_ = readAll(file, "", 0)
		}
	})
}

// A tree whose nodes contain themselves or overlap gives an error.
func TestCircles(t *testing.T) {
	content, err := os.ReadFile(filepath.Join("testdata", "groups.h5"))
	if err != nil {
		t.Fatal(err)
	}
	tree := bytes.Index(content, []byte("TREE\x00"))
	for i := range 20 {
		le.PutUint64(content[tree+32+16*i:], uint64(tree))
	}
	le.PutUint16(content[tree+6:], 20)
	f, err := Open(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Names(""); !errors.Is(err, errDamaged) {
		t.Error(err)
	}
}

func BenchmarkReadRows(b *testing.B) {
	path := os.Getenv("MIPLC_HDF5") // a file with datasets [n, d]
	if path == "" {
		b.Skip("MIPLC_HDF5 names no file")
	}
	file, err := os.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		b.Fatal(err)
	}
	f, err := Open(file, info.Size())
	if err != nil {
		b.Fatal(err)
	}
	names, err := f.Names("")
	if err != nil {
		b.Fatal(err)
	}
	for _, name := range names {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				d, err := f.Dataset(name)
				if err != nil {
					b.Fatal(err)
				}
				to := make([]float32, d.Rows()*d.Width())
				if err := d.ReadRows(to, 0); err != nil {
					b.Fatal(err)
				}
				b.SetBytes(int64(4 * len(to)))
			}
		})
	}
}

func ExampleFile() {
	content, err := os.ReadFile("testdata/groups.h5")
	if err != nil {
		fmt.Println(err)
		return
	}
	f, err := Open(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		fmt.Println(err)
		return
	}
	d, err := f.Dataset("bags/slide-03/features")
	if err != nil {
		fmt.Println(err)
		return
	}
	row := make([]float32, d.Width())
	err = d.ReadRows(row, 1)
	fmt.Println(d.Shape, d.Type, row, err)
	// Output: [2 3] float16 [-34 -33 -32] <nil>
}
