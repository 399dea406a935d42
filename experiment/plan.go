// The plan of an experiment: which cells there are on which datasets and splits, checked before anything is trained.

package experiment

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/bagfile"
	"github.com/miplc/miplc/experiment/definition"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/language/schema"
	"github.com/miplc/miplc/runs/prepare"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/engines"
)

// Plan lists the cells of an experiment in the order in which they run, and the datasets that they
// need. It is stored in PlanFile.
type Plan struct {
	Name    string     `json:"name"`
	SHA256  string     `json:"sha256"` // of the file of the experiment
	Columns csvColumns `json:"columns,omitzero"`
	Sets    []SetFacts `json:"sets"`
	Cells   []Cell     `json:"cells"`

	experiment *definition.Experiment
	datasets   []*sharedDataset // the datasets of the cells
}

// warnings returns the warnings of all datasets, each once.
func (p *Plan) warnings() (list []string) {
	for _, f := range p.Sets {
		for _, text := range f.Warnings {
			if text = f.title() + ": " + text; !slices.Contains(list, text) {
				list = append(list, text)
			}
		}
	}
	return list
}

// Selection describes the cells to compute; empty lists and 0 select all.
type Selection struct {
	Data     []string
	Learners []string
	R        []int
	Splits   int // the first n splits
}

func (s *Selection) hasLearner(name string) bool {
	return len(s.Learners) == 0 || slices.Contains(s.Learners, name)
}

// Validate checks the file of an experiment with its specs and settings, and returns the number of
// cells. It does not read data.
func Validate(name string, overrides ...string) (cells int, err error) {
	e, err := Load(name, overrides...)
	if err != nil {
		return 0, err
	}
	if _, err := loadSpecs(e); err != nil {
		return 0, err
	}
	cells, _ = e.Size()
	return cells, nil
}

// Load reads the file of an experiment. If it has errors, those of its specs and their settings are reported with them.
func Load(name string, overrides ...string) (*definition.Experiment, error) {
	e, err := definition.Draft(name, overrides...)
	if e == nil || err == nil {
		return e, err
	}
	var errs diag.List
	errs.AddError(diag.Pos{}, err)
	if !e.TooLarge() {
		loadCells(e, &errs)
	}
	return nil, errs.Err()
}

// loadSpecs reads the specs of all cells, including those that are not selected, because a file
// with errors is rejected as a whole. It reports all errors at their positions in that file. The map is
// by coordinates without split.
func loadSpecs(e *definition.Experiment) (map[definition.Coord][]gridPoint, error) {
	var errs diag.List
	loaded := loadCells(e, &errs)
	if errs.Err() == nil {
		checkDuplicates(e, loaded, &errs)
	}
	return loaded, errs.Err()
}

// loadCells reads the specs of all cells. Of learners with errors, and of those whose datasets all have errors, it
// checks only single settings.
func loadCells(e *definition.Experiment, errs *diag.List) map[definition.Coord][]gridPoint {
	loaded, cache := map[definition.Coord][]gridPoint{}, map[string]*language.Spec{}
	for i := range e.Learners {
		l, checked := &e.Learners[i], false
		for _, d := range e.Data {
			for _, r := range d.R {
				if d.Faulty || l.Faulty || !l.Has(d.Name.V, r) {
					continue
				}
				for _, v := range l.Variants() {
					list := loadGrid(e, l, &d, r, v, cache, errs)
					checkHalving(e, l, list, errs)
					checkValidation(e, l, e.SplitsOf(&d), list, errs)
					loaded[l.On(d.Name.V, r, v)], checked = list, true
				}
			}
		}
		if !checked {
			checkSettings(e, l, errs)
		}
	}
	return loaded
}

// checkSettings reports specs of a learner that cannot be read, and settings that they cannot have.
func checkSettings(e *definition.Experiment, l *definition.Learner, errs *diag.List) {
	check := func(spec schema.Str, set []language.Assignment, grid []language.Axis) {
		if spec.V == "" { // an error of the file
			return
		}
		var overrides []schema.Override
		for _, s := range set {
			overrides = append(overrides, s.Override())
		}
		if l.Vary != nil {
			grid = append(slices.Clip(grid), *l.Vary)
		}
		locateErrors(e, language.ReadFaults(spec.V, overrides, grid).Err(), l, spec, errs)
	}
	check(l.Spec, l.Set, l.Grid)
	for _, c := range l.Cases {
		spec := l.Spec
		if c.Spec.V != "" {
			spec = c.Spec
		}
		check(spec, append(slices.Clip(l.Set), c.Set...), c.Grid)
	}
}

