package data

// smallSet is a valid set with everything known: 3 bags of 2, 1 and 3
// instances, 2 features, 3 classes.
func smallSet() *Dataset {
	return &Dataset{
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
