// Splits in CSV files.

package data

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/miplc/miplc/data/rawfile"
	"github.com/miplc/miplc/internal/diag"
)

// partOf has the parts by their names in files. CLAM and PyTorch users write val.
var partOf = map[string]string{TrainPart: TrainPart, ValidationPart: ValidationPart, "val": ValidationPart,
	TestPart: TestPart}

// finder returns the index of the bag with a name, see newFinder.
type finder = func(pos diag.Pos, bag string) (int, error)

// decodeIndexCSV reads split number of a file, counted from 1. There are three kinds of rows:
//
//	split,part,bags   has the numbers of all bags of a part, separated by spaces or commas
//	bag,part          has the name or number of one bag; split may be a third column
//	train,val,test    has one bag of each part, or empty fields, as in the splits of CLAM
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
		i, err := find(rows.Pos(), bag)
		numbers[part] = append(numbers[part], indexEntry{bag: i + 1, line: rows.Line})
		return err
	}
	err := rows.Each(func([]string) (err error) {
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
			for _, name := range []string{TrainPart, ValidationPart, "val", TestPart} {
				if bag := rows.Field(name); bag != "" && err == nil {
					err = add(partOf[name], bag)
				}
			}
			return err
		}
		part := partOf[strings.ToLower(rows.Field("part"))]
		switch {
		case part == "":
			return rows.Errorf("the part is %q; it must be train, validation or test", rows.Field("part"))
		case !lists:
			return add(part, rows.Field("bag"))
		}
		for _, field := range strings.FieldsFunc(rows.Field("bags"), func(r rune) bool {
			return strings.ContainsRune(" ,;\t", r)
		}) {
			n, err := strconv.Atoi(field)
			if err != nil {
				return rows.Errorf("%q is not a bag number", field).WithNote("the bags of the dataset are numbered from 1, in " +
					"its order; the columns bag,part have names")
			}
			numbers[part] = append(numbers[part], indexEntry{bag: n, line: rows.Line, counted: true})
		}
		return nil
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
