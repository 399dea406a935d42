// The columns of a split file.

package data

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/miplc/miplc/data/rawfile"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/fileio"
)

// layout has the columns of a CSV file of splits, -1 for those that it lacks. There are three kinds:
//
//	split,part,bags   a row has the numbers of all bags of a part, separated by spaces or commas
//	bag,part          a row has the name or number of one bag; split may be a third column
//	train,val,test    a row has one bag of each part, or empty fields, as in the splits of CLAM
//
// split is the number of the split, counted from 1; without it, the file has one split. Other columns
// are ignored.
type layout struct {
	split, part, bags, bag int
	parts                  [3]int // of partNames
}

// partNames are the names of the parts in files, in the order of their columns.
var partNames = [3]string{TrainPart, ValidationPart, TestPart}

// partNamed returns the name of the part with a name, "" if there is none. CLAM and PyTorch users
// write val.
func partNamed(name string) string {
	name = strings.ToLower(strings.TrimSpace(name))
	if name == "val" {
		return ValidationPart
	}
	if slices.Contains(partNames[:], name) {
		return name
	}
	return ""
}

// layoutOf returns the layout with a header.
func layoutOf(path string, rows *rawfile.CSV) (layout, error) {
	header := rows.Header
	l := layout{split: rows.Column("split"), part: rows.Column("part"), bags: rows.Column("bags"), bag: rows.Column("bag")}
	for i, part := range partNames {
		l.parts[i] = slices.IndexFunc(header, func(h string) bool { return partNamed(h) == part })
	}
	switch {
	case l.split >= 0 && l.part >= 0 && l.bags >= 0, l.part >= 0 && l.bag >= 0, l.parts[0] >= 0 && l.parts[2] >= 0:
		return l, nil
	}
	return l, diag.Errorf(diag.Pos{File: path, Line: 1}, "the header is %q; bag,part or train,val,test or "+
		"split,part,bags is needed", strings.Join(header, ","))
}

// finder returns the index of the bag with a name, see newFinder.
type finder = func(pos diag.Pos, bag string) (int, error)

func readIndexCSV(path string, number int, find finder) (numbersByPart, error) {
	f, _, err := fileio.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r, err := rawfile.Unpack(f, path)
	if err != nil {
		return nil, err
	}
	return decodeIndexCSV(r, path, number, find)
}

func decodeIndexCSV(r io.Reader, path string, number int, find finder) (numbersByPart, error) {
	rows, err := rawfile.NewCSV(r, path, maxIndexBytes, "bag,part")
	if err != nil {
		return nil, err
	}
	l, err := layoutOf(path, rows)
	if err != nil {
		return nil, err
	}
	last, numbers := 0, numbersByPart{}
	for {
		row, err := rows.Next()
		if err != nil {
			return nil, err
		}
		if row == nil {
			break
		}
		pos := diag.Pos{File: path, Line: rows.Line}
		in := 1
		if l.split >= 0 {
			if in, err = strconv.Atoi(strings.TrimSpace(row[l.split])); err != nil || in < 1 {
				return nil, diag.Errorf(pos, "the split number is %q, but splits are numbered 1, 2, ...", row[l.split])
			}
		}
		if last = max(last, in); in != number {
			continue
		}
		if err := l.add(numbers, row, pos, find); err != nil {
			return nil, err
		}
	}
	switch {
	case last == 0:
		return nil, errors.New("the file has a header and no bags")
	case len(numbers) == 0:
		return nil, fmt.Errorf("the file has no split %d; its splits are numbered up to %d", number, last)
	}
	return numbers, nil
}

// add adds the bags of a row to numbers.
func (l *layout) add(numbers numbersByPart, row []string, pos diag.Pos, find finder) error {
	addBag := func(part, bag string) error {
		i, err := find(pos, bag)
		if err != nil {
			return err
		}
		numbers[part] = append(numbers[part], indexEntry{bag: i + 1, line: pos.Line})
		return nil
	}
	if l.part < 0 {
		for i, column := range l.parts {
			if column < 0 || row[column] == "" {
				continue
			}
			if err := addBag(partNames[i], row[column]); err != nil {
				return err
			}
		}
		return nil
	}
	part := partNamed(row[l.part])
	if part == "" {
		return diag.Errorf(pos, "the part is %q; it must be train, validation or test", row[l.part])
	}
	if l.bags < 0 {
		return addBag(part, row[l.bag])
	}
	for field := range strings.FieldsFuncSeq(row[l.bags], func(r rune) bool { return strings.ContainsRune(" ,;\t", r) }) {
		n, err := strconv.Atoi(field)
		if err != nil {
			return diag.Errorf(pos, "%q is not a bag number", field).WithNote("the bags of the dataset are numbered from 1, " +
				"in its order; the columns bag,part have names")
		}
		numbers[part] = append(numbers[part], indexEntry{bag: n, line: pos.Line, counted: true})
	}
	return nil
}
