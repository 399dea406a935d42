// The store of results of experiments, one line per cell, and the merge of stores.

package experiment

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/miplc/miplc/data/measure"
	"github.com/miplc/miplc/experiment/definition"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/fileio"
	"github.com/miplc/miplc/runs"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/search"
)

// Folder is the folder of results in the folder of an experiment. It has one file for each process that
// computed cells, with one Result per line.
const Folder = "results"

const suffix = ".jsonl"

// Result is the result of one finished or failed cell, one line of a file in Folder.
type Result struct {
	definition.Coord
	Key   string `json:"key"`
	Error string `json:"error,omitempty"` // reason of the failure; there is then no accuracy
	runs.Assessment
	Accuracy  float64              `json:"accuracy"`           // on the test bags
	Measures  measure.Values       `json:"measures,omitempty"` // on the test bags
	Setting   string               `json:"setting,omitempty"`  // chosen from the grid
	Trials    []search.TrialResult `json:"trials,omitempty"`   // one per setting of the grid
	Attention []train.Histogram    `json:"attention,omitempty"`
	TrainBags int                  `json:"train_bags,omitempty"`
	TestBags  int                  `json:"test_bags,omitempty"`
	Seed      *int                 `json:"seed,omitempty"` // of the training; nil: an earlier version did not record it
	Seconds   float64              `json:"seconds"`
	Miplc     string               `json:"miplc,omitempty"` // version
}

// MarshalJSON omits the accuracy of a failed cell.
func (r Result) MarshalJSON() ([]byte, error) {
	type fields Result
	if r.Error == "" {
		return json.Marshal(fields(r))
	}
	return json.Marshal(struct {
		fields
		Accuracy *float64 `json:"accuracy,omitempty"` // replaces that of fields
	}{fields: fields(r)})
}

// take sets the setting that a search chose, and its trials.
func (r *Result) take(s *search.Search, chosen int) {
	r.Setting, r.Trials = s.Settings[chosen], s.Results
	for _, t := range s.Results {
		r.Seconds += t.Seconds
	}
}

// valid returns an error for lines that no run can have written.
func (r *Result) valid() error {
	switch {
	case r.Key == "" || r.Data == "" || r.Learner == "" || r.Split < 1:
		return errors.New("key, data, learner or split is missing")
	case math.IsNaN(r.Accuracy) || r.Accuracy < 0 || r.Accuracy > 1:
		return fmt.Errorf("the accuracy is %v; it must be between 0 and 1", r.Accuracy)
	}
	for _, h := range r.Attention {
		for _, bins := range [][]int{h.Positive, h.Negative, h.Unknown} {
			if bins != nil && len(bins) != train.HistogramBins {
				return fmt.Errorf("a histogram has %d bins instead of %d", len(bins), train.HistogramBins)
			}
			for _, n := range bins {
				if n < 0 {
					return errors.New("a histogram has a negative count")
				}
			}
		}
	}
	return nil
}

// maxLine bounds one line of results, which normally has a few kilobytes.
const maxLine = 16 << 20

// parseResults reads the lines of a results file. It ignores an incomplete last line: whole is the
// number of bytes before it. An invalid line elsewhere is an error.
func parseResults(path string, text []byte) (list []Result, whole int, err error) {
	for n := 1; whole < len(text); n++ {
		line, rest, ended := bytes.Cut(text[whole:], []byte("\n"))
		var r Result
		wrong := errors.New("the line is too long")
		if len(line) <= maxLine {
			wrong = json.Unmarshal(line, &r)
		}
		if wrong == nil {
			wrong = r.valid()
		}
		switch {
		case !ended, wrong != nil && len(rest) == 0: // cut off, or blocks that were not written to the disk
			return list, whole, nil
		case wrong != nil:
			return nil, 0, diag.Errorf(diag.Pos{File: path, Line: n}, "this line is not a result: %v", wrong).
				WithNote("remove the line and start the experiment again: the cell is then run anew")
		}
		list = append(list, r)
		whole += len(line) + 1
	}
	return list, whole, nil
}

// Results are the merged results of all processes.
type Results struct {
	// ByKey has one result for each cell that has any: a success if there is one, because failed
	// cells are retried.
	ByKey map[string]Result
	// Differ has the keys of cells that were computed more than once with different results. Which of
	// them is in ByKey does not depend on the order of the files.
	Differ map[string]bool
}

// Done reports whether a cell has a successful result.
func (r *Results) Done(key string) bool {
	result, found := r.ByKey[key]
	return found && result.Error == ""
}

// Read merges the results in the folder of an experiment. Processes may be writing to it. A folder
// without results gives no results.
func Read(dir string) (*Results, error) {
	files, err := filesByTime(filepath.Join(dir, Folder))
	if err != nil {
		return nil, err
	}
	merged := &Results{ByKey: map[string]Result{}, Differ: map[string]bool{}}
	for _, path := range files {
		text, err := fileio.Read(path)
		if errors.Is(err, fs.ErrNotExist) { // removed by its process, which had no results
			continue
		}
		if err != nil {
			return nil, err
		}
		list, _, err := parseResults(path, text)
		if err != nil {
			return nil, err
		}
		for _, r := range list {
			merged.add(r)
		}
	}
	return merged, nil
}

// filesByTime returns the paths of the files of results, the one that was written last at the end, so
// that a failed cell has its latest message. Successful results do not depend on this order.
func filesByTime(folder string) (paths []string, err error) {
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	times := map[string]time.Time{}
	for _, entry := range entries {
		if filepath.Ext(entry.Name()) != suffix {
			continue
		}
		path := filepath.Join(folder, entry.Name())
		if info, err := entry.Info(); err == nil { // else removed, or reading it fails
			times[path] = info.ModTime()
		}
		paths = append(paths, path)
	}
	slices.SortStableFunc(paths, func(a, b string) int { return times[a].Compare(times[b]) })
	return paths, nil
}

// add merges a result with others of its cell.
func (r *Results) add(one Result) {
	have, found := r.ByKey[one.Key]
	switch {
	case !found || have.Error != "":
		r.ByKey[one.Key] = one
	case one.Error == "":
		renamed := one // the same bags may have two names
		renamed.Coord = have.Coord
		if a, b := have.Substance(), renamed.Substance(); a != b {
			r.Differ[one.Key] = true
			if b < a { // independent of the order of the files
				r.ByKey[one.Key] = one
			}
		}
	}
}

// Substance returns the part of a result that does not depend on when, by which version and on
// which machine the cell was computed.
func (r Result) Substance() string {
	r.Seconds, r.Miplc, r.Environment, r.Trials = 0, "", nil, slices.Clone(r.Trials)
	for i := range r.Trials {
		r.Trials[i].Seconds = 0
	}
	text, err := json.Marshal(r)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