// checkHalving reports halving of a learner that is fitted in one step.
func checkHalving(e *definition.Experiment, l *definition.Learner, list []gridPoint, errs *diag.List) {
	if l.Search.Halving.V > 1 && slices.ContainsFunc(list, func(c gridPoint) bool { return c.spec.Fitted() }) {
		addOnce(errs, e.ShowAt(l.Search.Halving.Pos, "learner %q: halving needs epochs; this learner has none: it is fitted "+
			"in one step", l.Name.V).WithNote("remove halving: then all trials are fitted"))
	}
}

// checkValidation reports specs that need validation bags if the experiment draws none.
func checkValidation(e *definition.Experiment, l *definition.Learner, s definition.Splits, list []gridPoint,
	errs *diag.List) {
	if s.Validation.V > 0 || s.Index.V != "" {
		return
	}
	for _, c := range list {
		for _, use := range c.spec.ValidationUses() {
			d := diag.Errorf(use.Pos, "%s, but the splits have none", use.Text).
				WithNote("add splits: {validation: 0.15} to the experiment")
			locateErrors(e, c.spec.AtUserLine(d), l, c.name, errs)
		}
	}
}

// checkDuplicates reports learners and variants that have equal settings on every dataset on which both
// run: they would have the same results under two names. A learner may equal a variant of another
// learner, because figures show them separately.
func checkDuplicates(e *definition.Experiment, loaded map[definition.Coord][]gridPoint, errs *diag.List) {
	first := map[string]definition.Coord{} // learner and variant, by everything that determines the results
	for i := range e.Learners {
		l := &e.Learners[i]
		for _, v := range l.Variants() {
			id := ""
			if l.Vary != nil {
				id = l.Name.V
			}
			if l.Search.Halving.V > 1 {
				id += fmt.Sprintf("\nhalving %d from %d", l.Search.Halving.V, l.Search.MinEpochs.V)
			}
			for _, d := range e.Data {
				for _, r := range d.R {
					id += "\n"
					for _, c := range loaded[l.On(d.Name.V, r, v)] {
						id += c.withLast(sumOf(c.spec.Settings().WithEngine(engines.Auto).YAML())) + " "
					}
				}
			}
			had, found := first[id]
			switch {
			case !found:
				first[id] = l.On("", 0, v)
			case l.Vary != nil:
				errs.Add(e.ShowAt(v.Pos, "learner %q: %s and %s are equal settings", l.Name.V, had.Variant, v))
			default:
				d := e.ShowAt(l.Name.Pos, "learners %q and %q have equal settings: their results would be the same, up to "+
					"rounding", had.Learner, l.Name.V)
				errs.Add(d.WithNote("remove one of them, or make them different with set:"))
			}
		}
	}
}

// planCells opens or generates the selected datasets and determines the cells. Errors of data are
// *DataError, those of specs *diag.InvalidError.
func planCells(e *definition.Experiment, loaded map[definition.Coord][]gridPoint, o Work) (*Plan, error) {
	p := &Plan{Name: e.Name.V, SHA256: sumOf(e.Text()), experiment: e}
	for i := range e.Data {
		d := &e.Data[i]
		for _, r := range d.R {
			if s := o.Select; len(s.Data) > 0 && !slices.Contains(s.Data, d.Name.V) ||
				len(s.R) > 0 && !slices.Contains(s.R, r) {
				continue
			}
			path, source, err := placeData(d, r, o.Dir, o.Data)
			if err != nil {
				return nil, dataError(e, d, r, err)
			}
			for _, encoder := range encodersOn(e, loaded, o.Select, d, r) {
				in := &sharedDataset{path: path, labels: d.Labels.V, folder: o.Data, splits: e.SplitsOf(d), encoder: encoder,
					encode: o.Encode, facts: SetFacts{Name: d.Name.V, R: r, Domain: d.Domain, Source: source}}
				if err := p.addInput(loaded, o.Select, d, in); err != nil {
					return nil, err
				}
			}
		}
	}
	if len(p.Cells) == 0 {
		wrong := diag.Diagnostic{Text: "there is nothing to run: no learner, dataset and r of the experiment fit the " +
			"selection"}
		return nil, diag.Invalid(wrong.WithNote("miplc experiment plan and the keys data, learners and r of the " +
			"file show what can be selected"))
	}
	return p, nil
}

