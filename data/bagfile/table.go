// Tables that name the files of each bag.

package bagfile

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/hdf5"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/fileio"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/resources"
)

// A table of bags is a CSV file with a column "file": the path of a file with instances of the bag,
// relative to the folder of the table, optionally followed by "#" and the name of an array or group in
// the file. A bag has the instances of all its rows, in their order. The instances stay on disk.

const fileColumnName = "file"

// tableHeader checks that all columns except the column of files are roles or ignored. Bags for a
// model may have other columns, which are not read.
func (c *csvReader) tableHeader(header []string, line int) error {
	if c.roles[roleInstanceLabel] >= 0 {
		return c.errorf(line, "a table of files has no rows for instances; it cannot have their labels")
	}
	if c.Columns.forModel() {
		return nil
	}
	var others []string
	for i, name := range header {
		if i != c.fileColumn && !slices.Contains(c.roles[:], i) && !slices.Contains(c.Columns.Ignore, name) {
			others = append(others, name)
		}
	}
	if len(others) > 0 {
		wrong := c.errorf(line, "the column %q has no meaning in a table of files: the column %q has the features", others[0],
			fileColumnName)
		return c.adviseGroup(wrong, others).
			WithNote("leave columns out with %s", c.Form.ignoringOr(others...)).
			WithNote("if other columns are the features, leave the column %q out with %s",
				header[c.fileColumn], c.Form.ignoring(header[c.fileColumn]))
	}
	return nil
}

// decodeArrays reads a file with the features of one bag, which is named like the file, or of several, each in a group
// with its name. The bags have no labels.
func decodeArrays(file *os.File, _ int64, path string, o Reading) (*data.Dataset, error) {
	a, err := openArrays(path)
	if err != nil {
		return nil, err
	}
	defer a.file.Close()
	base := filepath.Base(path)
	var rows [][2]string // bag and file
	names, err := a.names()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if _, err := a.find(name); !errors.Is(err, errNoArray) {
			continue // not a group
		}
		if _, err := a.find(name + "/" + featuresName); !errors.Is(err, errNoArray) {
			rows = append(rows, [2]string{name, base + "#" + name})
		}
	}
	if rows == nil {
		rows = [][2]string{{setName(path), base}}
	}
	var table strings.Builder
	fmt.Fprintf(&table, "%s,%s\n", roleNames[roleBag], fileColumnName)
	for _, row := range rows {
		fmt.Fprintf(&table, "%s,%s\n", quoteCSV(row[0]), quoteCSV(row[1]))
	}
	o.Columns = Columns{}
	return decodeCSV(strings.NewReader(table.String()), filepath.Join(filepath.Dir(path), "table.csv"), o)
}

// tableFile is a row of a table of files.
type tableFile struct {
	cell string
	line int
}

// readFile reads the path in row n.
func (c *csvReader) readFile(row []string, line, n int) error {
	bag := len(c.bags)
	if n > 0 && c.roles[roleBag] < 0 {
		return c.errorf(line, "the table has several rows, but its header has no column %q", roleNames[roleBag]).
			WithNote("rename the column with the names of the bags to %q", roleNames[roleBag])
	}
	name := row[c.fileColumn]
	if name == "" || data.MissingMark(name) {
		return c.errorf(line, "bag %d (%q) has no file", bag, c.bags[bag-1].id)
	}
	if c.d.Offsets[bag-1] == n {
		c.fileLines = map[string]int{}
	}
	if other, twice := c.fileLines[name]; twice {
		return c.errorf(line, "bag %d (%q) has the file %s twice, here and in line %d", bag, c.bags[bag-1].id, name, other).
			WithNote("remove one of the rows, or give them different names of bags")
	}
	file := tableFile{strings.Clone(name), line}
	c.files, c.fileLines[file.cell] = append(c.files, file), line
	return nil
}

