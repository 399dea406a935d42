package bagfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/lru"
	"github.com/miplc/miplc/internal/ndarray"
)

// A table of bags is a CSV file with one row per bag and a column "file": the path of the file with
// the instances of the bag, relative to the folder of the table, optionally followed by "#" and the
// name of an array or group in the file. The instances stay on disk.

const fileColumnName = "file"

// tableHeader checks that all columns except the column of files are roles or ignored. Bags for a
// model may have other columns, which are not read.
func (c *csvReader) tableHeader(header []string, line int) error {
	if c.roles[roleInstanceLabel] >= 0 {
		return c.errorf(line, "a table of files has a row per bag; it cannot have the labels of instances")
	}
	if c.declared.forModel() {
		return nil
	}
	var others []string
	for i, name := range header {
		name = strings.TrimSpace(name)
		if i != c.fileColumn && !slices.Contains(c.roles[:], i) && !slices.Contains(c.declared.Ignore, name) {
			others = append(others, name)
		}
	}
	if len(others) > 0 {
		return c.errorf(line, "the column %q has no meaning in a table of files: the column %q has the features", others[0], fileColumnName).
			WithNote("leave columns out with %s, or data.columns.ignore in the spec", ignoring(others...)).
			WithNote("if other columns are the features, leave the column %q out with %s", strings.TrimSpace(header[c.fileColumn]), ignoring(strings.TrimSpace(header[c.fileColumn])))
	}
	return nil
}

// findFileColumn returns the index of the column of files, -1 if there is none.
func (c *csvReader) findFileColumn(header []string) int {
	return slices.IndexFunc(header, func(h string) bool {
		name := strings.TrimSpace(h)
		return strings.EqualFold(name, fileColumnName) && !slices.Contains(c.declared.Ignore, name)
	})
}

// readFile reads the path of the bag that row n started.
func (c *csvReader) readFile(row []string, line, n int) error {
	switch {
	case len(c.bags) != n+1 && c.roles[roleBag] < 0:
		return c.errorf(line, "the table has several rows, but its header has no column %q", roleNames[roleBag]).
			WithNote("rename the column with the names of the bags to %q", roleNames[roleBag])
	case len(c.bags) != n+1:
		return c.errorf(line, "bag %d (%q) has two rows; a table of files has one per bag", len(c.bags), c.bags[len(c.bags)-1].id)
	}
	name := strings.TrimSpace(row[c.fileColumn])
	if name == "" {
		return c.errorf(line, "bag %d (%q) has no file", len(c.bags), c.bags[n].id)
	}
	c.files = append(c.files, strings.Clone(name))
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
	for _, b := range s.bags {
		files[b.written] = b.path
	}
	return files
}

// attachFiles opens the files of a table and sets the instances of the dataset.
func (c *csvReader) attachFiles(d *data.Dataset, moved map[string]string) error {
	s := &fileStore{moved: moved, opened: lru.Cache[string, *arrayFile]{MaxCount: 8, OnEvict: (*arrayFile).close}}
	d.Offsets = []int{0}
	var faults diag.List
	placed := true // all bags up to here have coordinates
	var columns tableColumns
	var ranges precision
	for i, cell := range c.files {
		b, shape, err := s.locate(filepath.Dir(c.path), cell, c.bags[i].id)
		if err == nil && d.Store != nil && !slices.Equal(shape[1:], d.Shape) {
			err = otherShape(shape, d)
		}
		if err == nil {
			err = columns.add(&b, i)
		}
		if err != nil {
			faults.AddError(diag.Pos{}, s.describe(b.path, i, c.bags[i].id, err))
			continue
		}
		d.Store, d.Shape = s, slices.Clone(shape[1:])
		b.width = d.Dim()
		if b.coords, err = s.coords(&b, shape); err != nil {
			faults.AddError(diag.Pos{}, s.describe(b.path, i, c.bags[i].id, err))
		}
		faults.AddError(diag.Pos{}, s.addRanges(&ranges, &b, i, shape[0]))
		placed = placed && b.coords != nil
		s.bags = append(s.bags, b)
		d.Offsets = append(d.Offsets, d.Offsets[len(d.Offsets)-1]+shape[0])
	}
	if placed {
		for i := range s.bags {
			d.Coords, s.bags[i].coords = append(d.Coords, s.bags[i].coords...), nil
		}
	}
	if !columns.unnamed {
		d.FeatureNames = columns.names
	}
	d.Warnings = append(d.Warnings, ranges.warnings(c.path, d.FeatureNames)...)
	if len(faults) == 0 {
		d.SameFile = c.sameFile(func(bag int) string { return filepath.Clean(s.bags[bag].written) + "#" + s.bags[bag].name })
		c.warnOfSameFiles(d, d.SameFile, "a random split keeps them in one part")
	}
	return faults.Err()
}

