// Bags of several files, in every format of their arrays.

package bagfile

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/x448/float16"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/internal/ndarray"
)

// npyBytes returns a .npy file of float32.
func npyBytes(values []float32, shape ...int) []byte {
	b := bytes.NewBuffer(npyStart("<f4", shape...))
	_ = binary.Write(b, binary.LittleEndian, values)
	return b.Bytes()
}

// safetensorsBytes returns a file with one tensor.
func safetensorsBytes(name, kind string, raw []byte, shape ...int) []byte {
	extents := strings.ReplaceAll(fmt.Sprint(shape), " ", ",")
	header := fmt.Sprintf(`{"__metadata__":{"by":"test"},%q:{"dtype":%q,"shape":%s,"data_offsets":[0,%d]}}`, name, kind,
		extents, len(raw))
	return slices.Concat(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), []byte(header), raw)
}

// halfBytes encodes numbers as float16 or bfloat16.
func halfBytes(values []float32, brain bool) (raw []byte) {
	for _, x := range values {
		bits := float16.Fromfloat32(x).Bits()
		if brain {
			bits = uint16(math.Float32bits(x) >> 16)
		}
		raw = binary.LittleEndian.AppendUint16(raw, bits)
	}
	return raw
}

// archiveBytes returns an archive with one array.
func archiveBytes(name string, method uint16, content []byte) []byte {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	w, _ := z.CreateHeader(&zip.FileHeader{Name: name + ".npy", Method: method})
	w.Write(content)
	z.Close()
	return b.Bytes()
}

// bagValues returns small integers, which every number type represents exactly.
func bagValues(bag, n, dim int) []float32 {
	out := make([]float32, n*dim)
	for i := range out {
		out[i] = float32((i*7+bag*13)%64 - 20)
	}
	return out
}

// writeTable writes bags of 3 features in all formats. It returns the path of the table and the same
// bags in memory.
func writeTable(t testing.TB) (path string, want *data.Dataset) {
	t.Helper()
	dir := t.TempDir()
	want = &data.Dataset{Name: "table", Shape: []int{3}, Classes: 2, ClassNames: []string{"no", "yes"}, Offsets: []int{0}}
	table := "bag,label,candidates,file\n"
	add := func(cell string, n int, file func(values []float32) []byte) {
		i := want.Bags()
		values := bagValues(i, n, 3)
		if file != nil {
			name, _, _ := strings.Cut(cell, "#")
			if err := os.WriteFile(filepath.Join(dir, name), file(values), 0o644); err != nil {
				t.Fatal(err)
			}
		} else { // the file of data/hdf5/testdata/make.py
			for j := range values {
				values[j] = float32(j%97 - 40 + i)
			}
		}
		want.Instances = append(want.Instances, values...)
		want.Offsets = append(want.Offsets, want.Offsets[i]+n)
		label := want.ClassNames[i%2]
		table += fmt.Sprintf("slide-%02d,%s,no yes,%s\n", i, label, cell)
		want.Labels = append(want.Labels, i%2)
		want.Candidates = append(want.Candidates, 1, 1)
		want.BagNames = append(want.BagNames, fmt.Sprintf("slide-%02d", i))
	}
	groups, err := os.ReadFile("../hdf5/testdata/groups.h5")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "all.h5"), groups, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	add("all.h5#bags/slide-00", 2, nil)
	add("all.h5#bags/slide-01/features", 2, nil)
	add("c.npy", 5, func(x []float32) []byte { return npyBytes(x, 5, 3) })
	add("d.npz", 4, func(x []float32) []byte { return archiveBytes("features", zip.Store, npyBytes(x, 4, 3)) })
	add("e.npz#x", 4, func(x []float32) []byte { return archiveBytes("x", zip.Store, npyBytes(x, 1, 4, 3)) })
	add("f.safetensors", 6, func(x []float32) []byte {
		return safetensorsBytes("features", "F16", halfBytes(x, false), 6,
			3)
	})
	add("g.safetensors", 6, func(x []float32) []byte {
		return safetensorsBytes("slide-06", "BF16", halfBytes(x, true), 1,
			6, 3)
	})
	add("h#1.npy", 1, nil)
	want.Instances = append(want.Instances[:len(want.Instances)-3], 1, 2, 3)
	if err := os.WriteFile(filepath.Join(dir, "h#1.npy"), npyBytes([]float32{1, 2, 3}, 1, 3), 0o644); err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(dir, "table.csv")
	if err := os.WriteFile(path, []byte(table), 0o644); err != nil {
		t.Fatal(err)
	}
	return path, want
}

