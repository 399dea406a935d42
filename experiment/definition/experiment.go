// Package definition reads the file of an experiment, which runs learners on datasets. Each
// combination of a dataset, a number r of false positive labels, a learner and a split is a cell.
package definition

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/miplc/miplc/data/generate"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/language/schema"
)

// Experiment is the file of an experiment (docs/experiment-reference.md). Values have their positions
// in the file.
type Experiment struct {
	*schema.Document
	Name        schema.Str
	Description schema.Str
	// Reference is the learner with which the others are compared.
	Reference schema.Str
	R         []int // of datasets without their own r; nil: not set
	Data      []DataSet
	Learners  []Learner
	Splits    Splits
	Choose    Choose
	// Attention has the epochs for which histograms of the attention scores are recorded.
	Attention struct{ Epochs []int }
	Keep      schema.Str
	Report    []Item
}

// KeepModels reports whether the run folder with the ONNX file of every cell is kept.
func (e *Experiment) KeepModels() bool { return e.Keep.V == "models" }

// DataSet is one set of bags, or one per r.
type DataSet struct {
	Name   schema.Str
	Domain string     // origin of the bags, for the table of datasets
	File   schema.Str // path; {r} is replaced by r; empty: generated
	Labels schema.Str // data.labels of the specs; empty: the bags of File have candidate sets
	Synth  *Synth     // generator; nil: File
	R      []int      // numbers of false positive labels; {Stored}: as in the file
	Splits *Splits    // nil: those of the experiment
	Faulty bool       // has errors, in a draft

	pos diag.Pos
}

// Reading returns the settings that the dataset gives to the specs: data.labels, and data.set, on
// which data.labels depends.
func (d *DataSet) Reading() []language.Assignment {
	if d.Labels.V == "" {
		return nil
	}
	file, _ := json.Marshal(d.File.V) // a text has no errors
	return []language.Assignment{{Key: "data.set", Value: string(file), Pos: d.Labels.Pos},
		{Key: "data.labels", Value: d.Labels.V, Pos: d.Labels.Pos}}
}

// SetPos records the position of the dataset in the file.
func (d *DataSet) SetPos(pos diag.Pos) { d.pos = pos }

// Stored is the r of a dataset whose file determines the candidate labels.
const Stored = -1

// Synth describes a generated dataset: its name in package generate and its settings.
type Synth struct {
	Set schema.Str `json:"-"`
	generate.Design
	Seed int `json:"seed"`
}

// Learner is one spec with its settings, or one per value of Vary.
type Learner struct {
	Name  schema.Str // name in results and in the file
	Title string     // name in tables
	Group string     // heading above it in tables, e.g. "Mean"
	Spec  schema.Str
	Set   []language.Assignment
	// Grid lists the settings to choose from: keys and their values or ranges.
	Grid []language.Axis
	// Search draws settings from Grid and stops bad ones early.
	Search language.Search
	// Last is the number of last epochs whose mean test accuracy is that of a cell.
	Last schema.Int
	// Vary creates one variant of the learner per value.
	Vary  *language.Axis
	Where // restricts the learner to some datasets and r
	Cases []Case
	// Published lists published accuracies of the learner.
	Published []Published
	Faulty    bool // has errors, in a draft

	pos diag.Pos
}

// SetPos records the position of the learner in the file.
func (l *Learner) SetPos(pos diag.Pos) { l.pos = pos }

// Published is a published accuracy, as text, e.g. "0.976±0.008".
type Published struct {
	Data schema.Str
	R    int // Stored if the file of the dataset determines the candidate sets
	Text string
}

// Case replaces settings of a learner on some datasets and r.
type Case struct {
	Where
	Spec schema.Str            // empty: that of the learner
	Set  []language.Assignment // in addition to those of the learner
	Grid []language.Axis       // replaces that of the learner, unless it is nil
}

// Where selects datasets and numbers r; an empty list selects all.
type Where struct {
	Data []schema.Str
	R    []int
}

