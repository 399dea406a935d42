// The search for the best settings of one spec: trials on held-out training bags, the run of the best one, and the
// files that show them.

package runs

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/measure"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/fileio"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/runs/plot"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/engines"
	"github.com/miplc/miplc/train/search"
)

// Names in the folder of a search.
const (
	SearchFolder  = "search"      // in the folder of the run
	searchFile    = "search.json" // the results
	searchCSV     = "trials.csv"
	searchCurves  = "curves.svg"
	searchFigure  = "settings.svg"
	searchPlan    = "plan.json" // the specs of the trials
	trialsFolder  = "trials"    // checkpoints until the run is finished
	trialInterval = 30 * time.Second
)

var searchFiles = []string{searchFile, searchCSV, searchCurves, searchFigure, searchPlan}

// SearchTask says how to search for the settings of a run.
type SearchTask struct {
	Task
	SearchPlan
	Budget time.Duration // after which no trial trains on; 0: no limit
	// Progress is called after every epoch and trial; may be nil. Calls are not concurrent.
	Progress func(SearchProgress)
}

// SearchPlan has the trials of a search. The first one is the spec itself.
type SearchPlan struct {
	Rules    language.Search
	Settings [][]language.Assignment // of the trials
	Specs    []*language.Spec
}

// SearchProgress is the progress of a search.
type SearchProgress struct {
	Rung    int            `json:"rung"` // from 1
	Rungs   int            `json:"rungs"`
	Epoch   int            `json:"epoch"`  // of the rung
	Done    int            `json:"done"`   // trials that have reached the rung
	Of      int            `json:"trials"` // trials that will reach it
	Best    *search.Result `json:"best"`   // so far; nil: none
	Measure string         `json:"measure"`
	Left    time.Duration  `json:"-"` // estimated; 0: unknown
}

// SearchResults are the results of a search, the content of searchFile.
type SearchResults struct {
	Measure string `json:"measure"` // of the held-out bags
	Setting string `json:"setting"` // chosen; "": the spec itself
	Chosen  int    `json:"chosen"`  // number of the trial, from 1
	// Gain is the difference of the chosen trial to the spec itself on the held-out bags, positive if it is better; nil if
	// the spec itself was stopped early. It is too high, because the held-out bags chose.
	Gain         *float64           `json:"gain,omitempty"`
	HeldOut      int                `json:"held_out_bags"`
	TrainBags    int                `json:"train_bags"` // of a trial
	Epochs       int                `json:"epochs"`     // of all trials
	Seconds      float64            `json:"seconds"`    // of all trainings of trials
	OutOfBudget  bool               `json:"out_of_budget,omitempty"`
	Trials       []search.Result    `json:"trials"`
	Correlations map[string]float64 `json:"rank_correlations"` // of values and success, by setting
	Folder       string             `json:"folder"`
}

// Search searches for settings, trains the best trial on all training bags and writes its run to o.Dir, with the
// results of the search in a subfolder. trials are those of the specs, see Trials.
func Search(ctx context.Context, trials []*train.Trial, o SearchTask) (*Summary, *SearchResults, error) {
	if err := checkSearch(trials[0], &o); err != nil {
		return nil, nil, err
	}
	dir := filepath.Join(o.Dir, SearchFolder)
	if state, err := StateOf(o.Dir); err == nil && state == Finished && o.Resume {
		found := &SearchResults{}
		if err := fileio.ReadJSON(filepath.Join(dir, searchFile), found); err != nil {
			return nil, nil, err
		}
		summary, err := ReadSummary(o.Dir)
		return summary, found, err
	}
	if err := o.checkRun(trials[0]); err != nil {
		return nil, nil, err
	}
	folder, err := fileio.ClaimFolder(dir, func(f *fileio.Folder) error { return o.claimSearch(f) })
	if err != nil {
		return nil, nil, err
	}
	defer folder.Close()
	for i, t := range trials {
		o.Specs[i] = t.Program.Spec // with the columns of the command line
	}
	if err := o.SearchPlan.write(dir); err != nil {
		return nil, nil, err
	}
	s, early, err := o.searchTrials(ctx, trials, dir)
	if err != nil {
		return nil, nil, err
	}
	chosen, err := s.Chosen()
	if err != nil {
		return nil, nil, err
	}
	found := o.results(s, chosen, early)
	if err := o.writeSearch(dir, s, chosen, found); err != nil {
		return nil, nil, err
	}
	final := *trials[chosen]
	final.Name = ""
	task := o.Task
	if state, err := StateOf(o.Dir); err != nil || state == Absent {
		task.Resume = false
	}
	done, err := Train(ctx, []*train.Trial{&final}, task)
	if err != nil {
		return nil, nil, err
	}
	_ = os.RemoveAll(filepath.Join(dir, trialsFolder)) // leftover checkpoints only take space
	return done.Runs[0], found, nil
}