// FilesOf returns the paths of the files with the instances of a dataset, by their names in its
// table. It returns nil if the dataset is not a table of files.
func FilesOf(d *data.Dataset) map[string]string {
	s, ok := d.Store.(*fileStore)
	if !ok {
		return nil
	}
	files := map[string]string{}
	for _, f := range s.files {
		files[f.written] = f.path
	}
	return files
}

// attachFiles opens the files of a table and sets the instances of the dataset.
func (c *csvReader) attachFiles(d *data.Dataset) error {
	s := &fileStore{moved: c.Copies, first: d.Offsets, opened: resources.Cache[string, *arrayFile]{MaxCount: 8,
		OnEvict: func(f *arrayFile) { f.file.Close() }}}
	d.Offsets = []int{0}
	var faults diag.List
	placed := len(c.files) == len(c.bags) // all instances have coordinates, those of a bag in one plane
	var ranges precision
	for i := range c.bags {
		instances := 0
		for _, file := range c.files[s.first[i]:s.first[i+1]] {
			f, err := s.add(d, c, i, file.cell)
			if err == nil {
				err = s.addRanges(&ranges, &f)
			}
			if err != nil {
				faults.AddError(diag.Pos{}, s.describe(&f, err))
			}
			placed = placed && f.coords != nil
			instances += f.instances
		}
		d.Offsets = append(d.Offsets, d.Offsets[i]+instances)
	}
	if placed {
		for i := range s.files {
			d.Coords, s.files[i].coords = append(d.Coords, s.files[i].coords...), nil
		}
	}
	d.Warnings = append(d.Warnings, ranges.warnings(c.path, d.FeatureNames)...)
	if len(faults) == 0 {
		file := func(i int) string { return filepath.Clean(s.files[i].written) + "#" + s.files[i].name }
		d.SameFile = c.sameFile(d, s.first, file, "a random split keeps them in one part")
	}
	return faults.Err()
}

// sameFile returns the first bag with which each bag shares a file, itself or through others; nil if no bags share one.
// first is [bags+1]: bag i has the files first[i] to first[i+1]-1 of the table, which file identifies. It warns of
// such bags: one may be for training and the other for testing. split says what splits do with them.
func (c *csvReader) sameFile(d *data.Dataset, first []int, file func(i int) string, split string) []int {
	const most = 5
	owner, same, more := map[string]int{}, make([]int, len(c.bags)), -most
	root := func(bag int) int {
		for same[bag] != bag {
			same[bag] = same[same[bag]] // so that long chains become short
			bag = same[bag]
		}
		return bag
	}
	for bag := range same {
		same[bag] = bag
		for i := first[bag]; i < first[bag+1]; i++ {
			at, again := owner[file(i)]
			if !again {
				owner[file(i)] = bag
				continue
			}
			same[max(root(at), root(bag))] = min(root(at), root(bag))
			if more++; more > 0 {
				continue
			}
			a, b, labels := c.bags[at], c.bags[bag], ""
			if a.label != b.label {
				labels = fmt.Sprintf(" with the labels %q and %q", a.label, b.label)
			}
			d.Warnings = append(d.Warnings, fmt.Sprintf("%s:%d: the bags %q and %q name the same file %s%s; %s",
				c.path, c.files[i].line, a.id, b.id, c.files[i].cell, labels, split))
		}
	}
	if more > 0 {
		d.Warnings = append(d.Warnings, fmt.Sprintf("%s: %s as well", c.path,
			diag.CountForms(more, "other bag names the file of another", "other bags name the file of another")))
	}
	if more == -most {
		return nil
	}
	for bag := range same {
		same[bag] = root(bag)
	}
	return same
}

// addRanges adds the first instances of a file.
func (s *fileStore) addRanges(ranges *precision, f *instanceFile) error {
	const rows, most = 64, 1 << 20 // instances and bytes
	size := f.width * f.number.Size
	if !exceedsFloat32(f.number) || size > most ||
		len(ranges.ranges) > 0 && !slices.ContainsFunc(ranges.ranges, func(r featureRange) bool { return !r.wide }) {
		return nil
	}
	return s.use(f, func(a array) error {
		part := make([]byte, min(f.instances, rows, most/size)*size)
		if err := a.rows.(byteRows).ReadBytes(part, 0); err != nil {
			return err
		}
		ranges.addBytes(f.number, part, 0, func(i int) int { return i % f.width })
		return nil
	})
}

