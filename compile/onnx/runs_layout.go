// How the instances of many runs are laid out and padded.

package onnx

import "slices"

// Pad lays out the rows of the instances of a batch as an input of LowerRuns for one run. Copies of
// the last row of a bag pad it. bagOf has the bag of each instance, ascending from 0.
func (c Capacity) Pad(rows []float32, bagOf []int) []float32 {
	width := len(rows) / len(bagOf)
	padded := make([]float32, 0, c.Bags*c.Instances*width)
	for i, bag := range bagOf {
		row := rows[i*width : (i+1)*width]
		padded = append(padded, row...)
		if last := i+1 == len(bagOf) || bagOf[i+1] != bag; last {
			for len(padded) < (bag+1)*c.Instances*width {
				padded = append(padded, row...)
			}
		}
	}
	return padded
}

// Unpad returns the rows of the instances of a value that is laid out as by Pad.
func (c Capacity) Unpad(padded []float32, bagOf []int) []float32 {
	width := len(padded) / (c.Bags * c.Instances)
	var rows []float32
	for _, at := range c.places(bagOf) {
		rows = append(rows, padded[at*width:(at+1)*width]...)
	}
	return rows
}

// Mask returns real for each instance of a padded batch, and padding for the rest. Mask(bagOf, 1, 0) is InReal, and
// Mask(bagOf, 0, -inf) is InPadding.
func (c Capacity) Mask(bagOf []int, real, padding float32) []float32 {
	mask := slices.Repeat([]float32{padding}, c.Bags*c.Instances)
	for _, at := range c.places(bagOf) {
		mask[at] = real
	}
	return mask
}

// places returns the index of each instance in the padded batch.
func (c Capacity) places(bagOf []int) []int {
	places := make([]int, len(bagOf))
	for i, bag := range bagOf {
		places[i] = bag * c.Instances
		if i > 0 && bagOf[i-1] == bag {
			places[i] = places[i-1] + 1
		}
	}
	return places
}
