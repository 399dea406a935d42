package experiment

import (
	"math"
	"strings"

	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/language"
)

// Limits that keep a slip of the keyboard from costing hours or memory.
const (
	maxR         = 1000
	maxCount     = 1 << 30
	maxSplits    = 1000
	maxGrid      = 1000
	maxNameRunes = 60
	maxCells     = 100_000
	maxTrainings = 1_000_000
)

// Parse reads the text of an experiment. All that is wrong with it comes back in
// one diag.List; specs and data are not looked at.
func Parse(file string, src []byte) (*Experiment, error) {
	if len(strings.TrimSpace(string(src))) == 0 {
		return nil, diag.List{diag.Errorf(diag.Pos{File: file}, "the file is empty").
			WithNote("an experiment needs name, data and learners")}
	}
	root, err := language.ParseTree(file, src)
	if err != nil {
		return nil, err
	}
	e := &Experiment{File: file, Source: src, root: root, Splits: Splits{defaultSplits, defaultTrain, 1, language.Str{}},
		Choose: Choose{defaultHoldout, 1}}
	r := &reader{e: e}
	r.experiment(root)
	if len(r.errs) == 0 {
		r.rules()
	}
	if err := r.errs.Err(); err != nil {
		return nil, err
	}
	return e, nil
}

// reader turns the tree of a file into an Experiment and gathers what is wrong.
type reader struct {
	e    *Experiment
	errs diag.List
	r    []int // the r of the whole experiment; nil: not given
}

// field is one key of a map.
type field struct {
	name     string
	required bool
	read     func(n language.Node)
}

// fields reads a map; where says what it is, for messages.
func (r *reader) fields(n language.Node, where string, table []field) bool {
	if !n.IsMap() {
		r.errs.Add(n.Errorf("%s must be a map of keys and values, not %s", where, n.Describe()))
		return false
	}
	seen := map[string]bool{}
	for i, key := range n.Keys() {
		f := find(table, key.Raw())
		if f == nil {
			r.unknownKey(key, where, table)
			continue
		}
		seen[f.name] = true
		value := n.Items()[i]
		if value.IsNull() {
			r.errs.Add(key.Errorf("%s of %s has no value", f.name, where))
			continue
		}
		f.read(value)
	}
	for _, f := range table {
		if f.required && !seen[f.name] {
			r.errs.Add(n.Errorf("%s lacks %s", where, f.name))
		}
	}
	return true
}

func find(table []field, name string) *field {
	for i := range table {
		if table[i].name == name {
			return &table[i]
		}
	}
	return nil
}

func (r *reader) unknownKey(key language.Node, where string, table []field) {
	names := make([]string, len(table))
	for i := range table {
		names[i] = table[i].name
	}
	d := key.Errorf("unknown key %q in %s", key.Raw(), where)
	if d.Suggestion = diag.Suggest(key.Raw(), names); d.Suggestion == "" {
		d = d.WithNote("known here: %s", strings.Join(names, ", "))
	}
	r.errs.Add(d)
}

func (r *reader) experiment(root language.Node) {
	e := r.e
	var sets, learners language.Node
	r.fields(root, "an experiment", []field{
		{"name", true, r.name(&e.Name, "the name")},
		{"description", false, r.line(&e.Description.V, "the description")},
		{"reference", false, r.name(&e.Reference, "the reference")},
		{"r", false, r.labels(&r.r)},
		{"data", true, func(n language.Node) { sets = n }},
		{"learners", true, func(n language.Node) { learners = n }},
		{"splits", false, func(n language.Node) { r.splits(n, &e.Splits) }},
		{"choose", false, r.choose},
		{"attention", false, r.attention},
		{"keep", false, r.keep},
		{"report", false, func(n language.Node) { r.list(n, "report", r.item) }},
	})
	// The data sets need r, and data sets with splits of their own start from
	// those of the experiment: both may stand below in the file.
	if !sets.IsZero() {
		r.list(sets, "data", r.dataSet)
	}
	if !learners.IsZero() {
		r.list(learners, "learners", r.learner)
	}
}

// list reads the entries of a list that must not be empty.
func (r *reader) list(n language.Node, what string, read func(language.Node)) {
	if !n.IsList() {
		r.errs.Add(n.Errorf("%s must be a list, not %s", what, n.Describe()))
		return
	}
	if len(n.Items()) == 0 {
		r.errs.Add(n.Errorf("%s is empty", what))
	}
	for _, item := range n.Items() {
		read(item)
	}
}