// A dataset on disk equals the one in memory.
func TestTable(t *testing.T) {
	path, want := writeTable(t)
	got, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if !got.OnDisk() || got.Hash() != want.Hash() || got.HashOfInstances() != want.HashOfInstances() {
		t.Errorf("on disk %v, hash %s, want %s", got.OnDisk(), got.Hash(), want.Hash())
	}
	if all, err := got.All(); err != nil || !slices.Equal(all, want.Instances) {
		t.Errorf("%v, %v", all, err)
	}
	for _, bags := range [][]int{want.AllBags(), {5, 1, 2}} {
		a, err := data.NewNormalization(got, bags)
		if err != nil {
			t.Fatal(err)
		}
		if b, _ := data.NewNormalization(want, bags); !slices.Equal(a.Mean, b.Mean) || !slices.Equal(a.Std, b.Std) {
			t.Errorf("statistics %v, want %v", a, b)
		}
	}
	// Read more batches than there are buffers, twice with the same buffers.
	loader, other := data.NewLoader(got, want.MaxInstances(want.AllBags(), 3)), data.NewLoader(want, 0)
	mixed, halves := [][]int{{3, 1}, {0}, {2, 4, 6}, {5}, {7}}, [][]int{{0, 1}, {5}, {6, 0}, {1}} // halves of 16 bits
	for _, c := range []struct {
		draw    *data.Draw
		batches [][]int
	}{{nil, mixed}, {nil, halves}, {nil, mixed}, {nil, halves}, {nil, halves[:1]}, {&data.Draw{N: 3, Seed: 1, Epoch: 2},
		mixed}} {
		var list, wanted []string
		draw, batches := c.draw, c.batches
		for b, err := range loader.Load(batches, draw) {
			list = append(list, fmt.Sprint(b.Bags, b.Instances, b.BagOf, b.Candidates, err))
		}
		for b, err := range other.Load(batches, draw) {
			wanted = append(wanted, fmt.Sprint(b.Bags, b.Instances, b.BagOf, b.Candidates, err))
		}
		if !slices.Equal(list, wanted) {
			t.Errorf("batches %v, want %v", list, wanted)
		}
	}
	for _, batches := range [][][]int{mixed, halves} {
		for range loader.Load(batches, nil) {
			break // must not block forever
		}
	}
	some, err := got.Select([]int{6, 2})
	if err != nil {
		t.Fatal(err)
	}
	if inMemory, _ := want.Select([]int{6, 2}); some.Hash() != inMemory.Hash() {
		t.Error("a selection of a dataset on disk differs")
	}
	npz, csv := filepath.Join(t.TempDir(), "a.npz"), filepath.Join(t.TempDir(), "a.csv")
	for _, name := range []string{npz, csv} {
		if err := Save(name, got); err != nil {
			t.Fatal(err)
		}
		if again, err := Open(name); err != nil || again.Hash() != want.Hash() {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A bag with several rows has the instances of all its files, in their order. Its files keep their own
// coordinates.
func TestBagOfSeveralFiles(t *testing.T) {
	path, want := writeTable(t)
	table := "bag,label,candidates,file\np0,no,no yes,all.h5#bags/slide-00\np1,yes,no yes,all.h5#bags/slide-01\n" +
		"p1,,,c.npy\np1,yes,no yes,d.npz\np2,no,no yes,e.npz#x\np3,yes,no " +
		"yes,f.safetensors\np3,yes,,g.safetensors#slide-06\np3,,,h#1.npy\np4,yes,yes,f.safetensors\np4,,,half.safetensors\n"
	if err := os.WriteFile(path, []byte(table), 0o644); err != nil {
		t.Fatal(err)
	}
	half := bagValues(9, 2, 3)
	if err := os.WriteFile(filepath.Join(filepath.Dir(path), "half.safetensors"), safetensorsBytes("features", "F16",
		halfBytes(half, false), 2, 3), 0o644); err != nil {
		t.Fatal(err)
	}
	want.Instances = slices.Concat(want.Instances, bagValues(5, 6, 3), half)
	want.Offsets = []int{0, 2, 2 + 2 + 5 + 4, 13 + 4, 17 + 6 + 6 + 1, 30 + 6 + 2}
	want.Labels, want.BagNames = []int{0, 1, 0, 1, 1}, []string{"p0", "p1", "p2", "p3", "p4"}
	want.Candidates = []uint8{1, 1, 1, 1, 1, 1, 1, 1, 0, 1}
	got, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if all, err := got.All(); err != nil || !slices.Equal(all, want.Instances) || got.Hash() != want.Hash() {
		t.Errorf("%v, %v, want %v", all, err, want.Instances)
	}
	for bag := range want.Bags() {
		whole, _ := want.Bag(bag)
		for n := range want.Size(bag) {
			rows := []int{n / 3, n/3 + (n+1)/2, n}
			rows = slices.Compact(slices.Sorted(slices.Values(rows)))
			rows = rows[:len(rows)-1]
			part, selected, wanted := make([]float32, 3*(want.Size(bag)-n)), make([]float32, 3*len(rows)), []float32(nil)
			for _, row := range rows {
				wanted = append(wanted, whole[3*row:3*row+3]...)
			}
			if err := got.ReadRange(part, bag, n); err != nil || !slices.Equal(part, whole[3*n:]) {
				t.Errorf("bag %d from instance %d: %v, %v", bag, n, part, err)
			}
			if err := got.ReadSelected(selected, bag, rows); err != nil || !slices.Equal(selected, wanted) {
				t.Errorf("bag %d, instances %v: %v, %v", bag, rows, selected, err)
			}
		}
	}
	for b, err := range data.NewLoader(got, 16).Load([][]int{{4, 4}, {4}}, nil) { // of 16 bits
		if whole, _ := want.Bag(4); err != nil || !slices.Equal(b.Instances[:len(whole)], whole) {
			t.Errorf("%v, %v, want %v", b.Instances, err, whole)
		}
	}
	var sizes []string
	for _, f := range got.Files(1) {
		sizes = append(sizes, fmt.Sprint(f.Name, " ", f.Instances))
	}
	if want := []string{"all.h5 2", "c.npy 5", "d.npz 4"}; !slices.Equal(sizes, want) {
		t.Errorf("files %v, want %v", sizes, want)
	}
}

// A number of 16 bits that is not finite gives the same error as others.
func TestInfiniteHalves(t *testing.T) {
	path, _ := writeTable(t)
	d, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	store := d.Store.(*fileStore)
	for bag, kind := range map[int]string{5: "F16", 6: "BF16"} {
		values := make([]float32, 6*3)
		values[7] = float32(math.Inf(-1))
		b := &store.files[bag]
		if err := os.WriteFile(b.path, safetensorsBytes(b.name, kind, halfBytes(values, kind == "BF16"), 6, 3),
			0o644); err != nil {
			t.Fatal(err)
		}
		if b.info, err = os.Stat(b.path); err != nil { // as if it was not changed
			t.Fatal(err)
		}
	}
	store.opened.Clear()
	for _, bag := range []int{5, 6} {
		for _, err := range data.NewLoader(d, 6).Load([][]int{{bag}, {0}}, nil) {
			if err == nil || !strings.Contains(err.Error(), "feature 2 of instance 3 is -Inf") {
				t.Errorf("bag %d: %v", bag, err)
			}
			break
		}
	}
}

// Errors name the file and the bag.
func TestTableErrors(t *testing.T) {
	header := "bag,label,candidates,file\n"
	nan := float32(math.NaN())
	for name, c := range map[string]struct {
		table, want string
		files       map[string][]byte
	}{
		"missing file": {header + "s1,,a b,x.npy\n", `x.npy: bag 1 ("s1"): there is no such file`, nil},
		"extension": {header + "s1,,a b,x.pt\n", `x.pt: bag 1 ("s1"): files with this extension are not supported; ` +
			`supported are .npz, .h5, .hdf5, .safetensors, .npy`, nil},
		"empty cell": {header + "s1,,a b,\n", `table.csv:2: bag 1 ("s1") has no file`, nil},
		"file twice": {header + "s1,,a b,x.npy\ns1,,,x.npy\n",
			`table.csv:3: bag 1 ("s1") has the file x.npy twice, here and in line 2`, nil},
		"other label": {header + "s1,a,a b,x.npy\ns1,b,,y.npy\n",
			`table.csv:3: bag 1 ("s1") has the label "b" here and "a" in line 2`, nil},
		"other set": {header + "s1,,a b,x.npy\ns1,,a b c,y.npy\n",
			`table.csv:3: bag 1 ("s1") has the candidates "a b c" here and "a b" in line 2`, nil},
		"later label": {header + "s1,,a b,x.npy\ns1,a,,y.npy\n",
			`table.csv:3: bag 1 ("s1") has the label "a" here and "" in line 2`, nil},
		"apart": {header + "s1,,a b,x.npy\ns2,,a b,z.npy\ns1,,a b,y.npy\n",
			`table.csv:4: bag 1 ("s1") occurs again after other bags`, nil},
		"second missing": {header + "s1,,a b,x.npy\ns1,,a b,y.npy\n", `y.npy: bag 1 ("s1"): there is no such file`,
			map[string][]byte{"x.npy": npyBytes([]float32{1, 2}, 1, 2)}},
		"other column": {"bag,label,candidates,file,age\ns1,,a b,x.npy,3\n",
			`the column "age" has no meaning in a table of files`, nil},
		"instance label": {"bag,label,candidates,instance_label,file\ns1,,a b,,x.npy\n",
			"a table of files has no rows for instances; it cannot have their labels", nil},
		"no array": {header + "s1,,a b,x.npz\n", "", map[string][]byte{"x.npz": archiveBytes("coords", zip.Store,
			npyBytes([]float32{1, 2}, 1, 2))}},
		"named array": {header + "s1,,a b,x.npz#y\n", `the file has no array "y"; it has coords`,
			map[string][]byte{"x.npz": archiveBytes("coords", zip.Store, npyBytes([]float32{1, 2}, 1, 2))}},
		"compressed": {header + "s1,,a b,x.npz\n", `array "features" is compressed, so that its rows cannot be read one by ` +
			`one; write it with numpy.savez`, map[string][]byte{"x.npz": archiveBytes("features", zip.Deflate,
			npyBytes([]float32{1, 2}, 1, 2))}},
		"one axis": {header + "s1,,a b,x.npy\n", "the array has the shape [2]; [instances, features] is needed",
			map[string][]byte{"x.npy": npyBytes([]float32{1, 2}, 2)}},
		"no instance": {header + "s1,,a b,x.npy\n", "a bag needs at least one instance and one feature",
			map[string][]byte{"x.npy": npyBytes(nil, 0, 2)}},
		"other width": {header + "s1,,a b,x.npy\ns2,,a b,y.npy\n",
			`y.npy: bag 2 ("s2"): its instances have the shape [1], those of the first bag [2]`,
			map[string][]byte{"x.npy": npyBytes([]float32{1, 2}, 1, 2), "y.npy": npyBytes([]float32{1, 2}, 2, 1)}},
		"not finite": {header + "s1,,a b,x.npy\n", `x.npy: bag 1 ("s1"): feature 2 of instance 1 is NaN; features must be ` +
			`finite (float32)`, map[string][]byte{"x.npy": npyBytes([]float32{1, nan}, 1, 2)}},
		"cut npy": {header + "s1,,a b,x.npy\n", "the array is longer than the file; the file is cut short or damaged",
			map[string][]byte{"x.npy": npyBytes([]float32{1}, 1, 2)}},
		"text": {header + "s1,,a b,x.safetensors\n", "not a safetensors file",
			map[string][]byte{"x.safetensors": []byte("this is only text")}},
		"offsets": {header + "s1,,a b,x.safetensors\n", "the array is longer than the file",
			map[string][]byte{"x.safetensors": safetensorsBytes("features", "F32", []byte("1234"), 1, 2)}},
		"type": {header + "s1,,a b,x.safetensors\n",
			`tensor "features" has the type "F8_E4M3", which is not supported`,
			map[string][]byte{"x.safetensors": safetensorsBytes("features", "F8_E4M3", []byte("12"), 1, 2)}},
		"hdf5": {header + "s1,,a b,x.h5\n", "not an HDF5 file", map[string][]byte{"x.h5": []byte("text")}},
	} {
		dir := t.TempDir()
		for file, content := range c.files {
			if err := os.WriteFile(filepath.Join(dir, file), content, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		path := filepath.Join(dir, "table.csv")
		if err := os.WriteFile(path, []byte(c.table), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := Open(path)
		if c.want == "" && err == nil {
			continue // the only array of a file needs no name
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, expected %q", name, err, c.want)
		}
	}
}

// If a file changes or is removed, the next read returns an error and not other numbers.
func TestTableFileChanges(t *testing.T) {
	for name, change := range map[string]func(path string) error{
		"vanished":  os.Remove,
		"truncated": func(path string) error { return os.Truncate(path, 100) },
		"touched":   func(path string) error { return os.Chtimes(path, time.Time{}, time.Unix(1, 0)) },
		"replaced": func(path string) error {
			other := path + ".new"
			if err := os.WriteFile(other, npyBytes(bagValues(9, 5, 3), 5, 3), 0o644); err != nil {
				return err
			}
			return os.Rename(other, path)
		},
	} {
		path, _ := writeTable(t)
		d, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := change(filepath.Join(filepath.Dir(path), "c.npy")); err != nil {
			t.Fatal(err)
		}
		want := `c.npy: bag 3 ("slide-02"): the file has changed since the dataset was opened`
		if name == "vanished" {
			want = `c.npy: bag 3 ("slide-02"): there is no such file`
		}
		if _, err := d.Bag(2); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
		n := 0
		for b, err := range data.NewLoader(d, 20).Load([][]int{{0}, {1, 2}, {3}}, nil) {
			n++
			if (err != nil) != slices.Contains(b.Bags, 2) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if n != 2 {
			t.Errorf("%s: %d batches before the end", name, n)
		}
	}
}

// readArrays reads a part of every array of a file.
func readArrays(f *arrayFile) {
	names, err := f.names()
	if err != nil {
		return
	}
	for _, name := range append(names[:min(len(names), 20)], "features") {
		a, _, err := f.arrayOf(name, "slide-01")
		if err != nil {
			continue
		}
		width := ndarray.Size(a.shape[1:])
		if rows := min(a.shape[0], 1<<20/width); rows > 0 {
			_ = a.rows.ReadRows(make([]float32, rows*width), a.shape[0]-rows)
		}
	}
}

// Damaged files give errors or other numbers. Memory and time are bounded by the size of the file.
func FuzzArrays(f *testing.F) {
	x := bagValues(1, 4, 3)
	f.Add(0, npyBytes(x, 4, 3))
	f.Add(1, archiveBytes("features", zip.Store, npyBytes(x, 1, 4, 3)))
	f.Add(2, safetensorsBytes("features", "F16", halfBytes(x, false), 4, 3))
	formats := []func(*arrayFile) error{(*arrayFile).openNPY, (*arrayFile).openNPZ, (*arrayFile).openSafetensors}
	f.Fuzz(func(t *testing.T, format int, content []byte) {
		if format < 0 || format >= len(formats) {
			return
		}
		file := &arrayFile{r: bytes.NewReader(content), size: int64(len(content))}
		if formats[format](file) == nil {
			readArrays(file)
		}
	})
}

// Single rows of chunked arrays equal those of the whole array.
func TestReadSelected(t *testing.T) {
	path := filepath.Join(t.TempDir(), "table.csv")
	table := "bag,label,candidates,file\n"
	for i, name := range []string{"contiguous", "row-chunks", "chunks", "deflate", "shuffle", "one-more"} {
		file, err := filepath.Abs("../hdf5/testdata/layouts.h5")
		if err != nil {
			t.Fatal(err)
		}
		table += fmt.Sprintf("s%d,,a b,%s#%s\n", i, file, name)
	}
	if err := os.WriteFile(path, []byte(table), 0o644); err != nil {
		t.Fatal(err)
	}
	d, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	for bag := range d.Bags() {
		whole, err := d.Bag(bag)
		if err != nil {
			t.Fatal(err)
		}
		for _, rows := range [][]int{{36}, {0, 1, 2, 9, 30, 36}, {3, 7, 8, 11, 12, 13}} {
			var want []float32
			for _, row := range rows {
				want = append(want, whole[6*row:6*row+6]...)
			}
			got := make([]float32, 6*len(rows))
			if err := d.ReadSelected(got, bag, rows); err != nil || !slices.Equal(got, want) {
				t.Errorf("bag %d, rows %v: %v, %v, want %v", bag, rows, got, err, want)
			}
		}
	}
}
