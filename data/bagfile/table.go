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
	for i, cell := range c.files {
		b, shape, err := s.locate(filepath.Dir(c.path), cell, c.bags[i].id)
		if err == nil && d.Store != nil && !slices.Equal(shape[1:], d.Shape) {
			err = fmt.Errorf("its instances have the shape %v, those of the first bag %v", shape[1:], d.Shape)
		}
		if err != nil {
			faults.AddError(diag.Pos{}, s.describe(b.path, i, c.bags[i].id, err))
			continue
		}
		d.Store, d.Shape = s, slices.Clone(shape[1:])
		b.width = d.Dim()
		if b.coords, err = s.coords(&b, shape[0]); err != nil {
			faults.AddError(diag.Pos{}, s.describe(b.path, i, c.bags[i].id, err))
		}
		placed = placed && b.coords != nil
		s.bags = append(s.bags, b)
		d.Offsets = append(d.Offsets, d.Offsets[len(d.Offsets)-1]+shape[0])
	}
	if placed {
		for i := range s.bags {
			d.Coords, s.bags[i].coords = append(d.Coords, s.bags[i].coords...), nil
		}
	}
	return faults.Err()
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
	b.name, b.number = name, a.number
	return b, a.shape, err
}

// coordsName is the array with the coordinates of a bag, in the group of the features.
const coordsName = "coords"

// CoordsOf returns the coordinates of a bag if only some bags have coordinates.
func (s *fileStore) CoordsOf(bag int) []float32 { return s.bags[bag].coords }

// coords reads the coordinates of the n instances of a bag. It returns nil if the file has no array
// coords of shape [n, 2].
func (s *fileStore) coords(b *bagFile, n int) ([]float32, error) {
	f, err := s.open(b.path)
	if err != nil {
		return nil, err
	}
	defer s.opened.Put(b.path, f, 0)
	a, err := f.open(path.Join(path.Dir(b.name), coordsName))
	if err != nil || !slices.Equal(a.shape, []int{n, 2}) {
		return nil, nil // coordinates are optional
	}
	to := make([]float32, 2*n)
	return to, a.rows.ReadRows(to, 0)
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
	return diag.Errorf(diag.Pos{File: path}, "bag %d (%q): %v", bag+1, name, err)
}
