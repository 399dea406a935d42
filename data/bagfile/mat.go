// Reading of the MAT files of DEMIPL's authors.

package bagfile

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/rawfile"
	"github.com/miplc/miplc/internal/diag"
)

// The .mat format of datasets is that of the DEMIPL authors: a cell array "data" with one row per
// bag and the columns
//
//	1  instances, one per row
//	2  candidate labels, counted from 1
//	3  true label, counted from 1; 0 or [] if it is unknown
//	4  labels of the instances, counted from 1; 0 for negative ones
//
// Columns 3 and 4 are optional. Also accepted:
//   - another name than "data" if the file has only one cell array;
//   - one column per bag (the array transposed) if there are 2 to 4 rows and more than 4 columns;
//   - instances in columns, if only then all bags have the same number of features;
//   - candidates as vectors of 0 and 1 over all classes, if all entries of all bags are 0 or 1 and
//     all vectors have the same length, above 1. True labels may then be such vectors with at most
//     one 1.
//
// The names of classes are the numbers in the file: "1", "2", ...

func decodeMAT(r io.Reader, path string, o Reading) (*data.Dataset, error) {
	vars, err := rawfile.ReadMAT(r, o.MaxBytes.Exceeded("the file"))
	if err != nil {
		return nil, diag.Errorf(diag.Pos{File: path}, "%v", err)
	}
	d, err := bagsOfVariables(vars, path, o)
	if err != nil {
		return nil, diag.Errorf(diag.Pos{File: path}, "%v", err)
	}
	return d, o.Validate(d, path)
}

// bagsOfVariables finds the cell array of bags and turns it into a set.
func bagsOfVariables(vars []*rawfile.MATArray, path string, o Reading) (*data.Dataset, error) {
	table, err := findBags(vars)
	if err != nil {
		return nil, err
	}
	m := &matBags{name: table.Name, limit: o.MaxBytes}
	if err := m.orient(table); err != nil {
		return nil, err
	}
	d := &data.Dataset{}
	for _, step := range []func(*data.Dataset) error{m.instances, m.candidates, m.labels, m.instanceLabels} {
		if err := step(d); err != nil {
			return nil, err
		}
	}
	d.Warnings = m.ranges.warnings(path, nil)
	return d, nil
}

func findBags(vars []*rawfile.MATArray) (*rawfile.MATArray, error) {
	var cells []*rawfile.MATArray
	var names []string
	for _, v := range vars {
		if v.Name == "data" {
			if v.Class != rawfile.MATCell {
				return nil, fmt.Errorf("the variable \"data\" is a %s of %s; a cell array with one row per bag is needed", v.Class,
					v.Size())
			}
			return v, nil
		}
		if v.Class == rawfile.MATCell {
			cells = append(cells, v)
		}
		names = append(names, fmt.Sprintf("%s (%s, %s)", v.Name, v.Class, v.Size()))
	}
	if len(cells) == 1 {
		return cells[0], nil
	}
	found := "no variables"
	if len(names) > 0 {
		found = strings.Join(names, ", ")
	}
	return nil, fmt.Errorf("no cell array \"data\" with one row per bag; the file contains %s", found)
}

// matBags is the cell array with one row per bag.
type matBags struct {
	name    string
	limit   rawfile.Limit
	rows    [][]*rawfile.MATArray // 2 to 4 columns
	vectors bool                  // labels are vectors of 0 and 1 over the classes
	ranges  precision
}