// sameFile returns the first bag with the file of each bag, nil if all differ. file identifies that of a bag.
func (c *csvReader) sameFile(file func(bag int) string) []int {
	first, same := map[string]int{}, make([]int, len(c.bags))
	for bag := range same {
		at, again := first[file(bag)]
		if !again {
			at = bag
			first[file(bag)] = bag
		}
		same[bag] = at
	}
	if len(first) == len(same) {
		return nil
	}
	return same
}

// warnOfSameFiles warns of bags with the same file: one may be for training and the other for testing. split says
// what splits do with them.
func (c *csvReader) warnOfSameFiles(d *data.Dataset, sameFile []int, split string) {
	const most = 5
	more := -most
	for bag, first := range sameFile {
		if first == bag {
			continue
		}
		if more++; more > 0 {
			continue
		}
		a, b, labels := c.bags[first], c.bags[bag], ""
		if a.label != b.label {
			labels = fmt.Sprintf(" with the labels %q and %q", a.label, b.label)
		}
		d.Warnings = append(d.Warnings, fmt.Sprintf("%s:%d: the bags %q and %q name the same file %s%s; %s", c.path, b.line, a.id, b.id, c.files[bag], labels, split))
	}
	if more > 0 {
		d.Warnings = append(d.Warnings, fmt.Sprintf("%s: %s as well", c.path, diag.CountForms(more, "other bag names the file of another", "other bags name the file of another")))
	}
}

// addRanges adds the first instances of bag i, from 0, which has n.
func (s *fileStore) addRanges(ranges *precision, b *bagFile, i, n int) error {
	const rows, most = 64, 1 << 20 // instances and bytes
	size := b.width * b.number.Size
	if !exceedsFloat32(b.number) || len(ranges.ranges) > 0 && ranges.narrow == 0 || size > most {
		return nil
	}
	err := s.use(b, func(a array) error {
		part := make([]byte, min(n, rows, most/size)*size)
		if err := a.rows.(byteRows).ReadBytes(part, 0); err != nil {
			return err
		}
		ranges.addBytes(b.number, part, 0, func(i int) int { return i % b.width })
		return nil
	})
	if err != nil {
		return s.describe(b.path, i, b.bag, err)
	}
	return nil
}

// tableColumns are the names of the features in the files of a table.
type tableColumns struct {
	names   []string // of the first bag whose file names them
	bag     int      // number of this bag
	unnamed bool     // the file of a bag does not name them
}

// add compares the columns of bag i, from 0, with those of the bags before. The features of all bags
// have the same positions, so that another order is an error.
func (t *tableColumns) add(b *bagFile, i int) error {
	switch {
	case b.columns == nil:
		t.unnamed = true
		return nil
	case t.names == nil:
		t.names, t.bag = b.columns, i+1
	case !slices.Equal(b.columns, t.names):
		j := 0
		for b.columns[j] == t.names[j] { // both have the same length
			j++
		}
		return fmt.Errorf("feature %d is the column %q, in bag %d the column %q; write the same columns in the same order to all files", j+1, b.columns[j], t.bag, t.names[j])
	}
	b.columns = t.names // shared by all bags
	return nil
}

// openFiles opens files without arrays and gives the dataset their instances.
func (c *csvReader) openFiles(d *data.Dataset, files Files) error {
	d.Offsets = []int{0}
	var faults diag.List
	for i, cell := range c.files {
		path := cell
		if !filepath.IsAbs(path) {
			path = filepath.Join(filepath.Dir(c.path), path)
		}
		n, err := files.Open(path)
		if err != nil {
			faults.AddError(diag.Pos{File: c.path, Line: c.bags[i].line}, err)
		}
		d.Offsets = append(d.Offsets, d.Offsets[i]+n)
	}
	if err := faults.Err(); err != nil {
		return err
	}
	// d.SameFile stays nil: the files of features that are computed for other machines do not have it.
	c.warnOfSameFiles(d, c.sameFile(func(bag int) string { return filepath.Clean(c.files[bag]) }), "a split may divide them")
	return files.Attach(d)
}