// add opens a file of bag i. The first file sets the shape of the instances. The path of the result is set even if add
// returns an error.
func (s *fileStore) add(d *data.Dataset, c *csvReader, i int, cell string) (f instanceFile, err error) {
	inDir := func(path string) string {
		if to, ok := s.moved[path]; ok || filepath.IsAbs(path) {
			return cmp.Or(to, path)
		}
		return filepath.Join(filepath.Dir(c.path), path)
	}
	f = instanceFile{written: cell, bag: i, bagName: c.bags[i].id}
	defer func() { s.files = append(s.files, f) }()
	if path, name, ok := strings.Cut(cell, "#"); ok {
		if _, err := os.Stat(inDir(cell)); err != nil { // otherwise # is part of the file name
			f.written, f.name = path, name
		}
	}
	f.path = inDir(f.written)
	file, err := s.open(f.path)
	if err != nil {
		return f, err
	}
	defer s.opened.Put(f.path, file, 0)
	f.info = file.info
	a, name, err := file.arrayOf(f.name, f.bagName)
	f.name, f.number = name, a.number
	if err == nil && d.Store != nil && !slices.Equal(a.shape[1:], d.Shape) {
		wrong := diag.Errorf(diag.Pos{}, "its instances have the shape %v, those of the first bag %v", a.shape[1:], d.Shape)
		if n := a.shape[0]; n == s.files[0].instances {
			wrong = wrong.WithNote("both have %s: if the files have one column per instance, as Julia and MATLAB write them, "+
				"transpose the features", diag.Count(n, "row"))
		}
		err = wrong
	}
	if err != nil {
		return f, err
	}
	d.Store, d.Shape = s, slices.Clone(a.shape[1:])
	f.width, f.instances = d.Dim(), a.shape[0]
	f.coords, f.side, err = file.coords(path.Join(path.Dir(f.name), coordsName), a.shape)
	return f, err
}

// openFiles opens files without arrays and gives the dataset their instances.
func (c *csvReader) openFiles(d *data.Dataset) error {
	var faults diag.List
	for i := range c.bags {
		for _, file := range c.files[d.Offsets[i]:d.Offsets[i+1]] {
			path := file.cell
			if !filepath.IsAbs(path) {
				path = filepath.Join(filepath.Dir(c.path), path)
			}
			if err := c.Files.Open(path, i); err != nil {
				faults.AddError(diag.Pos{File: c.path, Line: file.line}, err)
			}
		}
	}
	if err := faults.Err(); err != nil {
		return err
	}
	// d.SameFile stays nil: the files of features that are computed for other machines do not have it.
	c.sameFile(d, d.Offsets, func(i int) string { return filepath.Clean(c.files[i].cell) }, "a split may divide them")
	return c.Files.Attach(d)
}

// fileStore is the Store of the files of a table.
type fileStore struct {
	files []instanceFile
	first []int             // [bags+1] the files of bag i are files[first[i]:first[i+1]]
	moved map[string]string // Reading.Copies

	mu     sync.Mutex
	opened resources.Cache[string, *arrayFile]
}

// instanceFile is a file with instances of a bag: all of them, or a part.
type instanceFile struct {
	path      string
	written   string // name in the table, of which path is made
	name      string // of the array
	bag       int    // number of the bag, from 0
	bagName   string
	instances int
	width     int // values of an instance
	number    ndarray.Encoding
	info      fs.FileInfo
	coords    []float32 // of the instances; nil: unknown, or all bags have coordinates and the dataset has them
	side      float64   // see data.File
}

// of returns the files of a bag.
func (s *fileStore) of(bag int) []instanceFile { return s.files[s.first[bag]:s.first[bag+1]] }