// orient arranges the cells with one row per bag and checks them.
func (m *matBags) orient(table *rawfile.MATArray) error {
	if len(table.Dims) != 2 {
		return fmt.Errorf("the cell array %q is %s; two axes are needed", m.name, table.Size())
	}
	bags, columns := table.Dims[0], table.Dims[1]
	at := func(i, j int) *rawfile.MATArray { return table.Cells[i+j*bags] }
	if bags >= 2 && bags <= 4 && columns > 4 {
		bags, columns = columns, bags
		at = func(i, j int) *rawfile.MATArray { return table.Cells[j+i*columns] }
	}
	if columns < 2 || columns > 4 {
		return fmt.Errorf("the cell array %q is %s; one row per bag is needed: instances, candidates, true label", m.name,
			table.Size())
	}
	for i := range bags {
		row := make([]*rawfile.MATArray, columns)
		for j := range row {
			cell := at(i, j)
			if cell.Class == rawfile.MATSparse {
				return fmt.Errorf("bag %d: column %d is a sparse array, which is not supported: save full(...) of it", i+1, j+1)
			}
			if cell.Complex {
				return fmt.Errorf("bag %d: column %d contains complex numbers", i+1, j+1)
			}
			if empty := cell.Len() == 0 && (cell.Class == rawfile.MATChar ||
				cell.Class == rawfile.MATCell); cell.Numbers == nil && !empty {
				return fmt.Errorf("bag %d: column %d is a %s of %s; numbers are needed", i+1, j+1, cell.Class, cell.Size())
			}
			row[j] = cell
		}
		m.rows = append(m.rows, row)
	}
	return nil
}

func (m *matBags) instances(d *data.Dataset) error {
	features, transposed, err := m.features()
	if err != nil {
		return err
	}
	d.Shape, d.Offsets = []int{features}, []int{0}
	total := 0
	for _, row := range m.rows {
		total += len(row[0].Numbers)
	}
	d.Instances = make([]float32, 0, total)
	for _, row := range m.rows {
		x := row[0]
		n := x.Len() / features
		for i := range n {
			for j := range features {
				at := i + j*n // column-major
				if transposed {
					at = j + i*features
				}
				d.Instances = append(d.Instances, float32(x.Numbers[at]))
				if m.ranges.isNarrow(j) {
					m.ranges.add(j, x.Numbers[at])
				}
			}
		}
		d.Offsets = append(d.Offsets, d.Offsets[len(d.Offsets)-1]+n)
	}
	return nil
}

// features returns the number of features, and whether instances are columns.
func (m *matBags) features() (features int, transposed bool, err error) {
	if len(m.rows) == 0 {
		return 0, false, fmt.Errorf("the cell array %q has no bags", m.name)
	}
	first := m.rows[0][0]
	rows, columns := true, true // whether all bags have the same number of ...
	for i, row := range m.rows {
		x := row[0]
		if len(x.Dims) != 2 {
			return 0, false, fmt.Errorf("bag %d: the instances are %s; one row per instance is needed", i+1, x.Size())
		}
		if x.Len() == 0 {
			return 0, false, fmt.Errorf("bag %d is empty; a bag needs at least one instance", i+1)
		}
		rows = rows && x.Dims[0] == first.Dims[0]
		columns = columns && x.Dims[1] == first.Dims[1]
	}
	switch {
	case columns:
		return first.Dims[1], false, nil
	case rows:
		return first.Dims[0], true, nil
	}
	i := slices.IndexFunc(m.rows, func(row []*rawfile.MATArray) bool { return row[0].Dims[1] != first.Dims[1] })
	return 0, false, fmt.Errorf("bag %d has instances of %s, bag 1 of %d", i+1, diag.Count(m.rows[i][0].Dims[1],
		"feature"), first.Dims[1])
}

func (m *matBags) candidates(d *data.Dataset) error {
	length, vectors := m.candidateVectors()
	if m.vectors = vectors; vectors {
		d.Classes = length
	} else if err := m.countClasses(d); err != nil {
		return err
	}
	// Validate rejects classes without candidates too. This check prevents that a large number in
	// a small file allocates much memory.
	listed := 0
	for _, row := range m.rows {
		listed += len(row[1].Numbers)
	}
	if d.Classes > listed {
		return fmt.Errorf("the largest label is %d, but the bags list only %s in all: some classes have no examples",
			d.Classes, diag.Count(listed, "candidate"))
	}
	if err := checkCandidates(m.limit, d.Classes, len(m.rows)); err != nil {
		return err
	}
	d.Candidates = make([]uint8, len(m.rows)*d.Classes)
	for i, row := range m.rows {
		for j, x := range row[1].Numbers {
			if vectors {
				d.CandidateMask(i)[j] = uint8(x)
				continue
			}
			if d.CandidateMask(i)[int(x)-1] != 0 {
				return fmt.Errorf("bag %d: the candidate %v is listed twice", i+1, x)
			}
			d.CandidateMask(i)[int(x)-1] = 1
		}
	}
	d.ClassNames = make([]string, d.Classes)
	for c := range d.ClassNames {
		d.ClassNames[c] = strconv.Itoa(c + 1)
	}
	return nil
}

