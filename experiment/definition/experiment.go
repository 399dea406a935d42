// Package experiment runs learners over data sets: every data set, number r of
// false positive labels, learner and split is one cell, and every finished cell
// is one line of a results file, so that an experiment can be stopped at any
// time and goes on where it was.
package definition

import (
	"slices"
	"strings"

	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/language/schema"
)

// Experiment is one file of the language (docs/experiments.md). Every value
// knows its place in the file.
type Experiment struct {
	*schema.Document
	Name        schema.Str
	Description schema.Str
	// Reference is the learner that the others are tested against.
	Reference schema.Str
	Data      []DataSet
	Learners  []Learner
	Splits    Splits
	Choose    Choose
	// Snapshots are the epochs whose attention scores are kept as histograms.
	Snapshots []int
	// KeepModels has the ONNX file of every cell kept.
	KeepModels bool
	Report     []Item

	r      []int // of data sets without r of their own; nil: not given
	splits splitKeys
	keep   schema.Str
}

// DataSet is one set of bags, or one for each r.
type DataSet struct {
	Name   schema.Str
	Domain string     // where the bags come from, for the table of data sets
	File   schema.Str // path with {r} where r is to stand; empty: drawn
	Synth  *Synth     // how to draw it; nil: File
	R      []int      // numbers of false positive labels; {Stored} where the file says it
	Splits *Splits    // nil: those of the experiment

	pos    diag.Pos
	splits *splitKeys
}

// SetPos records where the dataset is in the file.
func (d *DataSet) SetPos(pos diag.Pos) { d.pos = pos }

// Stored is the r of a data set whose file decides on the candidate labels.
const Stored = -1

// Synth describes a data set that is drawn: the set of data.Synth and its settings.
// The zero value stands for the default of the set.
type Synth struct {
	Set        schema.Str `json:"-"`
	Bags       int        `json:"bags,omitempty"`
	Positives  float64    `json:"positives,omitempty"` // share of positive instances
	MinSize    int        `json:"min_size,omitempty"`
	MaxSize    int        `json:"max_size,omitempty"`
	Classes    []string   `json:"classes,omitempty"`     // of the source
	ClassCount int        `json:"class_count,omitempty"` // of prototypes
	Features   int        `json:"features,omitempty"`    // of prototypes
	Noise      *float64   `json:"noise,omitempty"`       // of prototypes
	Pools      int        `json:"pools,omitempty"`       // of instances; 0: not drawn from pools
	Seed       int        `json:"seed"`

	noise schema.Float
}

// Learner is one spec with its settings, or one for each value of Vary.
type Learner struct {
	Name  schema.Str // names it in results and in the file
	Title string     // names it in tables
	Group string     // heading above it in tables, e.g. "Mean"
	Spec  schema.Str
	Set   []Setting
	// Grid holds the settings to choose from, each key with its values.
	Grid []Axis
	// Vary makes the learner several, one for each value.
	Vary *Axis
	// Only restricts the learner to some data sets and r.
	Only  Where
	Cases []Case
	// Published holds accuracies that were published for the learner.
	Published []Published
}

// Published is an accuracy that was published, as text such as "0.976±0.008".
type Published struct {
	Data schema.Str
	R    int // Stored where the file of the data set decides
	Text string
}

// Case replaces settings of a learner on some data sets and r.
type Case struct {
	Where Where
	Spec  schema.Str // empty: as the learner
	Set   []Setting  // beside those of the learner
	Grid  []Axis
	Grids bool // Grid was given and replaces that of the learner
}

// Where names data sets and numbers r; an empty list stands for all.
type Where struct {
	Data []schema.Str
	R    []int
}

// Has reports whether a data set and r are meant.
func (w Where) Has(data string, r int) bool {
	return (len(w.R) == 0 || slices.Contains(w.R, r)) && hasName(w.Data, data)
}

func hasName(list []schema.Str, name string) bool {
	return len(list) == 0 || slices.ContainsFunc(list, func(s schema.Str) bool { return s.V == name })
}

// Setting is one override of a spec, as --set takes it.
type Setting struct {
	Key   string
	Value string // YAML in flow style
	At    *schema.Node
}

func (s Setting) String() string { return s.Key + "=" + s.Value }

// Axis is a key of a spec with several values.
type Axis struct {
	Key    string
	Values []Setting
}

