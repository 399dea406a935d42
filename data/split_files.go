// Splits from .mat and CSV files, and to CSV files.

package data

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/miplc/miplc/data/formats"
	"github.com/miplc/miplc/data/rawfile"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/fileio"
)

// numbersByPart contains the bag numbers of an index file by the name of the part. A file without
// validation bags has no such part.
type numbersByPart map[string][]indexEntry

// indexEntry is a bag number, counted from 1.
type indexEntry struct {
	bag     int
	line    int  // in a CSV file
	counted bool // the file has this number, not the name of the bag
}

// unusedPart is the part of bags in an index file that a split leaves out.
const unusedPart = "unused"

// newIndexSplit converts bag numbers, counted from 1, to a split. Every one of the bags must be in
// exactly one part, or among the unused ones. names are the names of the bags for messages, or nil.
func newIndexSplit(source string, numbers numbersByPart, bags int, names []string) (*Split, error) {
	title := func(n int) string {
		if names == nil {
			return fmt.Sprintf("bag %d", n)
		}
		return fmt.Sprintf("bag %d (%s)", n, names[n-1])
	}
	var faults diag.List
	note := func(line int, format string, args ...any) {
		faults.Add(diag.Errorf(diag.Pos{File: source, Line: line}, format, args...))
	}
	misleading := func(name string) bool { // the number of another bag
		n, err := strconv.Atoi(diag.Whole(name))
		return err == nil && n >= 1 && n <= len(names) && name != names[n-1]
	}
	if i := slices.IndexFunc(names, misleading); i >= 0 && numbers.counted() {
		return nil, diag.Errorf(diag.Pos{File: source}, "the file has numbers of bags, but bag %d has the name %q: a "+
			"number may be that of one bag and the name of another", i+1, names[i]).
			WithNote("write the names of the bags into a CSV file with the columns bag,part")
	}
	part := make([]string, bags)
	s := &Split{Source: source}
	addPart := func(name, label string, to *[]int) {
		if len(numbers[name]) == 0 && name != ValidationPart && name != unusedPart {
			note(0, "the %s part is empty", label)
		}
		for _, entry := range numbers[name] {
			switch n := entry.bag; {
			case n < 1 || n > bags:
				note(entry.line, "bag %d of the %s part is out of range; bags count from 1 to %d", n, label, bags)
			case part[n-1] == label:
				note(entry.line, "%s is in the %s part twice", title(n), label)
			case part[n-1] != "":
				note(entry.line, "%s is in the %s and the %s part; the parts must not overlap", title(n), part[n-1], label)
			default:
				part[n-1] = label
				*to = append(*to, n-1)
			}
		}
		slices.Sort(*to)
	}
	addPart(TrainPart, "training", &s.Train)
	addPart(ValidationPart, "validation", &s.Validation)
	addPart(TestPart, "test", &s.Test)
	var unused []int
	addPart(unusedPart, unusedPart, &unused)
	if first := slices.Index(part, ""); first >= 0 && len(faults) == 0 {
		note(0, "%s is in no part", title(first+1))
		if missing := bags - len(s.Train) - len(s.Validation) - len(s.Test) - len(unused); missing > 1 {
			faults[0] = faults[0].WithNote("%d of %d bags are in no part", missing, bags)
		}
		faults[0] = faults[0].WithNote("a CSV file lists the bags that a split leaves out in the part unused")
	}
	if err := faults.Err(); err != nil {
		return nil, err
	}
	return s, nil
}

// counted reports whether the file has numbers of bags.
func (n numbersByPart) counted() bool {
	for _, entries := range n {
		if slices.ContainsFunc(entries, func(e indexEntry) bool { return e.counted }) {
			return true
		}
	}
	return false
}

