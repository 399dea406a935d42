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
	for _, b := range bags {
		if !d.OnDisk() {
			x, err := d.Bag(b)
			if err != nil {
				return nil, err
			}
			out.Instances = append(out.Instances, x...)
		}
		out.Offsets = append(out.Offsets, out.Offsets[len(out.Offsets)-1]+d.Size(b))
		out.Candidates = append(out.Candidates, d.CandidateMask(b)...)
		if d.Labels != nil {
			out.Labels = append(out.Labels, d.Labels[b])
		}
		if d.Groups != nil {
			out.Groups = append(out.Groups, d.Groups[b])
		}
		if d.BagNames != nil {
			out.BagNames = append(out.BagNames, d.BagNames[b])
		}
		if d.InstLabels != nil {
			out.InstLabels = append(out.InstLabels, d.InstLabels[d.Offsets[b]:d.Offsets[b+1]]...)
		}
		if d.Coords != nil {
			out.Coords = append(out.Coords, d.CoordsOf(b)...)
		}
	}
	if d.OnDisk() {
		out.Store = &selection{d, slices.Clone(bags)}
		return out, out.HashStored(nil)
	}
	return out, nil
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