func (r *reader) dataSet(n language.Node) {
	d := DataSet{R: r.r}
	var own []int
	ok := r.fields(n, "a data set", []field{
		{"name", true, r.name(&d.Name, "the name of a data set")},
		{"domain", false, r.line(&d.Domain, "domain")},
		{"file", false, r.text(&d.File, "file")},
		{"synth", false, func(n language.Node) { d.Synth = r.synth(n) }},
		{"r", false, r.labels(&own)},
		{"splits", false, func(n language.Node) {
			s := r.e.Splits
			r.splits(n, &s)
			d.Splits = &s
		}},
	})
	if !ok {
		return
	}
	switch {
	case (d.File.V == "") == (d.Synth == nil):
		r.errs.Add(n.Errorf("a data set is either read from a file or drawn").WithNote("give it one of file: and synth:"))
	case own != nil:
		d.R = own
	case d.File.V != "" && !strings.Contains(d.File.V, rMark):
		d.R = []int{Stored}
	case d.R == nil:
		d.R = []int{1}
	}
	r.e.Data = append(r.e.Data, d)
}

// rMark and splitMark stand for numbers in the names of files.
const (
	rMark     = "{r}"
	splitMark = "{split}"
)

func (r *reader) synth(n language.Node) *Synth {
	s := &Synth{Seed: 1}
	if _, ok := n.Text(); ok {
		r.name(&s.Set, "synth")(n)
		return s
	}
	var set language.Str
	r.fields(n, "synth", []field{
		{"set", true, r.name(&set, "set")},
		{"bags", false, r.count(&s.Bags, "bags", 1, maxCount)},
		{"positives", false, r.share(&s.Positives, "positives", true)},
		{"min_size", false, r.count(&s.MinSize, "min_size", 1, maxCount)},
		{"max_size", false, r.count(&s.MaxSize, "max_size", 1, maxCount)},
		{"classes", false, func(n language.Node) { r.classes(n, s) }},
		{"features", false, r.count(&s.Features, "features", 1, 1<<20)},
		{"noise", false, r.noise(&s.Noise)},
		{"seed", false, r.count(&s.Seed, "seed", 0, maxCount)},
	})
	s.Set = set
	return s
}

// classes are names of classes of the source, or a number of prototypes.
func (r *reader) classes(n language.Node, s *Synth) {
	if !n.IsList() {
		r.count(&s.ClassCount, "classes", 2, 1<<16)(n)
		return
	}
	for _, item := range n.Items() {
		if item.IsList() || item.IsMap() || item.IsNull() {
			r.errs.Add(item.Errorf("a class is named by a word or a number, not by %s", item.Describe()))
			continue
		}
		s.Classes = append(s.Classes, item.Raw())
	}
}

func (r *reader) noise(to *float64) func(language.Node) {
	return func(n language.Node) {
		v, ok := n.Number()
		if !ok || v < 0 || math.IsInf(v, 0) {
			r.errs.Add(n.Errorf("noise must be a number of at least 0, not %s", n.Describe()))
			return
		}
		*to = v
	}
}

func (r *reader) learner(n language.Node) {
	var l Learner
	title, ok := "", false
	ok = r.fields(n, "a learner", []field{
		{"name", true, r.name(&l.Name, "the name of a learner")},
		{"title", false, r.line(&title, "title")},
		{"group", false, r.line(&l.Group, "group")},
		{"spec", true, r.text(&l.Spec, "spec")},
		{"set", false, func(n language.Node) { l.Set = r.settings(n) }},
		{"grid", false, func(n language.Node) { l.Grid = r.grid(n) }},
		{"vary", false, func(n language.Node) { l.Vary = r.vary(n) }},
		{"data", false, r.names(&l.Only.Data, "data")},
		{"r", false, r.labels(&l.Only.R)},
		{"published", false, func(n language.Node) { l.Published = r.published(n) }},
		{"cases", false, func(n language.Node) {
			r.list(n, "cases", func(n language.Node) { l.Cases = append(l.Cases, r.oneCase(n)) })
		}},
	})
	if !ok {
		return
	}
	if l.Title = title; title == "" {
		l.Title = l.Name.V
	}
	r.e.Learners = append(r.e.Learners, l)
}

// published reads a map of data sets to one text, or to maps of r to texts.
func (r *reader) published(n language.Node) []Published {
	if !n.IsMap() {
		r.errs.Add(n.Errorf("published must be a map of data sets, such as {MNIST-MIPL: {1: 0.976±0.008}}, not %s", n.Describe()))
		return nil
	}
	var list []Published
	text := func(p Published, n language.Node) {
		if n.IsList() || n.IsMap() || n.IsNull() || len(n.Raw()) > maxNameRunes {
			r.errs.Add(n.Errorf("a published accuracy is a number or a text such as 0.976±0.008, not %s", n.Describe()))
			return
		}
		p.Text = n.Raw()
		list = append(list, p)
	}
	for i, name := range n.Keys() {
		p, value := Published{Data: language.Str{V: name.Raw(), Pos: name.Pos()}, R: Stored}, n.Items()[i]
		if !value.IsMap() {
			text(p, value)
			continue
		}
		for j, label := range value.Keys() {
			r.count(&p.R, "r", 0, maxR)(label)
			text(p, value.Items()[j])
		}
	}
	return list
}

