package experiment

import (
	"errors"
	"io/fs"
	"time"

	"github.com/miplc/miplc/experiment/definition"
	"github.com/miplc/miplc/experiment/results"
)

// Status says where the experiment of a folder stands, whoever computes it.
type Status struct {
	Name    string            `json:"name"`
	Plan    string            `json:"plan,omitempty"` // Deal.ID; empty: not dealt
	Shards  int               `json:"shards,omitempty"`
	Cells   int               `json:"cells"`
	Done    int               `json:"done"`
	Failed  int               `json:"failed"`
	Running []results.Process `json:"running"`
	// Failures are the cells that failed, with the last reason.
	Failures []Failure `json:"failures,omitempty"`
	// Differ are the cells that were computed more than once with results that are not
	// the same.
	Differ []definition.Coord `json:"differ,omitempty"`

	Seconds float64  `json:"seconds"`                // of one core, or of a device, that the cells without a result take; estimated
	Left    *float64 `json:"seconds_left,omitempty"` // with the processes that run; nil: none does
}

// Failure is a cell that failed.
type Failure struct {
	definition.Coord
	Error string `json:"error"`
}

// ReadStatus looks at a folder at a time.
func ReadStatus(dir string, now time.Time) (*Status, error) {
	plan, err := ReadPlan(dir)
	if err != nil {
		return nil, err
	}
	have, err := results.Read(dir)
	if err != nil {
		return nil, err
	}
	deal, err := readDeal(dir)
	if errors.Is(err, fs.ErrNotExist) {
		deal, err = &Deal{}, nil
	}
	if err != nil {
		return nil, err
	}
	s := &Status{Name: plan.Name, Plan: deal.ID, Shards: len(deal.Shards), Cells: len(plan.Cells), Differ: have.Differ}
	s.count(plan, have, deal.nominal())
	s.Running = []results.Process{}
	if s.Done < s.Cells { // else who was killed is not waited for
		if s.Running, err = results.Running(dir, now); err != nil {
			return nil, err
		}
	}
	if n := len(s.Running); n > 0 {
		left := s.Seconds / float64(n*max(1, deal.CPUs))
		s.Left = &left
	}
	return s, nil
}

// count counts the cells and estimates what the others take.
func (s *Status) count(plan *Plan, have *results.Results, nominal map[string]float64) {
	var cells, left []*Cell
	for i := range plan.Cells {
		c := &plan.Cells[i]
		if c.nominal = nominal[c.Key]; c.nominal == 0 {
			c.nominal = 1
		}
		cells = append(cells, c)
		switch r, found := have.ByKey[c.Key]; {
		case found && r.Error == "":
			s.Done++
			continue
		case found:
			s.Failed++
			s.Failures = append(s.Failures, Failure{c.Coord, r.Error})
		}
		left = append(left, c)
	}
	costs := measureCosts(cells, have)
	for _, c := range left {
		s.Seconds += costs.of(c)
	}
}

// nominal returns the seconds of the cells of a deal, as it estimated them.
func (d *Deal) nominal() map[string]float64 {
	list := map[string]float64{}
	for _, s := range d.Shards {
		for _, g := range s.Groups {
			for _, c := range g.Cells {
				list[c.Key] = g.Seconds / float64(len(g.Cells))
			}
		}
	}
	return list
}
