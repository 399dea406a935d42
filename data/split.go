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

// Split divides the bags of a dataset into parts. Bags count from 0 here; files count
// them from 1.
type Split struct {
	// Train, Validation and Test are the bags of the parts, ascending. Validation may be
	// empty; in trainings without a measurement Test may be empty too.
	Train, Validation, Test []int
	Source                  string // how it was made, e.g. "stratified 0.7, seed 1" or "index1.mat"
}

// Names of the parts of a split, in files and in results.
const (
	TrainPart      = "train"
	ValidationPart = "validation"
	TestPart       = "test"
)

// Part is one part of a split.
type Part struct {
	Name string
	Bags []int
}

// Parts returns the parts of the split: training, validation (only if it has bags), test.
func (s *Split) Parts() []Part {
	list := []Part{{TrainPart, s.Train}, {ValidationPart, s.Validation}, {TestPart, s.Test}}
	return slices.DeleteFunc(list, func(p Part) bool { return p.Name == ValidationPart && len(p.Bags) == 0 })
}

// Stratified is the first word of the Source of stratified splits.
const Stratified = "stratified"

// SplitOptions are the settings of a random split.
type SplitOptions struct {
	Train    float64 // share of training bags, between 0 and 1; not used with Folds
	Seed     uint64
	Stratify bool // gives every class the same share, where true labels are known
	// Folds divides the bags into that many parts of about the same size. Part Fold,
	// counted from 1, has the test bags. 0: no folds.
	Folds, Fold int
	// Validation is the share of the training bags that become validation bags; 0: none.
	Validation float64
	// Groups are the groups of the bags, such as patients: all bags of a group are in the
	// same part. nil: no groups.
	Groups  []string
	Classes []string // names of the classes, for messages; nil: their numbers
}

// SplitError reports a setting of SplitOptions that does not fit the bags.
type SplitError struct {
	Setting string // train, folds, validation or group
	Text    string
	Note    string // what to do; may be empty
}

func (e *SplitError) Error() string { return e.Text }

// RandomSplit draws training bags at random, round(o.Train*bags) of them unless there are
// folds or groups; the others are test bags. labels are the true labels of the bags, -1
// for unknown; nil means that no label is known. A stratified split draws the same share
// of every class, as the splits of the DEMIPL authors do. Bags without a label count as
// one more class. Without labels, or without o.Stratify, the draw is uniform over all
// bags. Validation bags are drawn from the training bags in the same way, so that the
// test bags do not depend on o.Validation. Errors are *SplitError.
func RandomSplit(bags int, labels []int, o SplitOptions) (*Split, error) {
	kind := Stratified
	if !o.Stratify || !anyKnown(labels) {
		kind, labels = "random", make([]int, bags)
	}
	s := &Split{Source: fmt.Sprintf("%s %v, seed %d", kind, o.Train, o.Seed)}
	var err error
	switch {
	case o.Folds > 0:
		s.Source = fmt.Sprintf("%s fold %d of %d, seed %d", kind, o.Fold, o.Folds, o.Seed)
		s.Train, s.Test, err = drawFold(labels, o)
	case o.Groups != nil:
		s.Train, s.Test, err = drawGroups(labels, o)
	default:
		s.Train, s.Test, err = drawShare(labels, o)
	}
	if err == nil && o.Validation > 0 {
		err = s.drawValidation(labels, o)
	}
	if err != nil {
		return nil, err
	}
	if o.Groups != nil {
		s.Source += ", whole groups"
	}
	return s, nil
}