// encodersOn returns a spec for each encoder of the learners on a dataset, and nil if there is a
// learner without one.
func encodersOn(e *definition.Experiment, loaded map[definition.Coord][]gridPoint, sel Selection, d *definition.DataSet,
	r int) (list []*language.Spec) {
	known := map[string]bool{}
	for i := range e.Learners {
		l := &e.Learners[i]
		if !sel.hasLearner(l.Name.V) || !l.Has(d.Name.V, r) {
			continue
		}
		for _, v := range l.Variants() {
			spec := loaded[l.On(d.Name.V, r, v)][0].spec
			key := encoderOf(spec)
			if known[key] {
				continue
			}
			known[key] = true
			if key == "" {
				spec = nil
			}
			list = append(list, spec)
		}
	}
	if list == nil { // the table of datasets describes it
		return []*language.Spec{nil}
	}
	return list
}

// addInput opens a dataset, and adds it and its cells.
func (p *Plan) addInput(loaded map[definition.Coord][]gridPoint, sel Selection, d *definition.DataSet,
	in *sharedDataset) error {
	set, err := in.openBags()
	if err != nil {
		return dataError(p.experiment, d, in.facts.R, err)
	}
	in.bags, in.facts.Stats = set.HashOfInstances(), data.Describe(set.Dataset)
	in.facts.ByClass, in.files = nil, bagfile.FilesOf(set.Dataset)
	if in.encoder != nil {
		in.facts.Encoder = encoderOf(in.encoder)
	}
	p.Sets, p.datasets = append(p.Sets, in.facts), append(p.datasets, in)
	return p.addCells(loaded, sel, d, in, set.Dataset)
}

// addCells adds the cells of the learners on a dataset that have its encoder.
func (p *Plan) addCells(loaded map[definition.Coord][]gridPoint, sel Selection, d *definition.DataSet,
	in *sharedDataset, set *data.Dataset) error {
	e := p.experiment
	if sel.Splits > 0 {
		in.splits.Count.V = min(in.splits.Count.V, sel.Splits)
	}
	splits, err := splitList(e, d, in, set)
	if err != nil {
		return err
	}
	validated := slices.ContainsFunc(splits, func(s *data.Split) bool { return len(s.Validation) > 0 })
	var errs diag.List
	if validated && e.Attention.Epochs != nil {
		errs.Add(e.ShowAt(in.splits.Index.Pos, "%s: %s", in.facts.title(), definition.NoSnapshots))
	}
	for i := range e.Learners {
		l := &e.Learners[i]
		if !sel.hasLearner(l.Name.V) || !l.Has(d.Name.V, in.facts.R) {
			continue
		}
		for _, v := range l.Variants() {
			c := Cell{Coord: l.On(d.Name.V, in.facts.R, v), dataset: in}
			c.grid = loaded[c.Coord]
			if encoderOf(c.grid[0].spec) != in.facts.Encoder {
				continue
			}
			if why := lastFault(l, c.grid[0].spec, validated); why != "" {
				addOnce(&errs, e.AddSource(diag.Errorf(l.Last.Pos, "learner %q: %s", l.Name.V, why)).WithNote("on the dataset %s",
					in.facts.title()))
				continue
			}
			if !checkCompiles(e, l, &c, set, splits, &errs) {
				continue
			}
			if len(c.grid) > 1 {
				if err := checkHeldOut(e, d, in, set, splits); err != nil {
					return err
				}
			}
			for n, drawn := range splits {
				c.Split, c.SplitHash = n+1, drawn.Hash()
				var err error
				if c.Key, err = key(c.grid, rulesOf(e, l), e.Choose, e.Attention.Epochs, in.facts.Hash, c.SplitHash); err != nil {
					return err
				}
				p.Cells = append(p.Cells, c)
			}
		}
	}
	p.Sets[len(p.Sets)-1].Warnings = slices.Concat(set.Warnings, in.facts.Warnings)
	if err := errs.Err(); err != nil {
		return diag.Invalid(err)
	}
	return nil
}

