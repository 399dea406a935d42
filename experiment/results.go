package experiment

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"sync"

	"github.com/miplc/miplc/internal/diag"
)

// Result is one finished or failed cell, one line of ResultsFile.
type Result struct {
	Coord
	Key            string          `json:"key"`
	Error          string          `json:"error,omitempty"` // why the cell failed; the rest is then empty
	Accuracy       float64         `json:"accuracy"`        // share of the test bags
	TrainAccuracy  *float64        `json:"train_accuracy,omitempty"`
	Disambiguation *float64        `json:"disambiguation_accuracy,omitempty"`
	Setting        string          `json:"setting,omitempty"` // chosen from the grid
	Trials         []SettingResult `json:"trials,omitempty"`  // of the settings of the grid
	Attention      []Histogram     `json:"attention,omitempty"`
	Engine         string          `json:"engine,omitempty"`
	Seconds        float64         `json:"seconds"`
	Miplc          string          `json:"miplc,omitempty"` // version
}

// SettingResult is one setting of a grid, measured on the held-out training bags.
type SettingResult struct {
	Setting  string   `json:"setting"`
	Accuracy *float64 `json:"accuracy,omitempty"` // nil: it failed
	Error    string   `json:"error,omitempty"`
}

// Histogram counts the attention scores of the test bags after an epoch, in
// HistogramBins bins of equal width from 0 to 1; scores outside count in the
// first or last bin. Kinds of instances that do not occur are left out.
type Histogram struct {
	Epoch    int   `json:"epoch"`
	Positive []int `json:"positive,omitempty"`
	Negative []int `json:"negative,omitempty"`
	Unknown  []int `json:"unknown,omitempty"`
}

// HistogramBins is the number of bins of a Histogram.
const HistogramBins = 25

// valid reports what no line that a run wrote can have.
func (r *Result) valid() error {
	switch {
	case r.Key == "" || r.Data == "" || r.Learner == "" || r.Split < 1:
		return errors.New("key, data, learner or split is missing")
	case math.IsNaN(r.Accuracy) || r.Accuracy < 0 || r.Accuracy > 1:
		return fmt.Errorf("the accuracy is %v; it must lie between 0 and 1", r.Accuracy)
	}
	for _, h := range r.Attention {
		for _, bins := range [][]int{h.Positive, h.Negative, h.Unknown} {
			if bins != nil && len(bins) != HistogramBins {
				return fmt.Errorf("a histogram has %d bins instead of %d", len(bins), HistogramBins)
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

// maxLine bounds one line of results; a line has a few kilobytes.
const maxLine = 16 << 20

// parseResults reads the lines of a results file. A last line that was cut off
// by a crash is left out: whole is the number of bytes before it. A wrong line
// in the middle is an error.
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
		case !ended, wrong != nil && len(rest) == 0: // cut off, or blocks that the disk never got
			return list, whole, nil
		case wrong != nil:
			return nil, 0, diag.Errorf(diag.Pos{File: path, Line: n}, "this line is no result: %v", wrong).
				WithNote("remove the line and start the experiment again: the cell is then run anew")
		}
		list = append(list, r)
		whole += len(line) + 1
	}
	return list, whole, nil
}

// ReadResults reads a results file that may be cut off at its end. A file that is
// not there has no results.
func ReadResults(path string) ([]Result, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		return nil, err
	}
	list, _, err := parseResults(path, text)
	return list, err
}

// results is the results file while an experiment runs.
type results struct {
	mu   sync.Mutex
	file *os.File
}

// openResults opens the file for more lines and reads those that are there; what
// a crash cut off is removed, and dropped says how many bytes that were.
func openResults(path string) (r *results, have []Result, dropped int, err error) {
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, 0, err
	}
	have, whole, err := parseResults(path, text)
	if err != nil {
		return nil, nil, 0, err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return nil, nil, 0, err
	}
	if err = f.Truncate(int64(whole)); err == nil {
		_, err = f.Seek(int64(whole), 0)
	}
	if err != nil {
		return nil, nil, 0, errors.Join(err, f.Close())
	}
	return &results{file: f}, have, len(text) - whole, nil
}

// add appends a line each for results that were computed together, and forces them
// to the disk.
func (r *results) add(list []*Result) error {
	var lines []byte
	for _, result := range list {
		line, err := json.Marshal(result)
		if err != nil {
			return fmt.Errorf("the result of %s: %w", result.Coord, err)
		}
		lines = append(append(lines, line...), '\n')
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, err := r.file.Write(lines); err != nil {
		return err
	}
	return r.file.Sync()
}

func (r *results) close() error { return r.file.Close() }
