// The details that a reader needs to repeat an experiment: splits, specs with their settings, seeds and versions.

package report

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/miplc/miplc/experiment/definition"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/language"
)

// design returns how the splits were drawn and which specs and settings the learners have.
func (r *Document) design() []string {
	own := map[string]bool{} // datasets with splits of their own
	for i := range r.Experiment.Data {
		own[r.Experiment.Data[i].Name.V] = r.Experiment.Data[i].Splits != nil
	}
	text := drawing(&r.Experiment.Splits, r.ran(func(data string) bool { return !own[data] }))
	for i := range r.Experiment.Data {
		if d := &r.Experiment.Data[i]; d.Splits != nil {
			text += "; " + d.Name.V + ": " + drawing(d.Splits, r.ran(func(data string) bool { return data == d.Name.V }))
		}
	}
	var specs []string
	for i := range r.Experiment.Learners {
		l := &r.Experiment.Learners[i]
		if slices.ContainsFunc(r.order, func(at definition.Coord) bool { return at.Learner == l.Name.V }) {
			specs = append(specs, specOf(l))
		}
	}
	return []string{text + ". Specs: " + strings.Join(specs, "; ") + ". The best mean of each dataset and r is bold."}
}

// ran returns the splits with results of some datasets.
func (r *Document) ran(of func(data string) bool) []int {
	splits := map[int]bool{}
	for at, all := range r.results {
		for _, result := range all {
			if of(at.Data) {
				splits[result.Split] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(splits))
}

// specOf names the spec of a learner, unless its title does, and the settings in which it differs.
func specOf(l *definition.Learner) string {
	text := variantName(variant{learner: l})
	if text != l.Spec.V {
		text += ": " + l.Spec.V
	}
	if len(l.Set) > 0 {
		text += " with " + language.DescribeSettings(l.Set)
	}
	if l.Vary != nil {
		text += " with each value of " + l.Vary.Key
	}
	for _, c := range l.Cases {
		var where []string
		for _, d := range c.Data {
			where = append(where, d.V)
		}
		for _, v := range c.R {
			where = append(where, "r = "+strconv.Itoa(v))
		}
		var differs []string
		if c.Spec.V != "" {
			differs = append(differs, c.Spec.V)
		}
		if len(c.Set) > 0 {
			differs = append(differs, language.DescribeSettings(c.Set))
		}
		if c.Grid != nil {
			differs = append(differs, "another grid")
		}
		text += fmt.Sprintf(" (%s: %s)", cmp.Or(strings.Join(where, ", "), "everywhere"), strings.Join(differs, ", "))
	}
	return text
}

// drawing describes how splits are drawn, and how many of them have results.
func drawing(s *definition.Splits, ran []int) string {
	text := diag.Count(s.Count.V, "split")
	if n := len(ran); n > 0 && n < s.Count.V {
		numbers := make([]string, n)
		for i, split := range ran {
			numbers[i] = strconv.Itoa(split)
		}
		text = fmt.Sprintf("%d of %s with results (%s)", n, text, strings.Join(numbers, ", "))
	}
	if s.Index.V != "" {
		return text + " from " + s.Index.V
	}
	if s.Folds.V > 0 {
		text += fmt.Sprintf(": %d folds", s.Folds.V)
	} else {
		text += fmt.Sprintf(": %v %% of the bags for training", math.Round(1000*s.Train.V)/10)
	}
	text += fmt.Sprintf(", drawn with seeds from %d", s.Seed.V)
	if s.Stratify.V {
		text += ", the same share of each class in all parts"
	}
	if s.Validation.V > 0 {
		text += fmt.Sprintf(", %v %% of the training bags for validation", math.Round(1000*s.Validation.V)/10)
	}
	return text
}

// provenance returns the seeds of the trainings and the versions that computed the results.
func (r *Document) provenance() []string {
	seeds, versions, libraries := map[int]bool{}, map[string]bool{}, map[string]bool{}
	for _, all := range r.results {
		for _, result := range all {
			if result.Seed != nil {
				seeds[*result.Seed] = true
			}
			if result.Miplc != "" {
				versions["miplc "+result.Miplc] = true
			}
			if e := result.Environment; e != nil && e.ONNXRuntime != "" {
				libraries["onnxruntime "+e.ONNXRuntime] = true
			}
		}
	}
	if len(versions) == 0 {
		return nil
	}
	text := "Computed by " + strings.Join(slices.Concat(slices.Sorted(maps.Keys(versions)),
		slices.Sorted(maps.Keys(libraries))), ", ")
	if len(seeds) > 0 {
		var numbers []string
		for _, seed := range slices.Sorted(maps.Keys(seeds)) {
			numbers = append(numbers, strconv.Itoa(seed))
		}
		text += "; seed of the training: " + strings.Join(numbers[:min(len(numbers), maxNotes)], ", ")
		if len(numbers) > maxNotes {
			text += ", ..."
		}
	}
	return []string{text + "."}
}