// fileStore is the Store of the files of a table.
type fileStore struct {
	bags  []bagFile
	moved map[string]string // Options.Copies

	mu     sync.Mutex
	opened lru.Cache[string, *arrayFile]
}

// bagFile is the location of the instances of a bag.
type bagFile struct {
	path    string
	written string // name in the table, of which path is made
	name    string // of the array
	bag     string // name of the bag
	width   int    // values of an instance
	number  ndarray.Number
	columns []string // names of the values of an instance, may be nil
	info    fs.FileInfo
	coords  []float32 // of the instances; nil: unknown, or all bags have coordinates and the dataset has them
}

// locate finds the array of a bag and its shape. b.path is set even if it returns an error.
func (s *fileStore) locate(dir, cell, bag string) (b bagFile, shape []int, err error) {
	b = bagFile{written: cell, bag: bag}
	inDir := func(path string) string {
		if to, ok := s.moved[path]; ok {
			return to
		}
		if filepath.IsAbs(path) {
			return path
		}
		return filepath.Join(dir, path)
	}
	if path, name, ok := strings.Cut(cell, "#"); ok {
		if _, err := os.Stat(inDir(cell)); err != nil { // otherwise # is part of the file name
			b.written, b.name = path, name
		}
	}
	b.path = inDir(b.written)
	f, err := s.open(b.path)
	if err != nil {
		return b, nil, err
	}
	defer s.opened.Put(b.path, f, 0)
	b.info = f.info
	a, name, err := f.arrayOf(b.name, bag)
	b.name, b.number, b.columns = name, a.number, a.columns
	return b, a.shape, err
}

// coordsName is the array with the coordinates of a bag, in the group of the features.
const coordsName = "coords"

// CoordsOf returns the coordinates of a bag if only some bags have coordinates.
func (s *fileStore) CoordsOf(bag int) []float32 { return s.bags[bag].coords }

// coords reads the coordinates of a bag, whose features have a shape. It returns nil if the file has no
// array coords.
func (s *fileStore) coords(b *bagFile, features []int) ([]float32, error) {
	f, err := s.open(b.path)
	if err != nil {
		return nil, err
	}
	defer s.opened.Put(b.path, f, 0)
	a, err := f.find(path.Join(path.Dir(b.name), coordsName))
	if errors.Is(err, errNoArray) {
		return nil, nil // coordinates are optional
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", coordsName, err)
	}
	if err := checkCoords(a.shape, features); err != nil {
		return nil, err
	}
	to := make([]float32, 2*features[0])
	return to, a.rows.ReadRows(to, 0)
}

// checkCoords returns an error if the coordinates of a bag do not have the shape [n, 2] for its n instances.
func checkCoords(coords, features []int) error {
	n, width := features[0], ndarray.Size(features[1:])
	shapes := fmt.Sprintf("%s is %s and %s %s", featuresName, axes(features), coordsName, axes(coords))
	switch {
	case slices.Equal(coords, []int{n, 2}):
		return nil
	case slices.Equal(coords, []int{2, width}):
		return diag.Errorf(diag.Pos{}, "%s: the file has one column per instance, as Julia and MATLAB write it; transpose %s and %s", shapes, featuresName, coordsName)
	case slices.Equal(coords, []int{width, 2}):
		return diag.Errorf(diag.Pos{}, "%s: the features have one column per instance; transpose %s", shapes, featuresName)
	case slices.Equal(coords, []int{2, n}):
		return diag.Errorf(diag.Pos{}, "%s: the coordinates have one column per instance; transpose %s", shapes, coordsName)
	case len(coords) == 2 && coords[1] == 2:
		return diag.Errorf(diag.Pos{}, "%s has %s, %s %d: the file mixes two extractions", coordsName, diag.Count(coords[0], "row"), featuresName, n).
			WithNote("extract the features again, from the patches of these coordinates")
	}
	return diag.Errorf(diag.Pos{}, "%s is %s; %s is needed: x and y of each instance", coordsName, axes(coords), axes([]int{n, 2}))
}

// axes formats a shape like NumPy.
func axes(shape []int) string { return strings.ReplaceAll(fmt.Sprint(shape), " ", ", ") }

