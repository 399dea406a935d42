package data

import (
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/miplc/miplc/data/matfile"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/infile"
	"github.com/miplc/miplc/internal/stream"
)

// Split says which bags train and which test. Bags count from 0 here; files
// count them from 1.
type Split struct {
	Train, Test []int  // ascending
	Source      string // how it came about, e.g. "stratified 0.7, seed 1" or "index1.mat"
}

// Stratified is the first word of the Source of stratified splits.
const Stratified = "stratified"

// SplitOptions are the settings of a random split.
type SplitOptions struct {
	Train    float64 // share of training bags, between 0 and 1
	Seed     uint64
	Stratify bool // gives every class the same share, where true labels are known
}

// RandomSplit draws round(o.Train*bags) training bags at random; the others test.
// labels holds the true label of each bag, -1 for unknown; nil means that no label
// is known. A stratified split draws the same share of every class, as the splits
// of the DEMIPL authors do. Bags without a label count as one more class. Without
// labels, or without o.Stratify, the draw is uniform over all bags.
func RandomSplit(bags int, labels []int, o SplitOptions) (*Split, error) {
	if !(o.Train > 0 && o.Train < 1) {
		return nil, diag.Errorf(diag.Pos{}, "the training share %v must lie between 0 and 1", o.Train)
	}
	n := int(math.Round(o.Train * float64(bags)))
	if n < 1 || n >= bags {
		return nil, diag.Errorf(diag.Pos{}, "a training share of %v of %s leaves %d for training and %d for testing; both need one", o.Train, diag.Count(bags, "bag"), n, bags-n)
	}
	kind := Stratified
	if !o.Stratify || !anyKnown(labels) {
		kind, labels = "random", make([]int, bags)
	}
	order := stream.New(o.Seed, "split").Perm(bags)
	left := quotas(order, labels, o.Train, n)
	s := &Split{Source: fmt.Sprintf("%s %v, seed %d", kind, o.Train, o.Seed)}
	for _, bag := range order {
		if left[labels[bag]] > 0 {
			left[labels[bag]]--
			s.Train = append(s.Train, bag)
		} else {
			s.Test = append(s.Test, bag)
		}
	}
	slices.Sort(s.Train)
	slices.Sort(s.Test)
	return s, nil
}

// quotas returns how many of n training bags each class gets: its share rounded
// down, and one more for the classes with the largest remainders. A class of two
// bags or more is in both parts where n allows it. The random order breaks ties, so
// that no class is preferred.
func quotas(order, labels []int, share float64, n int) map[int]int {
	type class struct{ label, size, quota int }
	var classes []*class
	byLabel := map[int]*class{}
	for _, bag := range order {
		c := byLabel[labels[bag]]
		if c == nil {
			c = &class{label: labels[bag]}
			byLabel[c.label], classes = c, append(classes, c)
		}
		c.size++
	}
	for _, c := range classes {
		c.quota = int(share * float64(c.size))
		n -= c.quota
	}
	urgency := func(c *class) float64 {
		remainder := share*float64(c.size) - float64(c.quota)
		switch {
		case c.quota == 0:
			return 1 + remainder // else no bag of the class would train
		case c.quota+1 == c.size:
			return remainder - 1 // no bag of the class would test
		}
		return remainder
	}
	slices.SortStableFunc(classes, func(a, b *class) int { return cmp.Compare(urgency(b), urgency(a)) })
	out := map[int]int{}
	for i, c := range classes {
		out[c.label] = c.quota
		if i < n {
			out[c.label]++
		}
	}
	return out
}

// newIndexSplit turns bag numbers that count from 1 into a split of exactly these
// bags: each in one part, none missing, none out of range.
func newIndexSplit(source string, train, test []int, bags int) (*Split, error) {
	pos := diag.Pos{File: source}
	var faults diag.List
	note := func(format string, args ...any) {
		faults.Add(diag.Errorf(pos, format, args...))
	}
	part := make([]string, bags)
	s := &Split{Source: source}
	place := func(name string, numbers []int, to *[]int) {
		if len(numbers) == 0 {
			note("the %s part is empty", name)
		}
		for _, n := range numbers {
			switch {
			case n < 1 || n > bags:
				note("bag %d of the %s part is out of range; bags count from 1 to %d", n, name, bags)
			case part[n-1] == name:
				note("bag %d is in the %s part twice", n, name)
			case part[n-1] != "":
				note("bag %d is in the %s and the %s part; the parts must not overlap", n, part[n-1], name)
			default:
				part[n-1] = name
				*to = append(*to, n-1)
			}
		}
	}
	place("training", train, &s.Train)
	place("test", test, &s.Test)
	if len(faults) == 0 {
		missing := 0
		for i, p := range part {
			if p == "" {
				if missing++; missing == 1 {
					note("bag %d is in neither part", i+1)
				}
			}
		}
		if missing > 1 {
			faults[0] = faults[0].WithNote("%d of %d bags are in neither part", missing, bags)
		}
	}
	if err := faults.Err(); err != nil {
		return nil, err
	}
	slices.Sort(s.Train)
	slices.Sort(s.Test)
	return s, nil
}