// checkSearch returns an error at the setting of the search that does not fit the trial of the spec.
func checkSearch(t *train.Trial, o *SearchTask) error {
	spec := t.Program.Spec
	if err := cmp.Or(canCheck(spec, o.Library), checkTemperature(t)); err != nil {
		return err
	}
	if spec.Fitted() && o.Rules.Halving.V > 1 {
		o.Rules.Halving.V = 1 // it has no epochs
	}
	inner, err := o.inner(t)
	if err != nil {
		return err
	}
	m := train.HeldOutMeasure(o.Rules.Measure.V)
	part := (&train.Trial{Split: inner}).HeldOutPart()
	held := inner.Test
	if part == data.ValidationPart {
		held = inner.Validation
	}
	switch known := t.Data.TrueLists() != nil; {
	case m.Name == train.MeasureLoss:
	case train.DefinedMeasures(t.Data, held).Get(m.Name) == nil:
		d := diag.Errorf(o.Rules.Measure.Pos, "search.measure is %s, which is not defined on the %s of %s", m.Name,
			diag.Count(len(held), "held-out bag"), t.Data.Name).WithNote("it needs %s", m.Requires())
		if !known || m.Name == measure.Accuracy {
			d = d.WithNote("search.measure: %s and %s need no true labels", train.MeasureLoss, measure.InsideCandidates)
		}
		return &SpecError{spec.AtUserLine(d)}
	}
	return nil
}

// inner returns the split of the trials: without the test bags, and with held-out bags if the split of the spec has no
// validation bags.
func (o *SearchTask) inner(t *train.Trial) (*data.Split, error) {
	if len(t.Split.Validation) > 0 {
		return &data.Split{Train: t.Split.Train, Validation: t.Split.Validation, Source: t.Split.Source}, nil
	}
	s := &t.Program.Spec.Data.Split
	inner, err := HoldOut(t.Data, t.Split, s.Group.V != "", data.SplitSettings{Train: 1 - o.Rules.Holdout.V,
		Stratify: s.Stratify.V, Seed: uint64(s.Seed.V), Classes: t.Data.AllClassNames()})
	if err != nil {
		d := diag.Errorf(o.Rules.Holdout.Pos, "there are no bags to choose settings by: search.holdout %v of %s: %v",
			o.Rules.Holdout.V, diag.Count(len(t.Split.Train), "training bag"), err)
		return nil, &SpecError{t.Program.Spec.AtUserLine(d)}
	}
	return inner, nil
}

// checkRun returns an error if the run must not be written to its folder.
func (o *SearchTask) checkRun(t *train.Trial) error {
	f, err := fileio.LockFolder(o.Dir)
	if err != nil {
		return err
	}
	defer f.Close()
	run := *t
	run.Dir = o.Dir
	_, err = o.checkFolder(f, &run)
	return err
}

// claimSearch claims the folder of the search.
func (o *SearchTask) claimSearch(f *fileio.Folder) error {
	if err := f.Mark.CheckKind(f.Dir, fileio.SearchFolder); err != nil {
		return err
	}
	trials := filepath.Join(f.Dir, trialsFolder)
	switch {
	case o.Resume && f.Mark == nil:
		return fmt.Errorf("there is no search in %s to resume: omit --resume to start one", o.Dir)
	case o.Resume:
		return f.Claim(fileio.SearchFolder, searchFiles, nil)
	case f.Mark != nil && !o.Force:
		return fmt.Errorf("%s contains an unfinished search: continue it with --resume, or start again with --force", o.Dir)
	}
	if err := f.Restart(fileio.SearchFolder, searchFiles, nil); err != nil {
		return err
	}
	return os.RemoveAll(trials)
}

