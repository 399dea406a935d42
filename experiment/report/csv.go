// The tables of a report for other programs.

package report

import (
	"bytes"
	"encoding/csv"
	"math"
	"slices"
	"strconv"

	"github.com/miplc/miplc/data/measure"
	"github.com/miplc/miplc/experiment"
	"github.com/miplc/miplc/experiment/definition"
)

// csv returns a table for other programs, with one line per done or failed cell, in the order of the
// plan. Values that do not exist are empty.
func (r *Document) csv() []byte {
	measures := r.availableMeasures()
	lines := [][]string{slices.Concat([]string{"data", "r", "learner", "variant", "split", "setting", "train_bags",
		"test_bags", "train_accuracy", "disambiguation_accuracy"}, measures, []string{"engine", "diverged", "error"})}
	for i := range r.cells {
		lines = append(lines, csvLine(&r.cells[i], measures))
	}
	return csvText(lines)
}

// csvText returns the text of a CSV file.
func csvText(lines [][]string) []byte {
	var text bytes.Buffer
	csv.NewWriter(&text).WriteAll(lines) // into memory, which does not fail
	return text.Bytes()
}

// availableMeasures returns the names of the measures that at least one cell has, in the order of all measures.
func (r *Document) availableMeasures() (names []string) {
	for _, name := range measure.Names() {
		for i := range r.cells {
			if valueOf(measure.Find(name), &r.cells[i]) != nil {
				names = append(names, name)
				break
			}
		}
	}
	return names
}

// csvNumber writes a value exactly; one that does not exist is empty.
func csvNumber(v *float64) string {
	if v == nil || math.IsNaN(*v) {
		return ""
	}
	return strconv.FormatFloat(*v, 'g', -1, 64)
}

func csvLine(c *experiment.Result, measures []string) []string {
	count := func(n, missing int) string {
		if n == missing {
			return ""
		}
		return strconv.Itoa(n)
	}
	line := []string{c.Data, count(c.R, definition.Stored), c.Learner, c.Variant, strconv.Itoa(c.Split), c.Setting,
		count(c.TrainBags, 0), count(c.TestBags, 0), csvNumber(c.TrainAccuracy),
		csvNumber(c.Disambiguation)}
	for _, name := range measures {
		line = append(line, csvNumber(valueOf(measure.Find(name), c)))
	}
	diverged := ""
	if c.Diverged != nil {
		diverged = "true"
	}
	return append(line, c.Engine, diverged, c.Error)
}