// OpenSplit reads a split of a dataset with the given number of bags from an index file: a .mat file of
// the DEMIPL authors with trainIndex, testIndex and optionally validationIndex, or a CSV file, see
// decodeIndexCSV. Bags count from 1 in both. number selects the split of a CSV file, counted from 1. A .mat
// file contains one split; number is then 0 or 1. names are the names of the bags, or nil.
func OpenSplit(path string, number, bags int, names []string) (*Split, error) {
	var numbers numbersByPart
	var err error
	source := filepath.Base(path)
	switch formats.Extension(path) {
	case ".mat":
		if number > 1 {
			return nil, diag.Errorf(diag.Pos{File: path}, "split %d was requested, but a .mat file contains one split", number)
		}
		numbers, err = readIndexMAT(path)
	case ".csv", ".csv.gz":
		number = max(number, 1)
		source = fmt.Sprintf("%s, split %d", source, number)
		err = rawfile.ReadCSVFile(path, maxIndexBytes, "bag,part", func(rows *rawfile.CSV) error {
			numbers, err = decodeIndexCSV(rows, number, newFinder(bags, names))
			return err
		})
	default:
		return nil, formats.UnknownFormat(path, "read as splits", ".mat and .csv")
	}
	if err != nil {
		return nil, rawfile.FileError(path, err)
	}
	s, err := newIndexSplit(path, numbers, bags, names)
	if err != nil {
		return nil, err
	}
	s.Source = source
	return s, nil
}

// WriteSplit writes splits, numbered from 1, as the CSV that Open reads.
func WriteSplit(w io.Writer, splits []*Split) error {
	rows := csv.NewWriter(w)
	rows.Write([]string{"split", "part", "bags"})
	for i, s := range splits {
		for _, part := range s.Parts() {
			numbers := make([]string, len(part.Bags))
			for j, bag := range part.Bags {
				numbers[j] = strconv.Itoa(bag + 1)
			}
			rows.Write([]string{strconv.Itoa(i + 1), part.Name, strings.Join(numbers, " ")})
		}
	}
	rows.Flush()
	return rows.Error()
}

// maxIndexBytes is the maximum size of index files, which contain a few numbers per bag.
const maxIndexBytes = 256 << 20

// indexVariables are the names of the parts in a .mat file.
var indexVariables = map[string]string{"trainIndex": TrainPart, "validationIndex": ValidationPart,
	"testIndex": TestPart}

func readIndexMAT(path string) (numbersByPart, error) {
	f, _, err := fileio.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	vars, err := rawfile.ReadMAT(f, rawfile.FixedLimit("the file", maxIndexBytes))
	if err != nil {
		return nil, err
	}
	numbers := numbersByPart{}
	for _, v := range vars {
		if part := indexVariables[v.Name]; part != "" {
			if numbers[part], err = indexNumbers(v); err != nil {
				return nil, err
			}
		}
	}
	if numbers[TrainPart] == nil || numbers[TestPart] == nil {
		return nil, errors.New("the variables trainIndex and testIndex are needed")
	}
	return numbers, nil
}

func indexNumbers(v *rawfile.MATArray) ([]indexEntry, error) {
	if v.Numbers == nil {
		return nil, fmt.Errorf("the variable %q is a %s of %s; bag numbers are needed", v.Name, v.Class, v.Size())
	}
	if slices.Contains(v.Numbers, 0) && !slices.ContainsFunc(v.Numbers, func(x float64) bool {
		return x != 0 &&
			x != 1
	}) && len(v.Numbers) > 2 {
		return nil, fmt.Errorf("the variable %q is a mask of zeros and ones; bag numbers are needed: save find(%s)", v.Name,
			v.Name)
	}
	out := make([]indexEntry, len(v.Numbers))
	for i, x := range v.Numbers {
		if x != math.Trunc(x) || math.Abs(x) > 1<<53 {
			return nil, fmt.Errorf("the variable %q contains %v, which is not a bag number", v.Name, x)
		}
		out[i] = indexEntry{bag: int(x), counted: true}
	}
	return out, nil
}

// partOf has the parts by their names in files. CLAM and PyTorch users write val.
var partOf = map[string]string{TrainPart: TrainPart, ValidationPart: ValidationPart, "val": ValidationPart,
	TestPart: TestPart, unusedPart: unusedPart}