// otherShape returns the error for a bag whose instances do not have the shape of those of the first bag.
func otherShape(bag []int, d *data.Dataset) error {
	wrong := diag.Errorf(diag.Pos{}, "its instances have the shape %v, those of the first bag %v", bag[1:], d.Shape)
	if bag[0] == d.Size(0) {
		wrong = wrong.WithNote("both have %s: if the files have one column per instance, as Julia and MATLAB write them, transpose the features", diag.Count(bag[0], "row"))
	}
	return wrong
}

// open opens a file, or returns one that is still open.
func (s *fileStore) open(path string) (*arrayFile, error) {
	if f, ok := s.opened.Take(path); ok {
		return f, nil
	}
	return openArrays(path)
}

// errChanged reports that a file was changed after the dataset was opened.
var errChanged = errors.New("the file has changed since the dataset was opened; restore it, or start again")

// ReadRange implements data.Store.
func (s *fileStore) ReadRange(to []float32, bag, from int) error {
	return s.read(bag, func(a array) error {
		if err := a.rows.ReadRows(to, from); err != nil {
			return err
		}
		return data.CheckFinite(to, s.bags[bag].width, from)
	})
}

// Half implements data.HalfStore.
func (s *fileStore) Half(bag int) (ndarray.Number, bool) {
	return s.bags[bag].number, s.bags[bag].number.Half()
}

// ReadHalf implements data.HalfStore.
func (s *fileStore) ReadHalf(to []byte, bag int) error {
	return s.read(bag, func(a array) error {
		if err := a.rows.(byteRows).ReadBytes(to, 0); err != nil {
			return err
		}
		if i := a.number.InfiniteHalf(to); i >= 0 {
			width := s.bags[bag].width
			row := make([]float32, width)
			a.number.Floats(row, to[i/width*width*a.number.Size:])
			return data.CheckFinite(row, width, i/width)
		}
		return nil
	})
}

// ReadSelected implements Store. It reads rows that the file stores in one piece together.
func (s *fileStore) ReadSelected(to []float32, bag int, rows []int) error {
	return s.read(bag, func(a array) error {
		width, all, numbers := s.bags[bag].width, to, rows
		piece := max(1, a.piece)
		var buffer []float32
		for len(rows) > 0 {
			n := 1
			for n < len(rows) && (rows[n]/piece == rows[0]/piece || rows[n]-rows[0] == n) {
				n++
			}
			span := rows[n-1] - rows[0] + 1
			if span == n {
				if err := a.rows.ReadRows(to[:n*width], rows[0]); err != nil {
					return err
				}
			} else {
				buffer = slices.Grow(buffer[:0], span*width)[:span*width]
				if err := a.rows.ReadRows(buffer, rows[0]); err != nil {
					return err
				}
				for i, row := range rows[:n] {
					copy(to[i*width:(i+1)*width], buffer[(row-rows[0])*width:])
				}
			}
			to, rows = to[n*width:], rows[n:]
		}
		for i, row := range numbers {
			if err := data.CheckFinite(all[i*width:(i+1)*width], width, row); err != nil {
				return err
			}
		}
		return nil
	})
}

// read lets f read from the array of a bag. The file must not change meanwhile.
func (s *fileStore) read(bag int, f func(array) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := &s.bags[bag]
	err := b.unchanged()
	if err == nil {
		err = s.use(b, f)
		if changed := b.unchanged(); changed != nil { // it explains the error, and the values may be of both files
			err = changed
		}
	}
	if err != nil {
		return s.describe(b.path, bag, b.bag, err)
	}
	return nil
}

// unchanged returns an error if the file of the bag is not the one that was opened first.
func (b *bagFile) unchanged() error {
	info, err := os.Stat(b.path)
	if err != nil {
		return err
	}
	if info.Size() != b.info.Size() || !info.ModTime().Equal(b.info.ModTime()) || !os.SameFile(info, b.info) {
		return errChanged
	}
	return nil
}

// use opens the array of a bag, or takes it if it is still open.
func (s *fileStore) use(b *bagFile, read func(array) error) error {
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
func (s *fileStore) describe(path string, bag int, name string, err error) error {
	switch pathErr := (*fs.PathError)(nil); {
	case errors.Is(err, fs.ErrNotExist):
		err = errors.New("there is no such file")
	case errors.As(err, &pathErr):
		err = pathErr.Err
	}
	d, ok := errors.AsType[diag.Diagnostic](err)
	if !ok {
		d.Text = err.Error()
	}
	d.Pos, d.Text = diag.Pos{File: path}, fmt.Sprintf("bag %d (%q): %s", bag+1, name, d.Text)
	return d
}