// Splits says how bags are split into training and test bags: at random, split
// i with seed Seed+i-1, or as index files say.
type Splits struct {
	Count    int
	Train    float64 // share of training bags
	Stratify bool    // the same share of every class
	Seed     int
	Index    schema.Str // path; {split} stands for the number of the split
	Pools    int        // of the instances of a drawn set, see data.PoolSplit; 0: not drawn from pools
}

// Choose says how one setting of a grid is chosen in every cell: by the accuracy
// on a share of the training bags that is held out; the model is then trained
// with it on all training bags.
type Choose struct {
	Holdout  float64
	Stratify bool // the same share of every class
	Seed     int
}

// Item is one table or figure of the report.
type Item struct {
	Kind     string // one of itemKinds
	Title    string
	Learners []schema.Str // empty: all
	Where    Where

	pos           diag.Pos
	table, figure schema.Str
}

// SetPos records where the entry is in the file.
func (i *Item) SetPos(pos diag.Pos) { i.pos = pos }

// Names reports whether a learner is meant.
func (i *Item) Names(learner string) bool { return hasName(i.Learners, learner) }

// Kinds of tables and figures.
const (
	TableData       = "table data"       // the data sets (the paper's Table 1)
	TableAccuracy   = "table accuracy"   // learners and r down, data sets across (Tables 2 and 3)
	TableAcross     = "table across"     // learners down, data sets and r across (Table 4)
	TableBeside     = "table beside"     // as accuracy, published accuracies beside those measured
	TablePairs      = "table pairs"      // wins, ties and losses of every pair of learners
	TableRanks      = "table ranks"      // average ranks with the Friedman test
	FigureRanks     = "figure ranks"     // critical-difference diagram
	FigureAttention = "figure attention" // histograms of attention scores over epochs (Figure 3)
	FigureR         = "figure r"         // accuracy over r (Figure 4)
	FigureVary      = "figure vary"      // accuracy over the values of vary (Figure 5)
	defaultSplits   = 10
	defaultTrain    = 0.7
	defaultHoldout  = 0.2
)

// itemKinds lists the kinds of tables and figures.
var itemKinds = []string{TableData, TableAccuracy, TableAcross, TableBeside, TablePairs, TableRanks, FigureRanks, FigureAttention, FigureR, FigureVary}

// Learner finds a learner by name.
func (e *Experiment) Learner(name string) *Learner {
	for i := range e.Learners {
		if e.Learners[i].Name.V == name {
			return &e.Learners[i]
		}
	}
	return nil
}

// splitsOf returns the splits of a data set.
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
func (l *Learner) Variants() []Setting {
	if l.Vary == nil {
		return []Setting{{}}
	}
	return l.Vary.Values
}

// On returns the coordinates of the learner's cells on a data set, without the split.
func (l *Learner) On(data string, r int, variant Setting) Coord {
	c := Coord{Data: data, R: r, Learner: l.Name.V}
	if variant.Key != "" {
		c.Variant = variant.String()
	}
	return c
}

// PublishedOn returns the accuracy published for a data set and r, "" for none.
func (l *Learner) PublishedOn(data string, r int) string {
	for _, p := range l.Published {
		if p.Data.V == data && p.R == r {
			return p.Text
		}
	}
	return ""
}

// at returns the spec and the settings of the learner on a data set, besides those of
// its grid.
func (l *Learner) SpecOn(data string, r int, variant Setting) (spec schema.Str, set []Setting) {
	spec, set = l.Spec, slices.Clone(l.Set)
	for _, c := range l.Cases {
		if !c.Where.Has(data, r) {
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

// gridOn returns the grid of the learner on a data set.
func (l *Learner) GridOn(data string, r int) []Axis {
	grid := l.Grid
	for _, c := range l.Cases {
		if c.Grids && c.Where.Has(data, r) {
			grid = c.Grid
		}
	}
	return grid
}

// describe writes settings as "key=value, key=value".
func DescribeSettings(set []Setting) string {
	list := make([]string, len(set))
	for i, s := range set {
		list[i] = s.String()
	}
	return strings.Join(list, ", ")
}

// settingsOf returns the values of axes, for the combinations of them.
func AxisValues(axes []Axis) [][]Setting {
	list := make([][]Setting, len(axes))
	for i, a := range axes {
		list[i] = a.Values
	}
	return list
}