// OpenSplit reads a split of a set of that many bags from an index file: a .mat
// with trainIndex and testIndex as the DEMIPL authors keep them, or a CSV with
// the header split,part,bags, whose rows give the number of the split (column
// split), "train" or "test", and bag numbers separated by spaces or commas. Bags count
// from 1 in both. part chooses the split of a CSV, counted from 1; a .mat holds
// one split, part is then 0 or 1.
func OpenSplit(path string, part, bags int) (*Split, error) {
	var train, test []int
	var err error
	source := filepath.Base(path)
	switch format(path) {
	case ".mat":
		if part > 1 {
			return nil, diag.Errorf(diag.Pos{File: path}, "part %d is asked for, but a .mat file holds one split", part)
		}
		train, test, err = readIndexMAT(path)
	case ".csv", ".csv.gz":
		part = max(part, 1)
		source = fmt.Sprintf("%s, part %d", source, part)
		train, test, err = readIndexCSV(path, part)
	default:
		return nil, unknownFormat(path, "read as splits", ".mat and .csv")
	}
	if err != nil {
		return nil, FileError(path, err)
	}
	s, err := newIndexSplit(path, train, test, bags)
	if err != nil {
		return nil, err
	}
	s.Source = source
	return s, nil
}

// WriteSplits writes splits as the CSV that OpenSplit reads, numbered from 1.
func WriteSplits(w io.Writer, splits []*Split) error {
	rows := csv.NewWriter(w)
	rows.Write([]string{"split", "part", "bags"})
	for i, s := range splits {
		for _, part := range []struct {
			name string
			bags []int
		}{{"train", s.Train}, {"test", s.Test}} {
			var text strings.Builder
			for j, bag := range part.bags {
				if j > 0 {
					text.WriteByte(' ')
				}
				text.WriteString(strconv.Itoa(bag + 1))
			}
			rows.Write([]string{strconv.Itoa(i + 1), part.name, text.String()})
		}
	}
	rows.Flush()
	return rows.Error()
}

// maxIndexBytes bounds index files, which hold a few numbers a bag.
const maxIndexBytes = 256 << 20

func readIndexMAT(path string) (train, test []int, err error) {
	f, _, err := infile.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	vars, err := readVariables(f, tooLargeError{what: "the file", max: maxIndexBytes, fixed: true})
	if err != nil {
		return nil, nil, err
	}
	for _, v := range vars {
		switch v.Name {
		case "trainIndex":
			train, err = indexNumbers(v)
		case "testIndex":
			test, err = indexNumbers(v)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	if train == nil || test == nil {
		return nil, nil, errors.New("the variables trainIndex and testIndex are needed")
	}
	return train, test, nil
}

func indexNumbers(v *matfile.Array) ([]int, error) {
	if v.Numbers == nil {
		return nil, fmt.Errorf("the variable %q is a %s of %s; bag numbers are needed", v.Name, v.Class, v.Size())
	}
	out := make([]int, len(v.Numbers))
	for i, x := range v.Numbers {
		if x != math.Trunc(x) || math.Abs(x) > 1<<53 {
			return nil, fmt.Errorf("the variable %q holds %v, which is no bag number", v.Name, x)
		}
		out[i] = int(x)
	}
	return out, nil
}

func readIndexCSV(path string, part int) (train, test []int, err error) {
	f, _, err := infile.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	r, err := unpack(f, path)
	if err != nil {
		return nil, nil, err
	}
	return decodeIndexCSV(r, path, part)
}

func decodeIndexCSV(r io.Reader, path string, part int) (train, test []int, err error) {
	rows := NewCSV(r, maxIndexBytes)
	header, err := rows.Read()
	if err != nil {
		return nil, nil, fmt.Errorf("no header split,part,bags: %w", infile.CutShort(err))
	}
	if !slices.EqualFunc(header, []string{"split", "part", "bags"}, func(a, b string) bool { return strings.EqualFold(strings.TrimSpace(a), b) }) {
		return nil, nil, diag.Errorf(diag.Pos{File: path, Line: 1}, "the header is %q; split,part,bags is needed", strings.Join(header, ","))
	}
	last := 0
	for {
		row, err := rows.Read()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, nil, infile.CutShort(err)
		}
		line, _ := rows.FieldPos(0)
		pos := diag.Pos{File: path, Line: line}
		number, err := strconv.Atoi(strings.TrimSpace(row[0]))
		if err != nil {
			return nil, nil, diag.Errorf(pos, "the split number %q is not a whole number", row[0])
		}
		last = max(last, number)
		if number != part {
			continue
		}
		var to *[]int
		switch strings.ToLower(strings.TrimSpace(row[1])) {
		case "train":
			to = &train
		case "test":
			to = &test
		default:
			return nil, nil, diag.Errorf(pos, "the part is %q; it must be train or test", row[1])
		}
		for field := range strings.FieldsFuncSeq(row[2], func(r rune) bool { return strings.ContainsRune(" ,;\t", r) }) {
			n, err := strconv.Atoi(field)
			if err != nil {
				return nil, nil, diag.Errorf(pos, "%q is no bag number", field)
			}
			*to = append(*to, n)
		}
	}
	if train == nil && test == nil {
		return nil, nil, fmt.Errorf("the file has no split %d; its splits are numbered up to %d", part, last)
	}
	return train, test, nil
}
