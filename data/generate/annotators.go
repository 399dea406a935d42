// Candidate sets from the labels that several annotators gave to the same images, by the rule of the paper's dataset
// CRC-MIPL (section 4.1, "Real-World Dataset").

package generate

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/miplc/miplc/internal/diag"
)

// MinAnnotators is the minimum number of annotators for candidate sets.
const MinAnnotators = 3

// agreement is the number of annotators that must include a label.
const agreement = 2

// CrowdStats describes how the candidate sets were made.
type CrowdStats struct {
	Images         int     `json:"images"`
	Classes        int     `json:"classes"`
	Annotators     int     `json:"annotators"`
	MeanCandidates float64 `json:"mean_candidates"` // mean number of labels per image
	// images whose set contains the labels on which at least two annotators agree
	Agreed     int     `json:"agreed"`
	Picked     int     `json:"picked"`      // images whose set contains each annotator's most probable label
	MeanLabels float64 `json:"mean_labels"` // mean number of labels per annotator and image
}

// ReadAnnotators reads one table per annotator. The classes are the given ones, or those of the first
// file. All tables must have the same images.
func ReadAnnotators(paths, classes []string) ([]*LabelTable, error) {
	if len(paths) < MinAnnotators {
		return nil, fmt.Errorf("the rule needs the files of at least %d annotators, %d given", MinAnnotators, len(paths))
	}
	var faults diag.List
	var annotators []*LabelTable
	from := map[string]bool{}
	for _, p := range paths {
		if clean := filepath.Clean(p); from[clean] {
			faults.Add(diag.Errorf(diag.Pos{File: p}, "the file is given twice; every annotator needs a file"))
		} else {
			from[clean] = true
		}
		t, err := readTable(p, classes)
		if err != nil {
			faults.AddError(diag.Pos{File: p}, err)
			continue
		}
		if classes == nil {
			classes = t.Classes
		}
		annotators = append(annotators, t)
	}
	if err := faults.Err(); err != nil {
		return nil, err
	}
	first := annotators[0]
	for _, other := range annotators[1:] {
		other.missing(first, &faults)
		first.missing(other, &faults)
	}
	return annotators, faults.Err()
}

// missing reports the images of other that t does not have.
func (t *LabelTable) missing(other *LabelTable, faults *diag.List) {
	lacks := func(image string) bool { _, ok := t.rows[image]; return !ok }
	first, n := slices.IndexFunc(other.Images, lacks), 0
	if first < 0 {
		return
	}
	for _, image := range other.Images[first+1:] {
		if lacks(image) {
			n++
		}
	}
	d := diag.Errorf(diag.Pos{File: t.Path}, "no row for the image %q, which %s has in line %d", other.Images[first],
		other.Path, other.lines[first]).WithSuggestion(diag.Suggest(other.Images[first], t.Images))
	if n > 0 {
		d = d.WithNote("%d more images are missing", n)
	}
	faults.Add(d)
}

// DistillCandidates makes the candidate sets. The set of one annotator for an image has the labels with a
// probability above 0. A label in the sets of at least two annotators is a candidate. If that gives
// fewer than two candidates, the candidates are the most probable labels of each annotator instead
// (all of them on ties). Images are in the order of the first annotator.
func DistillCandidates(annotators []*LabelTable) (*LabelTable, CrowdStats, error) {
	first := annotators[0]
	k := len(first.Classes)
	out := &LabelTable{Classes: first.Classes, Images: first.Images, Values: make([]float64, len(first.Values)),
		lines: first.lines}
	s := CrowdStats{Images: len(first.Images), Classes: k, Annotators: len(annotators)}
	for _, t := range annotators {
		for _, v := range t.Values {
			if v > 0 {
				s.MeanLabels++
			}
		}
	}
	var faults diag.List
	marks := make([][]float64, len(annotators))
	for i, image := range first.Images {
		for w, t := range annotators {
			marks[w] = t.row(t.rows[image])
		}
		labels, picked := distill(marks, out.row(i))
		switch {
		case labels == 0:
			faults.Add(diag.Errorf(diag.Pos{File: first.Path, Line: first.lines[i]}, "no annotator gives the image %q any label",
				image))
		case picked:
			s.Picked++
		default:
			s.Agreed++
		}
		s.MeanCandidates += float64(labels)
	}
	s.MeanCandidates /= float64(s.Images)
	s.MeanLabels /= float64(s.Images * s.Annotators)
	return out, s, faults.Err()
}

// distill sets the candidates of one image. It returns their number, and whether the most probable
// labels were used because the annotators agree on too few.
func distill(marks [][]float64, candidates []float64) (labels int, picked bool) {
	for c := range candidates {
		in := 0
		for _, p := range marks {
			if p[c] > 0 {
				in++
			}
		}
		if in >= agreement {
			candidates[c] = 1
			labels++
		}
	}
	if labels > 1 {
		return labels, false
	}
	clear(candidates)
	for _, p := range marks {
		top := slices.Max(p)
		for c, v := range p {
			if v == top && top > 0 {
				candidates[c] = 1
			}
		}
	}
	labels = 0
	for _, v := range candidates {
		labels += int(v)
	}
	return labels, true
}
