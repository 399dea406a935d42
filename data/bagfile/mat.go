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
	m := &matBags{limit: o.MaxBytes}
	for _, step := range []func() error{func() error { return m.read(table) }, m.instances, m.candidates, m.labels,
		m.instanceLabels} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	m.d.Warnings = m.ranges.warnings(path, nil)
	return &m.d, nil
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

// matBags is the cell array with one row per bag, and the dataset that it becomes.
type matBags struct {
	limit  rawfile.Limit
	rows   [][]*rawfile.MATArray // 2 to 4 columns
	d      data.Dataset
	ranges precision
}

// read arranges the cells in rows and checks them.
func (m *matBags) read(table *rawfile.MATArray) error {
	if len(table.Dims) != 2 || table.Dims[1] < 2 || table.Dims[1] > 4 {
		return fmt.Errorf("the cell array %q is %s; one row per bag is needed: instances, candidates, true label", table.Name,
			table.Size())
	}
	bags := table.Dims[0]
	if bags == 0 {
		return fmt.Errorf("the cell array %q has no bags", table.Name)
	}
	m.rows = make([][]*rawfile.MATArray, bags)
	for at, cell := range table.Cells { // column-major
		i, j := at%bags, at/bags
		empty := cell.Len() == 0 && (cell.Class == rawfile.MATChar || cell.Class == rawfile.MATCell)
		switch {
		case cell.Class == rawfile.MATSparse:
			return fmt.Errorf("bag %d: column %d is a sparse array, which is not supported: save full(...) of it", i+1, j+1)
		case cell.Complex:
			return fmt.Errorf("bag %d: column %d contains complex numbers", i+1, j+1)
		case cell.Numbers == nil && !empty:
			return fmt.Errorf("bag %d: column %d is a %s of %s; numbers are needed", i+1, j+1, cell.Class, cell.Size())
		}
		m.rows[i] = append(m.rows[i], cell)
	}
	return nil
}

func (m *matBags) instances() error {
	total, first := 0, m.rows[0][0]
	for i, row := range m.rows {
		x := row[0]
		switch {
		case len(x.Dims) != 2:
			return fmt.Errorf("bag %d: the instances are %s; one row per instance is needed", i+1, x.Size())
		case x.Len() == 0:
			return fmt.Errorf("bag %d is empty; a bag needs at least one instance", i+1)
		case x.Dims[1] != first.Dims[1]:
			advice := ""
			if x.Dims[0] == first.Dims[0] {
				advice = "; if the bags have one column per instance, transpose them"
			}
			return fmt.Errorf("bag %d has instances of %s, bag 1 of %d%s", i+1, diag.Count(x.Dims[1], "feature"),
				first.Dims[1], advice)
		}
		total += x.Len()
	}
	d, features := &m.d, first.Dims[1]
	d.Shape, d.Offsets, d.Instances = []int{features}, []int{0}, make([]float32, 0, total)
	for _, row := range m.rows {
		n, x := row[0].Dims[0], row[0].Numbers
		for i := range n {
			for j := range features {
				v := x[i+j*n] // column-major
				d.Instances = append(d.Instances, float32(v))
				if m.ranges.isNarrow(j) {
					m.ranges.add(j, v)
				}
			}
		}
		d.Offsets = append(d.Offsets, d.Offsets[len(d.Offsets)-1]+n)
	}
	return nil
}

func (m *matBags) candidates() error {
	d := &m.d
	if d.Classes = m.listVectors(); d.Classes == 0 {
		if err := m.countClasses(); err != nil {
			return err
		}
	}
	var err error
	if d.Candidates, err = emptyCandidates(m.limit, len(m.rows), d.Classes); err != nil {
		return err
	}
	for i, row := range m.rows {
		for _, x := range row[1].Numbers {
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

// listVectors replaces vectors of 0 and 1 over the classes by lists of numbers from 1, in the columns of the candidates
// and the true labels. It returns the number of classes, or 0 if the candidates are lists already.
func (m *matBags) listVectors() int {
	classes := len(m.rows[0][1].Numbers)
	isVector := func(x []float64) bool {
		return len(x) == classes && classes > 1 && !slices.ContainsFunc(x, func(v float64) bool { return v != 0 && v != 1 })
	}
	for _, row := range m.rows {
		if !isVector(row[1].Numbers) {
			return 0
		}
	}
	// If all entries are 1, all classes are candidates, because no bag lists label 1 twice.
	for _, row := range m.rows {
		for _, cell := range row[1:min(3, len(row))] {
			if x := cell.Numbers; isVector(x) {
				cell.Numbers = nil
				for c, v := range x {
					if v == 1 {
						cell.Numbers = append(cell.Numbers, float64(c+1))
					}
				}
			}
		}
	}
	return classes
}

// countClasses sets the number of classes by the largest label, and checks that labels are whole numbers from 1.
func (m *matBags) countClasses() (err error) {
	listed, largest := 0, 0
	for i, row := range m.rows {
		labels := slices.Clone(row[1].Numbers)
		listed += len(labels)
		if len(row) > 2 && len(row[2].Numbers) == 1 && row[2].Numbers[0] != 0 {
			labels = append(labels, row[2].Numbers[0])
		}
		for _, x := range labels {
			if !isLabel(x, 1, math.MaxInt32) {
				return fmt.Errorf("bag %d: the label %v is not a whole number of at least 1; labels count from 1", i+1, x)
			}
			largest = max(largest, int(x))
		}
	}
	m.d.Classes, err = classesUpTo(1, largest, listed, "candidate")
	return err
}

// isLabel reports whether x is a whole number from low to high.
func isLabel(x float64, low, high int) bool {
	return x >= float64(low) && x <= float64(high) && x == math.Trunc(x)
}

func (m *matBags) labels() error {
	if len(m.rows[0]) < 3 {
		return nil
	}
	labels := make([]int, len(m.rows))
	for i, row := range m.rows {
		labels[i] = -1
		switch x := row[2].Numbers; {
		case len(x) > 1:
			return fmt.Errorf("bag %d has %d true labels; one is needed", i+1, len(x))
		case len(x) == 1 && !isLabel(x[0], 0, m.d.Classes):
			return fmt.Errorf("bag %d: the true label %v is out of range; classes count from 1 to %d, 0 means unknown", i+1,
				x[0], m.d.Classes)
		case len(x) == 1:
			labels[i] = int(x[0]) - 1
		}
	}
	if data.AnyKnown(labels) {
		m.d.Labels = labels
	}
	return nil
}

func (m *matBags) instanceLabels() error {
	if len(m.rows[0]) < 4 {
		return nil
	}
	d := &m.d
	for i, row := range m.rows {
		x := row[3].Numbers
		if len(x) != d.Size(i) {
			return fmt.Errorf("bag %d has %s and %s", i+1, diag.Count(d.Size(i), "instance"), diag.Count(len(x),
				"instance label"))
		}
		for j, v := range x {
			if !isLabel(v, 0, d.Classes) {
				return fmt.Errorf("bag %d: the label %v of instance %d is out of range; classes count from 1 to %d, 0 means "+
					"negative", i+1, v, j+1, d.Classes)
			}
			d.InstLabels = append(d.InstLabels, int(v)-1)
		}
	}
	return nil
}