// searchTrials trains the trials as far as the search needs it, with checkpoints below dir. early reports that the
// budget ended before.
func (o *SearchTask) searchTrials(ctx context.Context, trials []*train.Trial, dir string) (s *search.Search, early bool,
	err error) {
	trainers := engines.NewTrainers(o.Request)
	defer trainers.Close()
	inner, err := o.inner(trials[0])
	if err != nil {
		return nil, false, err
	}
	list, settings := make([]*train.Trial, len(trials)), make([]string, len(trials))
	for i, t := range trials {
		engine, err := trainers.EngineInfo(t.Program.Spec)
		if err != nil {
			return nil, false, err
		}
		one := *t
		one.Name, one.Split, one.Log = fmt.Sprint("trial-", i+1), inner, ""
		one.Dir = filepath.Join(dir, trialsFolder, diag.FileName(engine.Engine+"-"+engine.Device), one.Name)
		one.CheckpointInterval = trialInterval
		list[i], settings[i] = &one, language.DescribeSettings(o.Settings[i])
	}
	s = search.New(search.Rules{Measure: train.HeldOutMeasure(o.Rules.Measure.V), Halving: o.Rules.Halving.V,
		MinEpochs: o.Rules.MinEpochs.V}, list, settings)
	within, stop := ctx, context.CancelFunc(func() {})
	if o.Budget > 0 {
		within, stop = context.WithTimeout(ctx, o.Budget)
	}
	defer stop()
	w := &searchWatch{task: o, search: s, began: time.Now(), total: s.Total() - s.Trained()}
	err = search.Run(within, trainers, []*search.Search{s}, train.Options{Observer: w}, func(*search.Search, int) {
		w.show()
	})
	switch {
	case ctx.Err() != nil:
		return nil, false, &InterruptedError{Dir: o.Dir, Done: s.Reached(len(s.Rungs()) - 1), Runs: len(trials)}
	case err != nil && s.Reached(0) == 0:
		return nil, false, fmt.Errorf("no trial reached %s within the budget of %v: allow more time",
			diag.Count(s.Rungs()[0], "epoch"), o.Budget)
	}
	return s, err != nil, nil
}

// searchWatch reports the progress of a search.
type searchWatch struct {
	train.Silent
	task       *SearchTask
	search     *search.Search
	began      time.Time
	mu         sync.Mutex
	did, total int // epochs
}

// Note implements train.Observer.
func (w *searchWatch) Note(text string) {
	(&train.Options{Observer: w.task.Observer}).ObserverOrSilent().Note(text)
}

// Warn implements train.Observer.
func (w *searchWatch) Warn(text string) {
	(&train.Options{Observer: w.task.Observer}).ObserverOrSilent().Warn(text)
}

// Epoch implements train.Observer.
func (w *searchWatch) Epoch(train.Metrics, train.Progress) {
	w.mu.Lock()
	w.did++
	w.mu.Unlock()
}

// show reports the progress after a trial.
func (w *searchWatch) show() {
	if w.task.Progress == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	rungs := w.search.Rungs()
	p := SearchProgress{Rungs: len(rungs), Measure: w.search.Measure.Title, Of: len(w.search.Trials),
		Left: train.TimeLeft(w.began, w.did, max(w.did, w.total))}
	for p.Rung < len(rungs) {
		p.Epoch, p.Done = rungs[p.Rung], w.search.Reached(p.Rung)
		p.Rung++
		if p.Done < p.Of {
			break
		}
		if p.Rung < len(rungs) {
			p.Of = w.search.Kept(p.Of)
		}
	}
	if i, err := w.search.Chosen(); err == nil {
		p.Best = &w.search.Results[i]
	}
	w.task.Progress(p)
}