// coordsName is the array with the coordinates of a bag, in the group of the features.
const coordsName = "coords"

// Files returns the files of a bag, with the coordinates of their instances unless the dataset has those
// of all bags.
func (s *fileStore) Files(bag int) (list []data.File) {
	for _, f := range s.of(bag) {
		list = append(list, data.File{Name: f.written, Instances: f.instances, Coords: f.coords, Side: f.side})
	}
	return list
}

// sideName is the attribute of the coordinates that TRIDENT writes: the side of a patch in the units of coordinates.
const sideName = "patch_size_level0"

// coords reads the coordinates of the instances of an array of features with a shape, and the side of an instance, 0 if
// it is unknown. It returns nil if the file has no array with the name.
func (f *arrayFile) coords(name string, features []int) (to []float32, side float64, err error) {
	a, err := f.find(name)
	if errors.Is(err, errNoArray) {
		return nil, 0, nil // coordinates are optional
	}
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %w", coordsName, err)
	}
	if err := checkCoords(a.shape, features); err != nil {
		return nil, 0, err
	}
	if d, ok := a.rows.(*hdf5.Dataset); ok {
		if v, ok := d.Number(sideName); ok && v > 0 && v <= math.MaxFloat32 {
			side = v
		}
	}
	to = make([]float32, 2*features[0])
	return to, side, a.rows.ReadRows(to, 0)
}

// checkCoords returns an error if the coordinates of a bag do not have the shape [n, 2] for its n instances.
func checkCoords(coords, features []int) error {
	n, width := features[0], ndarray.Size(features[1:])
	shapes := fmt.Sprintf("%s is %s and %s %s", featuresName, axes(features), coordsName, axes(coords))
	switch {
	case slices.Equal(coords, []int{n, 2}):
		return nil
	case slices.Equal(coords, []int{2, width}):
		return diag.Errorf(diag.Pos{}, "%s: the file has one column per instance, as Julia and MATLAB write it; transpose "+
			"%s and %s", shapes, featuresName, coordsName)
	case slices.Equal(coords, []int{width, 2}):
		return diag.Errorf(diag.Pos{}, "%s: the features have one column per instance; transpose %s", shapes, featuresName)
	case slices.Equal(coords, []int{2, n}):
		return diag.Errorf(diag.Pos{}, "%s: the coordinates have one column per instance; transpose %s", shapes, coordsName)
	case len(coords) == 2 && coords[1] == 2:
		return diag.Errorf(diag.Pos{}, "%s has %s, %s %d: the file mixes two extractions", coordsName, diag.Count(coords[0],
			"row"), featuresName, n).
			WithNote("extract the features again, from the patches of these coordinates")
	}
	return diag.Errorf(diag.Pos{}, "%s is %s; %s is needed: x and y of each instance", coordsName, axes(coords),
		axes([]int{n, 2}))
}

// axes formats a shape like NumPy.
func axes(shape []int) string { return strings.ReplaceAll(fmt.Sprint(shape), " ", ", ") }

// open opens a file, or returns one that is still open.
func (s *fileStore) open(path string) (*arrayFile, error) {
	if f, ok := s.opened.Take(path); ok {
		return f, nil
	}
	return openArrays(path)
}

// errChanged reports that a file was changed after the dataset was opened.
var errChanged = errors.New("the file has changed since the dataset was opened; restore it, or start again")

// Half implements data.HalfStore.
func (s *fileStore) Half(bag int) (ndarray.Encoding, bool) {
	files := s.of(bag)
	number := files[0].number
	other := slices.ContainsFunc(files, func(f instanceFile) bool { return f.number != number })
	return number, number.Half() && !other
}