// partColumns are the columns of a file with a column for each part.
var partColumns = []string{TrainPart, ValidationPart, "val", TestPart}

// partOfMarks returns the part whose field is True if the fields of all parts are True or False and one is True; "" for
// names of bags. The first column must not be that of a part.
func partOfMarks(rows *rawfile.CSV) (part string) {
	if slices.Contains(partColumns, rows.Header[0]) {
		return ""
	}
	for _, name := range partColumns {
		if !rows.Has(name) {
			continue
		}
		switch field := strings.ToLower(rows.Field(name)); {
		case field == "true" && part == "":
			part = partOf[name]
		case field != "false":
			return ""
		}
	}
	return part
}

// finder returns the index of the bag with a name, see newFinder.
type finder = func(pos diag.Pos, bag string) (int, error)

// countedBags returns the bags of the field "bags" of a row.
func countedBags(rows *rawfile.CSV) (list []indexEntry, err error) {
	separator := func(r rune) bool { return strings.ContainsRune(" ,;\t", r) }
	for _, field := range strings.FieldsFunc(rows.Field("bags"), separator) {
		n, err := strconv.Atoi(field)
		if err != nil {
			return nil, rows.Errorf("%q is not a bag number", field).WithNote("the bags of the dataset are numbered from " +
				"1, in its order; the columns bag,part have names")
		}
		list = append(list, indexEntry{bag: n, line: rows.Line, counted: true})
	}
	return list, nil
}

// decodeIndexCSV reads split number of a file, counted from 1. There are three kinds of rows:
//
//	split,part,bags   has the numbers of all bags of a part, separated by spaces or commas
//	bag,part          has the name or number of one bag; split may be a third column
//	train,val,test    has one bag of each part, or an empty field or a mark of a missing value, as in the splits of CLAM;
//	                  or True in the column of the part of the bag in the first column, as in its splits_0_bool.csv
//
// split is the number of the split; without it, the file has one split. Other columns are ignored.
func decodeIndexCSV(rows *rawfile.CSV, number int, find finder) (numbersByPart, error) {
	lists, named := rows.Has("split", "part", "bags"), rows.Has("part", "bag")
	if !lists && !named && !rows.Has(TrainPart, TestPart) {
		return nil, rows.Errorf("the header is %q; bag,part or train,val,test or split,part,bags is needed",
			strings.Join(rows.Header, ","))
	}
	last, numbers := 0, numbersByPart{}
	add := func(part, bag string) error {
		if MissingMark(bag) {
			return rows.Errorf("the bag is %q, %s", bag, WrittenForMissing)
		}
		i, err := find(rows.Pos(), bag)
		numbers[part] = append(numbers[part], indexEntry{bag: i + 1, line: rows.Line})
		return err
	}
	err := rows.Each(func(row []string) (err error) {
		in := 1
		if text := rows.Field("split"); rows.Has("split") {
			if in, err = strconv.Atoi(text); err != nil || in < 1 {
				return rows.Errorf("the split number is %q, but splits are numbered 1, 2, ...", text)
			}
		}
		if last = max(last, in); in != number {
			return nil
		}
		if !lists && !named {
			if part := partOfMarks(rows); part != "" {
				return add(part, row[0])
			}
			for _, name := range partColumns {
				if bag := rows.Field(name); bag != "" && !MissingMark(bag) && err == nil {
					err = add(partOf[name], bag)
				}
			}
			return err
		}
		part := partOf[strings.ToLower(rows.Field("part"))]
		switch {
		case part == "":
			return rows.Errorf("the part is %q; it must be train, validation, test or unused", rows.Field("part"))
		case !lists:
			return add(part, rows.Field("bag"))
		}
		counted, err := countedBags(rows)
		numbers[part] = append(numbers[part], counted...)
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case last == 0:
		return nil, errors.New("the file has a header and no bags")
	case len(numbers) == 0:
		return nil, fmt.Errorf("the file has no split %d; its splits are numbered up to %d", number, last)
	}
	return numbers, nil
}