// results returns the results of a search.
func (o *SearchTask) results(s *search.Search, chosen int, early bool) *SearchResults {
	t := s.Trials[chosen]
	held := len(t.Split.Test)
	if t.HeldOutPart() == data.ValidationPart {
		held = len(t.Split.Validation)
	}
	found := &SearchResults{Measure: s.Measure.Name, Setting: s.Settings[chosen], Chosen: chosen + 1, HeldOut: held,
		TrainBags: len(t.Split.Train), Epochs: s.Trained(), OutOfBudget: early, Trials: s.Results,
		Correlations: search.Correlations(o.Rules.Grid, s.Results, s.Measure.Lower),
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
	title, of := s.Trials[0].Program.Spec.Name.V, []plot.Search{{Trials: s.Results, Chosen: chosen}}
	y := s.Measure.Title + " of held-out bags"
	files := map[string][]byte{searchCSV: trialsCSV(o.Rules.Grid, s, chosen),
		searchCurves: plot.SearchCurves(title+": trials of the search", y, []plot.SearchPanel{{Searches: of}})}
	if len(language.Varied(o.Rules.Grid)) > 0 {
		files[searchFigure] = plot.SearchSettings(title+": settings of the search", y, o.Rules.Grid, s.Measure.Lower, of)
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

// trialsCSV returns the table of the trials.
func trialsCSV(grid []language.Axis, s *search.Search, chosen int) []byte {
	var keys []string
	for _, a := range grid {
		keys = append(keys, a.Key)
	}
	number := func(v *float64) string {
		if v == nil {
			return ""
		}
		return strconv.FormatFloat(*v, 'g', -1, 64)
	}
	var text strings.Builder
	w := csv.NewWriter(&text)
	lines := [][]string{slices.Concat([]string{"trial", "chosen"}, keys, []string{"epochs", "rungs", s.Measure.Name})}
	if s.Measure.Name != measure.Accuracy {
		lines[0] = append(lines[0], measure.Accuracy)
	}
	lines[0] = append(lines[0], "parameters", "seconds", "diverged", "error")
	for i := range s.Results {
		r := &s.Results[i]
		line := append([]string{strconv.Itoa(i + 1), strconv.FormatBool(i == chosen)}, language.SettingValues(r.Setting,
			keys)...)
		line = append(line, strconv.Itoa(r.Epochs), strconv.Itoa(len(r.Rungs)), number(r.Value))
		if s.Measure.Name != measure.Accuracy {
			line = append(line, number(r.Accuracy))
		}
		lines = append(lines, append(line, strconv.Itoa(r.Parameters), strconv.FormatFloat(r.Seconds, 'f', 3, 64),
			strconv.FormatBool(r.Diverged), r.Error))
	}
	_ = w.WriteAll(lines) // into memory, which does not fail
	return []byte(text.String())
}

// writtenPlan is the content of searchPlan.
type writtenPlan struct {
	Measure   string            `json:"measure"`
	Holdout   float64           `json:"holdout"`
	Halving   int               `json:"halving"`
	MinEpochs int               `json:"min_epochs"`
	Trials    []writtenTrial    `json:"trials"`
	Ranges    map[string]string `json:"ranges"` // the form of the range of each setting that has one
}

type writtenTrial struct {
	Settings []language.Assignment `json:"settings"`
	Spec     string                `json:"spec"` // as YAML
}

// write writes the plan of a search.
func (p *SearchPlan) write(dir string) error {
	w := writtenPlan{Measure: p.Rules.Measure.V, Holdout: p.Rules.Holdout.V, Halving: p.Rules.Halving.V,
		MinEpochs: p.Rules.MinEpochs.V, Ranges: map[string]string{}}
	for _, a := range p.Rules.Grid {
		form := "choice"
		if a.Range != nil {
			form = a.Range.Form
		}
		w.Ranges[a.Key] = form
	}
	for i, spec := range p.Specs {
		w.Trials = append(w.Trials, writtenTrial{p.Settings[i], string(spec.YAML())})
	}
	return fileio.ReplaceJSON(filepath.Join(dir, searchPlan), w)
}

// ReadSearch returns the plan of the search that a run in a folder comes from, or nil if it comes from none.
func ReadSearch(dir string) (*SearchPlan, error) {
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
	p := &SearchPlan{}
	p.Rules.Measure.V, p.Rules.Holdout.V = w.Measure, w.Holdout
	p.Rules.Halving.V, p.Rules.MinEpochs.V = w.Halving, w.MinEpochs
	if train.HeldOutMeasure(w.Measure) == nil || len(w.Trials) == 0 {
		return nil, fmt.Errorf("%s is not the plan of a search; repeat the whole command with --resume instead", file)
	}
	for i, t := range w.Trials {
		spec, err := language.Parse(fmt.Sprintf("%s: trial %d", file, i+1), []byte(t.Spec))
		if err != nil {
			return nil, err
		}
		p.Specs, p.Settings = append(p.Specs, spec), append(p.Settings, t.Settings)
		for _, one := range t.Settings {
			if !slices.ContainsFunc(p.Rules.Grid, func(a language.Axis) bool { return a.Key == one.Key }) {
				a := language.Axis{Key: one.Key}
				if form := w.Ranges[one.Key]; form != "choice" {
					a.Range = &language.Range{Form: form}
				}
				p.Rules.Grid = append(p.Rules.Grid, a)
			}
		}
	}
	return p, nil
}
