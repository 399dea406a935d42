// The measures of a report: their titles, which values are better, and which results lack them.

package report

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/miplc/miplc/data/measure"
	"github.com/miplc/miplc/experiment"
	"github.com/miplc/miplc/experiment/definition"
	"github.com/miplc/miplc/internal/diag"
)

// measures returns the measures of the report.
func (r *Document) measures() []*measure.Measure {
	if len(r.Measures) == 0 {
		return []*measure.Measure{measure.Find(measure.Accuracy)}
	}
	return r.Measures
}

// forMeasure returns the report with the values of one measure, which the methods need that use
// r.measure or r.values.
func (r *Document) forMeasure(m *measure.Measure) *Document {
	one := *r
	one.measure, one.values = m, map[definition.Coord]map[int]float64{}
	for at, all := range r.results {
		for _, result := range all {
			if v := valueOf(m, &result); v != nil {
				one.set(at, result.Split, *v)
			}
		}
	}
	if m.Name == measure.Accuracy {
		one.addBaseline()
	}
	return &one
}

// set sets the value of the current measure at coordinates and a split.
func (r *Document) set(at definition.Coord, split int, v float64) {
	if r.values[at] == nil {
		r.values[at] = map[int]float64{}
	}
	r.values[at][split] = v
}

// valueOf returns a measure of a result, or nil if the result does not have it or its cell failed.
func valueOf(m *measure.Measure, result *experiment.Result) *float64 {
	switch {
	case result.Error != "":
		return nil
	case m.Name == measure.Accuracy:
		return &result.Accuracy
	}
	return result.Measures.Get(m.Name)
}

// missingNotes reports measures that some results do not have.
func (r *Document) missingNotes() []string {
	var list []string
	for _, m := range r.measures() {
		missing := 0
		for _, all := range r.results {
			for _, result := range all {
				if valueOf(m, &result) == nil {
					missing++
				}
			}
		}
		if missing > 0 {
			text := fmt.Sprintf("%s: %d of %s without a value. It is not defined for the test bags (it needs %s), or an "+
				"earlier version of miplc computed the result.", capital(m.Title), missing, diag.Count(r.done, "result"),
				m.Requires())
			if m.Group {
				text += " Groups count only if all of their bags with known labels have the same labels."
			}
			list = append(list, text)
		}
	}
	return list
}

// measureTitles names the measures at the start of a sentence, and those for which lower
// values are better.
func (r *Document) measureTitles() string {
	var all []string
	for _, m := range r.measures() {
		title := m.Title
		if m.Lower {
			title += " (lower is better)"
		}
		all = append(all, title)
	}
	return capital(strings.Join(all, ", "))
}

// title returns the title of a table or figure: that of the item, or else one for its kind.
// The name of the measure follows, unless it is the accuracy.
func (r *Document) title(it *definition.Item, kind string) string {
	title := cmp.Or(it.Title, kind)
	if r.measure.Name == measure.Accuracy {
		return title
	}
	return fmt.Sprintf("%s (%s)", title, r.measure.Title)
}

// titleOver is title for a kind that the measure and then rest describe.
func (r *Document) titleOver(it *definition.Item, rest string) string {
	if it.Title == "" {
		return capital(r.measure.Title) + " " + rest
	}
	return r.title(it, "")
}

// capital starts a text with a capital letter.
func capital(text string) string { return strings.ToUpper(text[:1]) + text[1:] }
