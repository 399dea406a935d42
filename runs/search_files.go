// The files of a search: its plan, its results, the table of the trials and the figures.

package runs

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/miplc/miplc/internal/fileio"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/runs/plot"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/search"
)

// Names in the folder of a search.
const (
	SearchFolder = "search"      // in the folder of the run
	searchFile   = "search.json" // the results
	searchCSV    = "trials.csv"
	searchCurves = "curves.svg"
	searchFigure = "settings.svg"
	searchPlan   = "plan.json" // the specs of the trials
	trialsFolder = "trials"    // checkpoints until the run is finished
)

var searchFiles = []string{searchFile, searchCSV, searchCurves, searchFigure, searchPlan}

// SearchResults are the results of a search, the content of searchFile.
type SearchResults struct {
	Measure string `json:"measure"` // of the held-out bags
	Setting string `json:"setting"` // chosen; "": the spec itself
	Chosen  int    `json:"chosen"`  // number of the trial, from 1
	// Gain is the difference of the chosen trial to the spec itself on the held-out bags, positive if it is better; nil if
	// the spec itself was stopped early. It is too high, because the held-out bags chose.
	Gain         *float64             `json:"gain,omitempty"`
	HeldOut      int                  `json:"held_out_bags"`   // of all folds
	Folds        int                  `json:"folds,omitempty"` // of the training bags; 0: none
	TrainBags    int                  `json:"train_bags"`      // of a trial; with folds, on the first one
	Epochs       int                  `json:"epochs"`          // of all trials
	Seconds      float64              `json:"seconds"`         // of all trainings of trials
	OutOfBudget  bool                 `json:"out_of_budget,omitempty"`
	Trials       []search.TrialResult `json:"trials"`
	Correlations map[string]float64   `json:"rank_correlations"` // of values and success, by setting
	Folder       string               `json:"folder"`
}

// results returns the results of a search.
func (o *SearchTask) results(s *search.Search, chosen int, early bool) *SearchResults {
	held := 0
	for _, t := range s.Trials[chosen] {
		held += len(heldOut(t.Split))
	}
	found := &SearchResults{Measure: s.Measure.Name, Setting: s.Settings[chosen], Chosen: chosen + 1, HeldOut: held,
		Folds: o.Rules.Folds.V, TrainBags: len(s.Trials[chosen][0].Split.Train), Epochs: s.Trained(), OutOfBudget: early,
		Trials:       s.Results,
		Correlations: o.grid().Correlations(s.Results, s.Measure.Lower),
		Folder:       filepath.Join(o.Dir, SearchFolder)}
	for i := range s.Results {
		found.Seconds += s.Results[i].Seconds
	}
	if own := &s.Results[0]; own.Value != nil && len(own.Rungs) == len(s.Results[chosen].Rungs) {
		gain := *s.Results[chosen].Value - *own.Value
		if s.Measure.Lower {
			gain = -gain
		}
		found.Gain = &gain
	}
	return found
}

// writeSearch writes the tables and figures of a search.
func (o *SearchTask) writeSearch(dir string, s *search.Search, chosen int, found *SearchResults) error {
	title, of := o.Specs[0].Name.V, []plot.Search{{Trials: s.Results, Chosen: chosen}}
	y := search.Axis(s.Measure, o.Rules.Folds.V)
	files := map[string][]byte{searchCSV: o.trialsCSV(s, chosen),
		searchCurves: plot.SearchCurves(title+": trials of the search", y, []plot.SearchPanel{{Searches: of}})}
	if len(language.Varied(o.Rules.Grid)) > 0 {
		files[searchFigure] = plot.SearchSettings(title+": settings of the search", y, o.grid(), s.Measure.Lower, of)
	}
	for _, name := range searchFiles {
		if files[name] == nil {
			continue
		}
		if err := fileio.Replace(filepath.Join(dir, name), files[name]); err != nil {
			return err
		}
	}
	return fileio.ReplaceJSON(filepath.Join(dir, searchFile), found)
}

// grid returns the grid of the search and the settings of its trials.
func (o *SearchTask) grid() *search.Grid { return &search.Grid{Axes: o.Rules.Grid, Trials: o.Settings} }

// trialsCSV returns the table of the trials.
func (o *SearchTask) trialsCSV(s *search.Search, chosen int) []byte {
	var keys []string
	for _, a := range o.Rules.Grid {
		keys = append(keys, a.Key)
	}
	by, folds := s.Measure.Name, o.Rules.Folds.V
	lines := [][]string{slices.Concat([]string{"trial", "chosen"}, keys, search.Columns("", by, folds))}
	for i := range s.Results {
		r := &s.Results[i]
		line := []string{strconv.Itoa(i + 1), strconv.FormatBool(i == chosen)}
		for _, key := range keys {
			value := "" // the spec as it is
			if at := slices.IndexFunc(o.Settings[i], func(a language.Assignment) bool { return a.Key == key }); at >= 0 {
				value = o.Settings[i][at].Value
			}
			line = append(line, value)
		}
		lines = append(lines, slices.Concat(line, r.Cells(by, folds)))
	}
	var text bytes.Buffer
	_ = csv.NewWriter(&text).WriteAll(lines) // into memory, which does not fail
	return text.Bytes()
}

// writtenPlan is the content of searchPlan.
type writtenPlan struct {
	Rules  language.Search `json:"rules"`
	Trials []writtenTrial  `json:"trials"`
}

type writtenTrial struct {
	Settings []language.Assignment `json:"settings"`
	Spec     string                `json:"spec"` // as YAML
}

// write writes the plan of a search.
func (p *SearchPlan) write(dir string) error {
	w := writtenPlan{Rules: p.Rules}
	for i, spec := range p.Specs {
		w.Trials = append(w.Trials, writtenTrial{p.Settings[i], string(spec.YAML())})
	}
	return fileio.ReplaceJSON(filepath.Join(dir, searchPlan), w)
}

// readSearch returns the plan of the search that a run in a folder comes from, or nil if it comes from none.
func readSearch(dir string) (*SearchPlan, error) {
	p, err := readPlan(filepath.Join(dir, SearchFolder, searchPlan))
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return nil, err
	}
	own, err := language.Load(filepath.Join(dir, SpecFile))
	if err != nil { // the search has no run yet
		return p, nil
	}
	if !slices.ContainsFunc(p.Specs, func(s *language.Spec) bool { return s.Identity() == own.Identity() }) {
		return nil, nil
	}
	return p, nil
}

// readPlan reads the plan of a search.
func readPlan(file string) (*SearchPlan, error) {
	var w writtenPlan
	if err := fileio.ReadJSON(file, &w); err != nil {
		return nil, err
	}
	p := &SearchPlan{Rules: w.Rules}
	if train.HeldOutMeasure(w.Rules.Measure.V) == nil || len(w.Trials) == 0 {
		return nil, fmt.Errorf("%s is not the plan of a search; repeat the whole command with --resume instead", file)
	}
	for i, t := range w.Trials {
		spec, err := language.Parse(fmt.Sprintf("%s: trial %d", file, i+1), []byte(t.Spec))
		if err != nil {
			return nil, err
		}
		p.Specs, p.Settings = append(p.Specs, spec), append(p.Settings, t.Settings)
	}
	return p, nil
}
