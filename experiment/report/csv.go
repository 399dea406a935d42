// The table of a report for other programs: one line per cell.

package report

import (
	"bytes"
	"encoding/csv"
	"strconv"

	"github.com/miplc/miplc/data/measure"
	"github.com/miplc/miplc/experiment"
	"github.com/miplc/miplc/experiment/definition"
)

// csv returns a table for other programs, with one line per done or failed cell, in the order of the
// plan. Values that do not exist are empty.
func (r *Document) csv() []byte {
	var text bytes.Buffer
	w := csv.NewWriter(&text)
	header := []string{"data", "r", "learner", "variant", "split", "setting", "train_bags", "test_bags", "train_accuracy",
		"disambiguation_accuracy"}
	measures := r.availableMeasures()
	header = append(append(header, measures...), "engine", "diverged", "error")
	w.Write(header)
	for i := range r.cells {
		w.Write(csvLine(&r.cells[i], measures))
	}
	w.Flush() // into memory, which does not fail
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

func csvLine(c *experiment.Result, measures []string) []string {
	number := func(v *float64) string {
		if v == nil {
			return ""
		}
		return strconv.FormatFloat(*v, 'g', -1, 64)
	}
	count := func(n, missing int) string {
		if n == missing {
			return ""
		}
		return strconv.Itoa(n)
	}
	line := []string{c.Data, count(c.R, definition.Stored), c.Learner, c.Variant, strconv.Itoa(c.Split), c.Setting,
		count(c.TrainBags, 0), count(c.TestBags, 0), number(c.TrainAccuracy), number(c.Disambiguation)}
	for _, name := range measures {
		line = append(line, number(valueOf(measure.Find(name), c)))
	}
	diverged := ""
	if c.Diverged != nil {
		diverged = "true"
	}
	return append(line, c.Engine, diverged, c.Error)
}
