// The status of an experiment: finished and failed cells, the processes that compute others now, and the remaining
// time.

package experiment

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/miplc/miplc/experiment/definition"
)

// Status describes the progress of the experiment in a folder, over all processes.
type Status struct {
	Name    string    `json:"name"`
	PlanID  string    `json:"plan,omitempty"` // ShardPlan.ID; empty: no shards
	Shards  int       `json:"shards,omitempty"`
	Cells   int       `json:"cells"`
	Done    int       `json:"done"`
	Failed  int       `json:"failed"`
	Running []Process `json:"running"`
	// Failures are the failed cells, with their last error.
	Failures []FailedCell `json:"failures,omitempty"`
	// Differ are the cells that were computed more than once with different results.
	Differ []definition.Coord `json:"differ,omitempty"`

	// estimated for the cells without a result, on one core or device; nil: unknown
	Seconds *float64 `json:"seconds,omitempty"`
	Left    *float64 `json:"seconds_left,omitempty"` // with the running processes; nil: unknown, or none is running
}

// FailedCell is a cell that failed.
type FailedCell struct {
	definition.Coord
	Error string `json:"error"`
}

// ReadStatus reads the status of a folder at time now.
func ReadStatus(dir string, now time.Time) (*Status, error) {
	plan, err := ReadPlan(dir)
	if err != nil {
		return nil, err
	}
	have, err := Read(dir)
	if err != nil {
		return nil, err
	}
	shardPlan, err := readShardPlan(dir)
	if errors.Is(err, fs.ErrNotExist) {
		shardPlan, err = &ShardPlan{}, nil
	}
	if err != nil {
		return nil, err
	}
	s := &Status{Name: plan.Name, PlanID: shardPlan.ID, Shards: len(shardPlan.Shards), Cells: len(plan.Cells)}
	s.count(plan, have, shardPlan.plannedSeconds())
	s.Running = []Process{}
	if s.Done < s.Cells { // a finished experiment has no running processes
		if s.Running, err = running(dir, now); err != nil {
			return nil, err
		}
	}
	if n := len(s.Running); n > 0 && s.Seconds != nil {
		left := *s.Seconds / float64(n*max(1, shardPlan.CPUs))
		s.Left = &left
	}
	return s, nil
}

// count counts the cells and estimates the time of the remaining ones, unless no cell is finished and
// no plan of shards has an estimate.
func (s *Status) count(plan *Plan, have *Results, planned map[string]float64) {
	var cells, left []*Cell
	for i := range plan.Cells {
		c := &plan.Cells[i]
		if c.estimate = planned[c.Key]; c.estimate == 0 {
			c.estimate = 1
		}
		cells = append(cells, c)
		if have.Differ[c.Key] {
			s.Differ = append(s.Differ, c.Coord)
		}
		switch r, found := have.ByKey[c.Key]; {
		case found && r.Error == "":
			s.Done++
			continue
		case found:
			s.Failed++
			s.Failures = append(s.Failures, FailedCell{c.Coord, r.Error})
		}
		left = append(left, c)
	}
	costs := costsFromResults(cells, have)
	if costs.measured == 0 && len(planned) == 0 {
		return
	}
	s.Seconds = new(float64)
	for _, c := range left {
		*s.Seconds += costs.seconds(c)
	}
}

// plannedSeconds returns the estimated seconds of the cells in the plan.
func (d *ShardPlan) plannedSeconds() map[string]float64 {
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

// Process is a process that computes cells.
type Process struct {
	Part   string  `json:"part"` // "3-of-8", or "all"
	Host   string  `json:"host"`
	Silent float64 `json:"silent"` // seconds since the last update of its file
}

// alive is how old the last update of a living process may be. File systems show times late, and
// clocks differ between machines.
const alive = 4 * heartbeat

// running returns the processes that are computing cells in a folder: their results file is writable
// and was updated recently.
func running(dir string, now time.Time) ([]Process, error) {
	entries, err := os.ReadDir(filepath.Join(dir, Folder))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	list := []Process{}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || filepath.Ext(entry.Name()) != suffix || info.Mode().Perm()&0o222 == 0 {
			continue
		}
		silent := now.Sub(info.ModTime())
		if silent > alive {
			continue
		}
		part, rest, _ := strings.Cut(strings.TrimSuffix(entry.Name(), suffix), ".")
		host := rest[:max(0, strings.LastIndexByte(rest, '.'))]
		list = append(list, Process{part, host, max(0, silent.Seconds())})
	}
	return list, nil
}