// candidateVectors reports whether candidates are vectors of 0 and 1, and their length.
func (m *matBags) candidateVectors() (length int, vectors bool) {
	for i, row := range m.rows {
		x := row[1].Numbers
		if i == 0 {
			length = len(x)
		}
		if len(x) != length || length < 2 {
			return 0, false
		}
		for _, v := range x {
			if v != 0 && v != 1 {
				return 0, false
			}
		}
	}
	// If all entries are 1, all classes are candidates, because no bag lists label 1 twice.
	return length, true
}

// countClasses checks that labels are whole numbers from 1, and finds the largest.
func (m *matBags) countClasses(d *data.Dataset) error {
	for i, row := range m.rows {
		labels := slices.Clone(row[1].Numbers)
		if len(row) > 2 && len(row[2].Numbers) == 1 && row[2].Numbers[0] != 0 {
			labels = append(labels, row[2].Numbers[0])
		}
		for _, x := range labels {
			if x < 1 || x > math.MaxInt32 || x != math.Trunc(x) {
				return fmt.Errorf("bag %d: the label %v is not a whole number of at least 1; labels count from 1", i+1, x)
			}
			d.Classes = max(d.Classes, int(x))
		}
	}
	return nil
}

func (m *matBags) labels(d *data.Dataset) error {
	if len(m.rows[0]) < 3 {
		return nil
	}
	d.Labels = make([]int, len(m.rows))
	for i, row := range m.rows {
		d.Labels[i] = -1
		x := row[2].Numbers
		if m.vectors && len(x) == d.Classes {
			x = oneHot(x)
		}
		switch {
		case len(x) > 1:
			return fmt.Errorf("bag %d has %d true labels; one is needed", i+1, len(x))
		case len(x) == 1 && (x[0] < 0 || x[0] > float64(d.Classes) || x[0] != math.Trunc(x[0])):
			return fmt.Errorf("bag %d: the true label %v is out of range; classes count from 1 to %d, 0 means unknown", i+1,
				x[0], d.Classes)
		case len(x) == 1:
			d.Labels[i] = int(x[0]) - 1
		}
	}
	if !data.AnyKnown(d.Labels) {
		d.Labels = nil
	}
	return nil
}

// oneHot returns the position of the only 1 in a vector of zeros, counted from 1, and 0 for a
// vector of zeros. It returns other vectors unchanged.
func oneHot(x []float64) []float64 {
	at := 0
	for i, v := range x {
		switch {
		case v == 1 && at == 0:
			at = i + 1
		case v != 0:
			return x
		}
	}
	return []float64{float64(at)}
}

func (m *matBags) instanceLabels(d *data.Dataset) error {
	if len(m.rows[0]) < 4 {
		return nil
	}
	for i, row := range m.rows {
		x := row[3].Numbers
		if len(x) != d.Size(i) {
			return fmt.Errorf("bag %d has %s and %s", i+1, diag.Count(d.Size(i), "instance"), diag.Count(len(x),
				"instance label"))
		}
		for j, v := range x {
			if v < 0 || v > float64(d.Classes) || v != math.Trunc(v) {
				return fmt.Errorf("bag %d: the label %v of instance %d is out of range; classes count from 1 to %d, 0 means "+
					"negative", i+1, v, j+1, d.Classes)
			}
			d.InstLabels = append(d.InstLabels, int(v)-1)
		}
	}
	return nil
}