// ReadHalf implements data.HalfStore.
func (s *fileStore) ReadHalf(to []byte, bag int) error {
	files := s.of(bag)
	for i := range files {
		f := &files[i]
		part := to[:f.instances*f.width*f.number.Size]
		to = to[len(part):]
		err := s.read(f, func(a array) error {
			if err := a.rows.(byteRows).ReadBytes(part, 0); err != nil {
				return err
			}
			if i := a.number.InfiniteHalf(part); i >= 0 {
				row := make([]float32, f.width)
				a.number.Floats(row, part[i/f.width*f.width*a.number.Size:])
				return data.CheckFinite(row, f.width, i/f.width)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// ReadInstances implements data.Store.
func (s *fileStore) ReadInstances(to []float32, bag int, instances []int) error {
	files, first := s.of(bag), 0
	for i := 0; i < len(files) && len(instances) > 0; i++ {
		f := &files[i]
		n, _ := slices.BinarySearch(instances, first+f.instances)
		if n > 0 {
			read := func(a array) error { return f.readRows(a, to[:n*f.width], instances[:n], first) }
			if err := s.read(f, read); err != nil {
				return err
			}
		}
		to, instances, first = to[n*f.width:], instances[n:], first+f.instances
	}
	return nil
}

// readRows reads the instances with the given numbers, which ascend; the array starts with instance number first. It
// reads rows that the file stores in one piece together.
func (f *instanceFile) readRows(a array, to []float32, numbers []int, first int) error {
	piece := max(1, a.piece)
	var buffer []float32
	for len(numbers) > 0 {
		start, n := numbers[0]-first, 1
		for n < len(numbers) && ((numbers[n]-first)/piece == start/piece || numbers[n]-numbers[0] == n) {
			n++
		}
		part, span := to[:n*f.width], numbers[n-1]-numbers[0]+1
		if span > n {
			buffer = slices.Grow(buffer[:0], span*f.width)[:span*f.width]
			part = buffer
		}
		if err := a.rows.ReadRows(part, start); err != nil {
			return err
		}
		for i, number := range numbers[:n] {
			row := part[(number-numbers[0])*f.width:][:f.width]
			if err := data.CheckFinite(row, f.width, number-first); err != nil {
				return err
			}
			if span > n {
				copy(to[i*f.width:], row)
			}
		}
		to, numbers = to[n*f.width:], numbers[n:]
	}
	return nil
}

// read lets use read from the array of a file, which must not change meanwhile.
func (s *fileStore) read(f *instanceFile, use func(array) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := f.unchanged()
	if err == nil {
		err = s.use(f, use)
		if changed := f.unchanged(); changed != nil { // it explains the error, and the values may be of both files
			err = changed
		}
	}
	if err != nil {
		return s.describe(f, err)
	}
	return nil
}

// unchanged returns an error if the file is not the one that was opened first.
func (f *instanceFile) unchanged() error {
	info, err := os.Stat(f.path)
	if err != nil {
		return err
	}
	if info.Size() != f.info.Size() || !info.ModTime().Equal(f.info.ModTime()) || !os.SameFile(info, f.info) {
		return errChanged
	}
	return nil
}

// use opens the array of a file, or takes it if it is still open.
func (s *fileStore) use(b *instanceFile, read func(array) error) error {
	f, err := s.open(b.path)
	if err != nil {
		return err
	}
	defer s.opened.Put(b.path, f, 0)
	if f.last.name != b.name || f.last.rows == nil {
		a, err := f.open(b.name)
		if err != nil {
			return err
		}
		f.last.array, f.last.name = a, b.name
	}
	return read(f.last.array)
}

// describe adds the file and the bag to an error.
func (s *fileStore) describe(f *instanceFile, err error) error {
	switch pathErr := (*fs.PathError)(nil); {
	case errors.Is(err, fs.ErrNotExist):
		err = fileio.WithAlike(diag.Errorf(diag.Pos{}, "there is no such file"), f.path)
	case errors.As(err, &pathErr):
		err = pathErr.Err
	}
	d, ok := errors.AsType[diag.Diagnostic](err)
	if !ok {
		d.Text = err.Error()
	}
	d.Pos, d.Text = diag.Pos{File: f.path}, fmt.Sprintf("bag %d (%q): %s", f.bag+1, f.bagName, d.Text)
	return d
}
