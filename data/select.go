// Parts of a dataset, and drawn candidates.

package data

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// Select returns a dataset of the given bags (numbered from 0) in that order. It copies the
// contents. It fails only for a dataset on disk.
func (d *Dataset) Select(bags []int) (*Dataset, error) {
	out := &Dataset{
		Name: d.Name, Shape: append([]int(nil), d.Shape...), Classes: d.Classes, Multi: d.Multi, Noisy: d.Noisy,
		ClassNames: append([]string(nil), d.ClassNames...), FeatureNames: d.FeatureNames, Generator: d.Generator,
		GroupName: d.GroupName,
		Offsets:   []int{0},
	}
	if d.Source != "" {
		out.Source = fmt.Sprintf("%s, bags %v", d.Source, bags)
	}
	dim := d.Dim()
	for _, b := range bags {
		from, to := d.Offsets[b], d.Offsets[b+1]
		out.Offsets = append(out.Offsets, out.Offsets[len(out.Offsets)-1]+d.Size(b))
		out.Candidates = append(out.Candidates, d.CandidateMask(b)...)
		out.Instances = appendPart(out.Instances, d.Instances, from*dim, to*dim)
		out.Labels = appendPart(out.Labels, d.Labels, b, b+1)
		out.Groups = appendPart(out.Groups, d.Groups, b, b+1)
		out.BagNames = appendPart(out.BagNames, d.BagNames, b, b+1)
		out.InstLabels = appendPart(out.InstLabels, d.InstLabels, from, to)
		out.Coords = appendPart(out.Coords, d.Coords, 2*from, 2*to)
	}
	if d.OnDisk() {
		out.Store = &selection{d, slices.Clone(bags)}
		return out, out.HashStored(nil)
	}
	return out, nil
}

// appendPart appends list[from:end] to a list, unless list is nil.
func appendPart[T any](to, list []T, from, end int) []T {
	if list == nil {
		return to
	}
	return append(to, list[from:end]...)
}

// DrawCandidates returns a candidate set, [classes], of the true label and falsePositives other
// labels, which are drawn uniformly without repetition. falsePositives must be less than classes.
func DrawCandidates(r *rand.Rand, label, classes, falsePositives int) []uint8 {
	out := make([]uint8, classes)
	out[label] = 1
	for _, i := range r.Perm(classes - 1)[:falsePositives] {
		if i >= label {
			i++
		}
		out[i] = 1
	}
	return out
}