// drawShare draws training bags; labels are the classes to stratify by.
func drawShare(labels []int, o SplitOptions) (train, test []int, err error) {
	bags := len(labels)
	n := int(math.Round(o.Train * float64(bags)))
	switch {
	case !(o.Train > 0 && o.Train < 1):
		return nil, nil, &SplitError{Setting: "train", Text: fmt.Sprintf("the training share %v must lie between 0 and 1", o.Train)}
	case n < 1 || n >= bags:
		return nil, nil, &SplitError{Setting: "train", Text: fmt.Sprintf("a training share of %v of %s leaves %d for training and %d for testing; both need one", o.Train, diag.Count(bags, "bag"), n, bags-n)}
	}
	order := stream.New(o.Seed, "split").Perm(bags)
	left := quotas(order, labels, o.Train, n)
	for _, bag := range order {
		if left[labels[bag]] > 0 {
			left[labels[bag]]--
			train = append(train, bag)
		} else {
			test = append(test, bag)
		}
	}
	slices.Sort(train)
	slices.Sort(test)
	return train, test, nil
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

// indexed are the bag numbers of an index file by the name of the part, counted from 1.
// A file without validation bags has no such part.
type indexed map[string][]int

// newIndexSplit turns bag numbers that count from 1 into a split of exactly these
// bags: each in one part, none missing, none out of range.
func newIndexSplit(source string, numbers indexed, bags int) (*Split, error) {
	pos := diag.Pos{File: source}
	var faults diag.List
	note := func(format string, args ...any) {
		faults.Add(diag.Errorf(pos, format, args...))
	}
	part := make([]string, bags)
	s := &Split{Source: source}
	place := func(name, title string, to *[]int) {
		if len(numbers[name]) == 0 && name != ValidationPart {
			note("the %s part is empty", title)
		}
		for _, n := range numbers[name] {
			switch {
			case n < 1 || n > bags:
				note("bag %d of the %s part is out of range; bags count from 1 to %d", n, title, bags)
			case part[n-1] == title:
				note("bag %d is in the %s part twice", n, title)
			case part[n-1] != "":
				note("bag %d is in the %s and the %s part; the parts must not overlap", n, part[n-1], title)
			default:
				part[n-1] = title
				*to = append(*to, n-1)
			}
		}
		slices.Sort(*to)
	}
	place(TrainPart, "training", &s.Train)
	place(ValidationPart, "validation", &s.Validation)
	place(TestPart, "test", &s.Test)
	if len(faults) == 0 {
		missing := 0
		for i, p := range part {
			if p == "" {
				if missing++; missing == 1 {
					note("bag %d is in no part", i+1)
				}
			}
		}
		if missing > 1 {
			faults[0] = faults[0].WithNote("%d of %d bags are in no part", missing, bags)
		}
	}
	if err := faults.Err(); err != nil {
		return nil, err
	}
	return s, nil
}

// OpenSplit reads a split of a dataset of that many bags from an index file: a .mat
// with trainIndex and testIndex as the DEMIPL authors keep them, and validationIndex if
// there are validation bags, or a CSV with the header split,part,bags, whose rows give the
// number of the split (column split), "train", "validation" or "test", and bag numbers
// separated by spaces or commas. Bags count from 1 in both. part chooses the split of a
// CSV, counted from 1; a .mat contains one split, part is then 0 or 1.
func OpenSplit(path string, part, bags int) (*Split, error) {
	var numbers indexed
	var err error
	source := filepath.Base(path)
	switch format(path) {
	case ".mat":
		if part > 1 {
			return nil, diag.Errorf(diag.Pos{File: path}, "part %d is asked for, but a .mat file holds one split", part)
		}
		numbers, err = readIndexMAT(path)
	case ".csv", ".csv.gz":
		part = max(part, 1)
		source = fmt.Sprintf("%s, part %d", source, part)
		numbers, err = readIndexCSV(path, part)
	default:
		return nil, unknownFormat(path, "read as splits", ".mat and .csv")
	}
	if err != nil {
		return nil, FileError(path, err)
	}
	s, err := newIndexSplit(path, numbers, bags)
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
		for _, part := range s.Parts() {
			var text strings.Builder
			for j, bag := range part.Bags {
				if j > 0 {
					text.WriteByte(' ')
				}
				text.WriteString(strconv.Itoa(bag + 1))
			}
			rows.Write([]string{strconv.Itoa(i + 1), part.Name, text.String()})
		}
	}
	rows.Flush()
	return rows.Error()
}

// maxIndexBytes bounds index files, which hold a few numbers a bag.
const maxIndexBytes = 256 << 20

// indexVariables are the names of the parts in a .mat file.
var indexVariables = map[string]string{"trainIndex": TrainPart, "validationIndex": ValidationPart, "testIndex": TestPart}

func readIndexMAT(path string) (indexed, error) {
	f, _, err := infile.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	vars, err := readVariables(f, tooLargeError{what: "the file", max: maxIndexBytes, fixed: true})
	if err != nil {
		return nil, err
	}
	numbers := indexed{}
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

func readIndexCSV(path string, part int) (indexed, error) {
	f, _, err := infile.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r, err := unpack(f, path)
	if err != nil {
		return nil, err
	}
	return decodeIndexCSV(r, path, part)
}

func decodeIndexCSV(r io.Reader, path string, part int) (indexed, error) {
	rows := NewCSV(r, maxIndexBytes)
	header, err := rows.Read()
	if err != nil {
		return nil, fmt.Errorf("no header split,part,bags: %w", infile.CutShort(err))
	}
	if !slices.EqualFunc(header, []string{"split", "part", "bags"}, func(a, b string) bool { return strings.EqualFold(strings.TrimSpace(a), b) }) {
		return nil, diag.Errorf(diag.Pos{File: path, Line: 1}, "the header is %q; split,part,bags is needed", strings.Join(header, ","))
	}
	last, numbers := 0, indexed{}
	for {
		row, err := rows.Read()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, infile.CutShort(err)
		}
		line, _ := rows.FieldPos(0)
		pos := diag.Pos{File: path, Line: line}
		number, err := strconv.Atoi(strings.TrimSpace(row[0]))
		if err != nil {
			return nil, diag.Errorf(pos, "the split number %q is not a whole number", row[0])
		}
		last = max(last, number)
		if number != part {
			continue
		}
		name := strings.ToLower(strings.TrimSpace(row[1]))
		if !slices.Contains([]string{TrainPart, ValidationPart, TestPart}, name) {
			return nil, diag.Errorf(pos, "the part is %q; it must be train, validation or test", row[1])
		}
		for field := range strings.FieldsFuncSeq(row[2], func(r rune) bool { return strings.ContainsRune(" ,;\t", r) }) {
			n, err := strconv.Atoi(field)
			if err != nil {
				return nil, diag.Errorf(pos, "%q is no bag number", field)
			}
			numbers[name] = append(numbers[name], n)
		}
	}
	if len(numbers) == 0 {
		return nil, fmt.Errorf("the file has no split %d; its splits are numbered up to %d", part, last)
	}
	return numbers, nil
}