// splitList returns the splits of a dataset. Two equal splits are an error, because they would
// count twice in means and deviations.
func splitList(e *definition.Experiment, d *definition.DataSet, in *sharedDataset, set *data.Dataset) ([]*data.Split,
	error) {
	list, first := make([]*data.Split, in.splits.Count.V), map[string]int{}
	for i := range list {
		drawn, err := makeSplit(in.splits, i+1, set, in.folder)
		if err != nil {
			return nil, splitError(e, d, in, err)
		}
		if set.CountKnown(drawn.Test) == 0 {
			wrong := diag.Diagnostic{Text: fmt.Sprintf("no test bag of split %d has a true label, so there is no accuracy", i+1)}
			return nil, dataErrorAt(e, d.Name, in.facts, wrong.WithNote("add true labels to the dataset; if each bag has one "+
				"certain candidate, set labels: known"))
		}
		hash := drawn.Hash()
		if n, had := first[hash]; had {
			pos := cmp.Or(in.splits.Index.Pos, d.Name.Pos)
			wrong := e.AddSource(diag.Errorf(pos, "splits %d and %d of %s have the same training and test bags: their "+
				"results would count twice", n, i+1, in.facts.title()))
			return nil, diag.Invalid(wrong.WithNote("reduce count, or correct the index file"))
		}
		in.facts.warn(drawn)
		list[i], first[hash] = drawn, i+1
	}
	return list, nil
}

// checkHeldOut returns an error if settings cannot be chosen, because there are no held-out bags, or because the
// measure is not defined on those of a split or fold.
func checkHeldOut(e *definition.Experiment, d *definition.DataSet, in *sharedDataset, set *data.Dataset,
	splits []*data.Split) error {
	by := e.Choose.Measure
	by.Pos = cmp.Or(by.Pos, e.Choose.Place(), d.Name.Pos)
	for i, whole := range splits {
		list, err := holdOut(set, whole, e.Choose, i+1, in.splits.Group.V != "")
		if err != nil {
			return heldOutError(e, d, in, err)
		}
		if i == 0 { // other splits have the same rare classes, maybe with one bag more or less
			in.facts.warn(list[0])
		}
		for n, inner := range list {
			fold := ""
			if e.Choose.Folds.V > 0 {
				fold = fmt.Sprintf("fold %d of ", n+1)
			}
			if wrong := train.CheckMeasure("choose.measure", by, set, inner.Test, fmt.Sprintf("the bags that are held out in "+
				"%ssplit %d of %s", fold, i+1, in.facts.title())); wrong != nil {
				return diag.Invalid(e.AddSource(*wrong))
			}
		}
	}
	return nil
}

// heldOutError returns an error of held-out bags at the setting of choose, or at the dataset if the file has none.
func heldOutError(e *definition.Experiment, d *definition.DataSet, in *sharedDataset, err error) error {
	pos := e.Choose.Place()
	if pos.IsZero() {
		return dataErrorAt(e, d.Name, in.facts, err)
	}
	list, _ := diag.ListOf(err)
	shown := e.AddSource(diag.Errorf(pos, "%s: %s", in.facts.title(), list[0].Text))
	shown.Notes = list[0].Notes
	return diag.Invalid(shown)
}

// splitError returns an error of a split at the setting or the index file that does not fit the
// dataset.
func splitError(e *definition.Experiment, d *definition.DataSet, in *sharedDataset, err error) error {
	wrong, ok := errors.AsType[*diag.InvalidError](err)
	if !ok {
		at := d.Name
		if in.splits.Index.Written() {
			at = in.splits.Index
		}
		return dataErrorAt(e, at, in.facts, err)
	}
	list, _ := diag.ListOf(wrong.Err)
	shown := list[0]
	shown.Pos = cmp.Or(shown.Pos, in.splits.Index.Pos, d.Name.Pos)
	shown.Text = in.facts.title() + ": " + shown.Text
	return diag.Invalid(e.AddSource(shown))
}