// Has reports whether a dataset and r are selected.
func (w Where) Has(data string, r int) bool {
	return (len(w.R) == 0 || slices.Contains(w.R, r)) && hasName(w.Data, data)
}

func hasName(list []schema.Str, name string) bool {
	return len(list) == 0 || slices.ContainsFunc(list, func(s schema.Str) bool { return s.V == name })
}

// Splits defines how bags are split into training and test bags: at random, split i with seed Seed+i-1 or on fold i,
// with the next seed after each repetition of the folds, or by index files.
type Splits struct {
	Count schema.Int
	language.Split
	Pools int // pools of the instances of a generated dataset, see generate.SplitPools; 0: no pools
}

// At returns split i, from 1, as the split of a spec.
func (s *Splits) At(i int) language.Split {
	one := s.Split
	one.Number.V, one.Seed.V = i, s.Seed.V+i-1
	if folds := s.Folds.V; folds > 0 {
		one.Fold.V, one.Seed.V = (i-1)%folds+1, s.Seed.V+(i-1)/folds
	}
	if name := strings.ReplaceAll(s.Index.V, SplitPlaceholder, strconv.Itoa(i)); name != s.Index.V {
		one.Index.V, one.Number.V = name, 1 // one file per split
	}
	return one
}

// countFolds sets the number of splits to that of folds, unless the file sets it.
func (s *Splits) countFolds() {
	if s.Folds.Written() && !s.Count.Written() {
		s.Count = s.Folds
	}
}

// Choose defines how a setting of a grid is chosen in each cell: by a measure of a held-out share of the training bags,
// or by its mean over folds of them. The model is then trained with it on all training bags.
type Choose struct {
	Holdout  schema.Float
	Folds    schema.Int `json:",omitzero"` // 0: Holdout
	Stratify bool       // the same share of every class
	Seed     int
	Measure  schema.Str `json:"-"` // keys of cells contain its name unless it is the accuracy
}

// Place returns the position of the setting of the held-out bags; zero: the file does not set it.
func (c *Choose) Place() diag.Pos { return cmp.Or(c.Folds.Pos, c.Holdout.Pos) }

// Trainings returns the number of trainings of each setting.
func (c *Choose) Trainings() int { return max(1, c.Folds.V) }

// Share returns the share of the training bags of a cell on which each setting trains.
func (c *Choose) Share() float64 {
	if c.Folds.V > 0 {
		return 1 - 1/float64(c.Folds.V)
	}
	return 1 - c.Holdout.V
}

// Item is one table or figure of the report.
type Item struct {
	Kind     ItemKind
	Title    string
	Learners []schema.Str // empty: all
	Where

	Table, Figure schema.Str // Kind as the file writes it
	faulty        bool       // has errors, in a draft
	pos           diag.Pos
}

// SetPos records the position of the entry in the file.
func (i *Item) SetPos(pos diag.Pos) { i.pos = pos }

// Names reports whether the item includes a learner.
func (i *Item) Names(learner string) bool { return hasName(i.Learners, learner) }

// ItemKind is a kind of tables or figures.
type ItemKind struct {
	Figure bool
	Word   string
}

// Kinds of tables and figures.
var (
	TableData       = ItemKind{Word: "data"}                    // the datasets (the paper's Table 1)
	TableAccuracy   = ItemKind{Word: "accuracy"}                // learners and r down, datasets across (Tables 2 and 3)
	TableAcross     = ItemKind{Word: "across"}                  // learners down, datasets and r across (Table 4)
	TablePublished  = ItemKind{Word: "published"}               // like accuracy, with published accuracies, too
	TablePairs      = ItemKind{Word: "pairs"}                   // wins, ties and losses of every pair of learners
	TableRanks      = ItemKind{Word: "ranks"}                   // average ranks with the Friedman test
	FigureRanks     = ItemKind{Figure: true, Word: "ranks"}     // critical-difference diagram
	FigureSplits    = ItemKind{Figure: true, Word: "splits"}    // accuracy of each split
	FigureAttention = ItemKind{Figure: true, Word: "attention"} // histograms of attention scores over epochs (Figure 3)
	FigureR         = ItemKind{Figure: true, Word: "r"}         // accuracy over r (Figure 4)
	FigureVary      = ItemKind{Figure: true, Word: "vary"}      // accuracy over the values of vary (Figure 5)
	FigureSearch    = ItemKind{Figure: true, Word: "search"}    // curves of the trials, and the measure over each setting
)