func (r *reader) oneCase(n language.Node) Case {
	var c Case
	r.fields(n, "a case", []field{
		{"data", false, r.names(&c.Where.Data, "data")},
		{"r", false, r.labels(&c.Where.R)},
		{"spec", false, r.text(&c.Spec, "spec")},
		{"set", false, func(n language.Node) { c.Set = r.settings(n) }},
		{"grid", false, func(n language.Node) { c.Grid, c.Grids = r.grid(n), true }},
	})
	return c
}

// settings reads a map of keys of a spec and values.
func (r *reader) settings(n language.Node) []Setting {
	if !n.IsMap() {
		r.errs.Add(n.Errorf("set must be a map such as {train.epochs: 5}, not %s", n.Describe()))
		return nil
	}
	var list []Setting
	for i, key := range n.Keys() {
		list = append(list, r.setting(key, n.Items()[i]))
	}
	return list
}

// notForSpecs are the keys of a spec that the experiment decides on.
var notForSpecs = map[string]string{
	"data.set": "data", "data.split": "splits", "data.generated": "data", "name": "name", "extends": "spec",
}

func (r *reader) setting(key, value language.Node) Setting {
	for prefix, instead := range notForSpecs {
		if key.Raw() == prefix || strings.HasPrefix(key.Raw(), prefix+".") {
			r.errs.Add(key.Errorf("%s is no setting of a learner here", key.Raw()).WithNote("the experiment says it with %s", instead))
		}
	}
	return Setting{key.Raw(), value.Flow(), value}
}

// grid reads a map of keys and lists of values.
func (r *reader) grid(n language.Node) []Axis {
	if !n.IsMap() {
		r.errs.Add(n.Errorf("grid must be a map such as {train.lr: [0.01, 0.05]}, not %s", n.Describe()))
		return nil
	}
	var axes []Axis
	size := 1
	for i, key := range n.Keys() {
		a, ok := r.axis(key, n.Items()[i])
		if !ok {
			continue
		}
		axes = append(axes, a)
		size *= len(a.Values)
	}
	if size > maxGrid {
		r.errs.Add(n.Errorf("the grid has %d settings, at most %d are possible", size, maxGrid))
		return nil
	}
	return axes
}

func (r *reader) axis(key, values language.Node) (Axis, bool) {
	if !values.IsList() {
		r.errs.Add(values.Errorf("%s needs a list of values, not %s", key.Raw(), values.Describe()))
		return Axis{}, false
	}
	if len(values.Items()) == 0 {
		r.errs.Add(values.Errorf("the list of values of %s is empty", key.Raw()))
		return Axis{}, false
	}
	if len(values.Items()) > maxGrid {
		r.errs.Add(values.Errorf("%s has more than %d values", key.Raw(), maxGrid))
		return Axis{}, false
	}
	a := Axis{Key: key.Raw()}
	seen := map[string]bool{}
	for _, v := range values.Items() {
		s := r.setting(key, v)
		if seen[s.Value] {
			r.errs.Add(v.Errorf("the value %s stands here twice", s.Value))
		}
		seen[s.Value] = true
		a.Values = append(a.Values, s)
	}
	return a, true
}

func (r *reader) vary(n language.Node) *Axis {
	axes := r.grid(n)
	if n.IsMap() && len(n.Keys()) != 1 {
		r.errs.Add(n.Errorf("vary takes one key, not %d", len(n.Keys())).WithNote("settings to choose from belong into grid"))
	}
	if len(axes) != 1 {
		return nil
	}
	return &axes[0]
}

func (r *reader) splits(n language.Node, to *Splits) {
	var train, seed bool
	r.fields(n, "splits", []field{
		{"count", false, r.count(&to.Count, "count", 1, maxSplits)},
		{"train", false, func(n language.Node) { train = true; r.share(&to.Train, "train", false)(n) }},
		{"seed", false, func(n language.Node) { seed = true; r.count(&to.Seed, "seed", 0, maxCount)(n) }},
		{"index", false, r.text(&to.Index, "index")},
	})
	if to.Index.V != "" && (train || seed) {
		r.errs.Add(n.Errorf("train and seed belong to random splits; index has the bags of every split in files"))
	}
}

func (r *reader) choose(n language.Node) {
	r.fields(n, "choose", []field{
		{"holdout", false, r.share(&r.e.Choose.Holdout, "holdout", false)},
		{"seed", false, r.count(&r.e.Choose.Seed, "seed", 0, maxCount)},
	})
}

func (r *reader) attention(n language.Node) {
	r.fields(n, "attention", []field{
		{"epochs", true, func(n language.Node) {
			r.list(n, "epochs", func(n language.Node) {
				var v int
				r.count(&v, "an epoch", 1, maxCount)(n)
				r.e.Snapshots = append(r.e.Snapshots, v)
			})
		}},
	})
}

