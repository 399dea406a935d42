// Coordinates of a cell: dataset, r, learner, variant and split, in the order of the file.

package definition

import (
	"cmp"
	"fmt"

	"github.com/miplc/miplc/internal/diag"
)

// Coord identifies a cell of an experiment.
type Coord struct {
	Data    string `json:"data"`
	R       int    `json:"r"` // Stored if the file of the dataset determines the candidate sets
	Learner string `json:"learner"`
	Variant string `json:"variant,omitempty"` // value of the learner's vary key, as key=value
	Split   int    `json:"split"`             // from 1
}

func (c Coord) String() string { return fmt.Sprintf("%s split %d", c.Describe(), c.Split) }

// Describe returns the coordinates without the split, as text.
func (c Coord) Describe() string {
	s := c.Learner
	if c.Variant != "" {
		s += " with " + c.Variant
	}
	s += " on " + c.Data
	if c.R != Stored {
		s += fmt.Sprintf(" r=%d", c.R)
	}
	return s
}

// AllSplits returns the coordinates with split 0, as those of the cells of all splits.
func (c Coord) AllSplits() Coord {
	c.Split = 0
	return c
}

// ShowAt returns a diagnostic at a position in the file.
func (e *Experiment) ShowAt(pos diag.Pos, format string, args ...any) diag.Diagnostic {
	return e.AddSource(diag.Errorf(pos, format, args...))
}

// CompareCoord compares cells by dataset, r, learner, variant and split, with the rank of Rank.
func CompareCoord(a, b Coord, rank map[Coord]int) int {
	data := func(c Coord) int { return rank[Coord{Data: c.Data}] }
	learner := func(c Coord) int { return rank[Coord{Learner: c.Learner, Variant: c.Variant}] }
	return cmp.Or(cmp.Compare(data(a), data(b)), cmp.Compare(a.R, b.R), cmp.Compare(learner(a), learner(b)),
		cmp.Compare(a.Split, b.Split))
}

// Rank numbers datasets, and learners with their variants, in the order of the file.
func (e *Experiment) Rank() map[Coord]int {
	rank := map[Coord]int{}
	for _, d := range e.Data {
		rank[Coord{Data: d.Name.V}] = len(rank)
	}
	for i := range e.Learners {
		for _, v := range e.Learners[i].Variants() {
			rank[e.Learners[i].On("", 0, v)] = len(rank)
		}
	}
	return rank
}
