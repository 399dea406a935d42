// The parts of a split.

package data

import "slices"

// Split divides the bags of a dataset into parts. Bags are numbered from 0 here and from 1 in
// files.
type Split struct {
	// Train, Validation and Test are the bags of the parts, ascending. Validation may be
	// empty; in trainings without a measurement Test may be empty too.
	Train, Validation, Test []int
	Source                  string   // origin, e.g. "stratified 0.7, seed 1" or "index1.mat"
	Warnings                []string // what a random split could not do; the same for all folds
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