// itemKinds lists the kinds of tables and figures.
var itemKinds = []ItemKind{TableData, TableAccuracy, TableAcross, TablePublished, TablePairs, TableRanks, FigureRanks,
	FigureSplits, FigureAttention, FigureR, FigureVary, FigureSearch}

// Learner returns the learner with that name, or nil.
func (e *Experiment) Learner(name string) *Learner {
	for i := range e.Learners {
		if e.Learners[i].Name.V == name {
			return &e.Learners[i]
		}
	}
	return nil
}

// SplitsOf returns the splits of a dataset.
func (e *Experiment) SplitsOf(d *DataSet) Splits {
	s := e.Splits
	if d.Splits != nil {
		s = *d.Splits
	}
	if d.Synth != nil {
		s.Pools = d.Synth.Pools
	}
	return s
}

// Variants returns the values of Vary as settings, or one empty setting.
func (l *Learner) Variants() []language.Assignment {
	if l.Vary == nil {
		return []language.Assignment{{}}
	}
	return l.Vary.Values
}

// On returns the coordinates of the learner's cells on a dataset, without the split.
func (l *Learner) On(data string, r int, variant language.Assignment) Coord {
	c := Coord{Data: data, R: r, Learner: l.Name.V}
	if variant.Key != "" {
		c.Variant = variant.String()
	}
	return c
}

// PublishedOn returns the published accuracy for a dataset and r, or "".
func (l *Learner) PublishedOn(data string, r int) string {
	for _, p := range l.Published {
		if p.Data.V == data && p.R == r {
			return p.Text
		}
	}
	return ""
}

// SpecOn returns the spec and the settings of the learner on a dataset, without those of its grid.
func (l *Learner) SpecOn(data string, r int, variant language.Assignment) (spec schema.Str, set []language.Assignment) {
	spec, set = l.Spec, slices.Clone(l.Set)
	for _, c := range l.Cases {
		if !c.Has(data, r) {
			continue
		}
		if c.Spec.V != "" {
			spec = c.Spec
		}
		set = append(set, c.Set...)
	}
	if variant.Key != "" {
		set = append(set, variant)
	}
	return spec, set
}

// GridOn returns the grid of the learner on a dataset.
func (l *Learner) GridOn(data string, r int) []language.Axis {
	grid := l.Grid
	for _, c := range l.Cases {
		if c.Grid != nil && c.Has(data, r) {
			grid = c.Grid
		}
	}
	return grid
}

// SettingsOn returns the settings of the learner's grid on a dataset: those that are drawn, or all combinations; one
// empty setting without a grid.
func (l *Learner) SettingsOn(data string, r int) [][]language.Assignment {
	grid := l.GridOn(data, r)
	if l.Search.Trials.V > 0 && len(grid) > 0 {
		return language.Draw(grid, uint64(l.Search.Seed.V), l.Search.Trials.V)
	}
	return language.Combinations(language.AxisValues(grid))
}

// Searches reports whether the learner has the key search.
func (l *Learner) Searches() bool { return l.Search.Trials.V > 0 || l.Search.Halving.V > 1 }

// countSettings returns an upper bound of the number of settings of SettingsOn, which draws none.
func (l *Learner) countSettings(data string, r int) int {
	grid := l.GridOn(data, r)
	if l.Search.Trials.V > 0 && len(grid) > 0 {
		return l.Search.Trials.V
	}
	return language.CountCombinations(language.AxisValues(grid), language.MaxGrid)
}
