// Package datatest has a dataset for tests.
package datatest

import "github.com/miplc/miplc/data"

// Small returns a valid dataset of 3 bags with 2, 1 and 3 instances, 2 features and 3 classes.
// It has every optional field of a dataset except groups, coordinates and names of features.
func Small() *data.Dataset {
	return &data.Dataset{
		Name:       "small",
		Shape:      []int{2},
		Instances:  []float32{0.5, -1, 2, 1e-20, 3, 4, 0, 1, -7.25, 3e8, 0.1, 0.2},
		Offsets:    []int{0, 2, 3, 6},
		Candidates: []uint8{1, 1, 0, 0, 1, 1, 1, 0, 1},
		Classes:    3,
		Labels:     []int{0, 2, -1},
		InstLabels: []int{0, -1, 2, -1, -1, 1},
		ClassNames: []string{"wren", "jay", "crow"},
		BagNames:   []string{"a/1.png", "a/2.png", "b, c/1.png"},
	}
}