// checkCompiles compiles the specs of a cell for its dataset and checks their measures on all splits,
// so that wrong shapes are reported before hours of training.
func checkCompiles(e *definition.Experiment, l *definition.Learner, c *Cell, set *data.Dataset, splits []*data.Split,
	errs *diag.List) bool {
	repeated := 1.0 // every setting of a grid trains on a part of the bags, the chosen one on all
	if n := len(c.grid); n > 1 {
		share := rulesOf(e, l).Share(n, c.grid[0].spec.Train.Epochs.V)
		repeated = float64(e.Choose.Trainings())*e.Choose.Share()*share + 1/float64(n)
	}
	for _, point := range c.grid {
		trial, err := prepare.Trial(point.spec, set, splits[0])
		for i := 1; i < len(splits) && err == nil; i++ {
			other := *trial
			other.Split = splits[i]
			err = other.CheckValidation()
		}
		if err != nil {
			var found diag.List
			locateErrors(e, err, l, point.name, &found)
			for _, d := range found {
				addOnce(errs, d.WithNote("on the dataset %s", c.dataset.facts.title()))
			}
			return false
		}
		c.estimate += repeated * estimateFromSize(trial)
	}
	return true
}

// datasetOf returns the dataset and r of a cell.
func datasetOf(c *Cell) definition.Coord { return definition.Coord{Data: c.Data, R: c.R} }

// changedSplits returns the datasets and r that have another split than in an earlier plan.
func (p *Plan) changedSplits(was *Plan) map[definition.Coord]bool {
	split := func(c *Cell) definition.Coord { return definition.Coord{Data: c.Data, R: c.R, Split: c.Split} }
	hashes, changed := map[definition.Coord]string{}, map[definition.Coord]bool{}
	for i := range p.Cells {
		hashes[split(&p.Cells[i])] = p.Cells[i].SplitHash
	}
	for i := range was.Cells {
		c := &was.Cells[i]
		if now, found := hashes[split(c)]; found && now != c.SplitHash {
			changed[datasetOf(c)] = true
		}
	}
	return changed
}

// merge adds the cells and datasets of an earlier plan of the same file that the current selection
// excludes, so that reports include them. It adds no cells whose spec changed, or whose dataset or its
// splits changed, because a report would compare them with cells that are different.
func (p *Plan) merge(dir string, loaded map[definition.Coord][]gridPoint) error {
	was, err := ReadPlan(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if was.SHA256 != p.SHA256 {
		return nil
	}
	present := map[definition.Coord]bool{}
	for _, c := range p.Cells {
		present[c.Coord] = true
	}
	changed := p.changedSplits(was)
	for _, old := range was.Sets {
		same := func(f SetFacts) bool { return f.Name == old.Name && f.R == old.R && f.Encoder == old.Encoder }
		i := slices.IndexFunc(p.Sets, same)
		if i >= 0 && p.Sets[i].Hash != old.Hash {
			continue
		}
		if i < 0 {
			p.Sets = append(p.Sets, old)
		}
		for _, c := range was.Cells {
			if c.Data != old.Name || c.R != old.R || present[c.Coord] || changed[datasetOf(&c)] {
				continue
			}
			e := p.experiment
			now, err := key(loaded[c.AllSplits()], rulesOf(e, e.Learner(c.Learner)), e.Choose, e.Attention.Epochs, old.Hash,
				c.SplitHash)
			if err != nil {
				return err
			}
			if now == c.Key { // else its spec changed, or it is of the features of another encoder
				p.Cells, present[c.Coord] = append(p.Cells, c), true
			}
		}
	}
	rank := p.experiment.Rank()
	slices.SortStableFunc(p.Sets, func(a, b SetFacts) int {
		return definition.CompareCoord(definition.Coord{Data: a.Name, R: a.R}, definition.Coord{Data: b.Name, R: b.R}, rank)
	})
	slices.SortStableFunc(p.Cells, func(a, b Cell) int { return definition.CompareCoord(a.Coord, b.Coord, rank) })
	return nil
}