func (r *reader) keep(n language.Node) {
	switch text, _ := n.Text(); text {
	case "models":
		r.e.KeepModels = true
	case "results":
	default:
		d := n.Errorf("keep is models or results, not %s", n.Describe())
		d.Suggestion = diag.Suggest(text, []string{"models", "results"})
		r.errs.Add(d)
	}
}

func (r *reader) item(n language.Node) {
	it := Item{Pos: n.Pos()}
	var table, figure language.Str
	r.fields(n, "an entry of the report", []field{
		{"table", false, r.name(&table, "table")},
		{"figure", false, r.name(&figure, "figure")},
		{"title", false, r.line(&it.Title, "title")},
		{"learners", false, r.names(&it.Learners, "learners")},
		{"data", false, r.names(&it.Where.Data, "data")},
		{"r", false, r.labels(&it.Where.R)},
	})
	if (table.V == "") == (figure.V == "") {
		r.errs.Add(n.Errorf("an entry of the report is either a table or a figure"))
		return
	}
	what := "table"
	if table.V == "" {
		what, table = "figure", figure
	}
	it.Kind = what + " " + table.V
	var known []string
	for _, k := range ItemKinds {
		if kind, found := strings.CutPrefix(k, what+" "); found {
			known = append(known, kind)
			if kind == table.V {
				r.e.Report = append(r.e.Report, it)
				return
			}
		}
	}
	d := diag.Errorf(table.Pos, "there is no %s %q", what, table.V)
	if d.Suggestion = diag.Suggest(table.V, known); d.Suggestion == "" {
		d = d.WithNote("known: %s", strings.Join(known, ", "))
	}
	r.add(d)
}

// The functions below read values of one type into a place.

func (r *reader) text(to *language.Str, what string) func(language.Node) {
	return func(n language.Node) {
		text, ok := n.Text()
		if !ok || strings.TrimSpace(text) == "" || strings.ContainsFunc(text, isControl) {
			r.errs.Add(n.Errorf("%s must be one line of text, not %s", what, n.Describe()))
			return
		}
		*to = language.Str{V: text, Pos: n.Pos()}
	}
}

func isControl(c rune) bool { return c < ' ' || c == 0x7f || c == 0x85 || c == 0x2028 || c == 0x2029 }

// name reads a text that stands in tables.
func (r *reader) name(to *language.Str, what string) func(language.Node) {
	read := r.text(to, what)
	return func(n language.Node) {
		read(n)
		if len([]rune(to.V)) > maxNameRunes {
			r.errs.Add(n.Errorf("%s is longer than %d characters", what, maxNameRunes))
		}
	}
}

func (r *reader) line(to *string, what string) func(language.Node) {
	return func(n language.Node) {
		var s language.Str
		r.text(&s, what)(n)
		*to = s.V
	}
}

// names reads one name or a list of them.
func (r *reader) names(to *[]language.Str, what string) func(language.Node) {
	one := func(n language.Node) {
		var s language.Str
		r.text(&s, "a name in "+what)(n)
		*to = append(*to, s)
	}
	return func(n language.Node) {
		if n.IsList() {
			r.list(n, what, one)
			return
		}
		one(n)
	}
}

// labels reads one r or a list of them.
func (r *reader) labels(to *[]int) func(language.Node) {
	one := func(n language.Node) {
		v := 0
		r.count(&v, "r", 0, maxR)(n)
		for _, have := range *to {
			if have == v {
				r.errs.Add(n.Errorf("r %d stands here twice", v))
				return
			}
		}
		*to = append(*to, v)
	}
	return func(n language.Node) {
		if n.IsList() {
			r.list(n, "r", one)
			return
		}
		one(n)
	}
}

func (r *reader) count(to *int, what string, low, high int) func(language.Node) {
	return func(n language.Node) {
		v, ok := n.Int()
		switch {
		case !ok:
			r.errs.Add(n.Errorf("%s must be a whole number, not %s", what, n.Describe()))
		case v < low || v > high:
			r.errs.Add(n.Errorf("%s must be between %d and %d, not %d", what, low, high, v))
		default:
			*to = v
		}
	}
}

// share reads a number above 0 and below 1, or 1 where whole is set.
func (r *reader) share(to *float64, what string, whole bool) func(language.Node) {
	return func(n language.Node) {
		v, ok := n.Number()
		if !ok || !(v > 0 && (v < 1 || whole && v == 1)) {
			r.errs.Add(n.Errorf("%s must be a number %s, not %s", what,
				map[bool]string{true: "above 0 and at most 1", false: "between 0 and 1"}[whole], n.Describe()))
			return
		}
		*to = v
	}
}
