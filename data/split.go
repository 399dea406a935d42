package data

import (
	"fmt"
	"math"
	"slices"

	"github.com/miplc/miplc/diag"
	"github.com/miplc/miplc/stream"
)

// Split says which bags train and which test. Bags count from 0 here; files
// count them from 1.
type Split struct {
	Train, Test []int  // ascending
	Source      string // how it came about, e.g. "random 0.7, seed 1" or "index1.mat"
}

// RandomSplit draws round(share*bags) training bags at random; the others test.
// The draw is uniform over all bags: it is not stratified by class, as the
// authors' splits are not.
func RandomSplit(bags int, share float64, seed uint64) (*Split, error) {
	if !(share > 0 && share < 1) {
		return nil, diag.Errorf(diag.Pos{}, "the training share %v must lie between 0 and 1", share)
	}
	n := int(math.Round(share * float64(bags)))
	if n < 1 || n >= bags {
		return nil, diag.Errorf(diag.Pos{}, "a training share of %v of %d bags leaves %d for training and %d for testing; both need one", share, bags, n, bags-n)
	}
	order := stream.New(seed, "split").Perm(bags)
	s := &Split{
		Train:  slices.Clone(order[:n]),
		Test:   slices.Clone(order[n:]),
		Source: fmt.Sprintf("random %v, seed %d", share, seed),
	}
	slices.Sort(s.Train)
	slices.Sort(s.Test)
	return s, nil
}

// newIndexSplit turns bag numbers that count from 1 into a split of exactly these
// bags: each in one part, none missing, none out of range.
func newIndexSplit(source string, train, test []int, bags int) (*Split, error) {
	pos := diag.Pos{File: source}
	var faults diag.List
	note := func(format string, args ...any) {
		if len(faults) < maxReported {
			faults.Add(diag.Errorf(pos, format, args...))
		}
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
