package language

import (
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/miplc/miplc/internal/diag"
)

// Learner names a learner that is fitted to the training bags as a whole, in
// place of a model that is trained by gradient steps.
type Learner struct {
	Pos  diag.Pos
	Kind Str
	Args map[string]Arg // each argument of the kind
}

// LearnerKind is one kind of learner. What a kind does is in the package under
// learners of its name.
type LearnerKind struct {
	Name string
	Doc  string
	args []row
}

// Args lists the names of the arguments; Learner.Args has each of them.
func (k *LearnerKind) Args() []string { return namesOf(k.args) }

// Learners is the table of the learner kinds.
var Learners = []LearnerKind{
	{Name: "pl-aggd", Doc: "Adaptive graph guided disambiguation (PL-AGGD, KDD 2019) on one vector per bag: a neighbour graph and labelling confidences in turn, then kernel ridge regression.",
		args: []row{
			{name: "vector", typ: tString, def: "mean", choices: []string{"mean", "maxmin"}, doc: "What turns the instances of a bag into its vector: their mean, or maxima and minima side by side."},
			{name: "neighbours", typ: tInt, def: "10", in: between(1, 10000), doc: "Neighbours of each training vector in the graph; with fewer training bags, all others."},
			{name: "width", typ: tFloat, def: "0", in: atLeast(0), doc: "Width sigma of the kernel exp(-d^2 / (2 sigma^2)); 0: mean distance between two training vectors."},
			{name: "gamma", typ: tFloat, def: "0.05", in: above(0), doc: "Weight of the norm of the regression."},
			{name: "lambda", typ: tFloat, def: "1", in: atLeast(0), doc: "Weight of the features in the graph."},
			{name: "mu", typ: tFloat, def: "1", in: above(0), doc: "Weight of the labelling confidences in the graph, and of the graph in the confidences."},
			{name: "iterations", typ: tInt, def: "10", in: between(0, 10000), doc: "Times that graph, confidences and regression are renewed after the start."},
		}},
	{Name: "miplgp", Doc: "Gaussian process per class on instances with the bag's candidates and a class of negatives (MIPLGP, Tang, Zhang, Zhang); a bag takes the class of its most confident instance.",
		args: []row{
			{name: "iterations", typ: tInt, def: "500", in: between(0, 100000), doc: "Steps of Adam on the hyper-parameters."},
			{name: "lr", typ: tFloat, def: "0.1", in: above(0), doc: "Rate of the first step; falls to 0 along a cosine."},
			{name: "epsilon", typ: tFloat, def: "0.0001", in: above(0), doc: "What a Dirichlet parameter has beside its confidence."},
			{name: "confidences", typ: tString, def: "prior", choices: []string{"prior", "posterior"}, doc: "What renews the confidences: the constant prior means, for the hyper-parameters alone (the authors' program), or the posterior mean at each instance, for noise and predictions too."},
			{name: "samples", typ: tInt, def: "512", in: between(1, 1000000), doc: "Draws of the posterior where predictions are sampled; the exported model takes mean and variance instead."},
			{name: "solver", typ: tString, def: "auto", choices: []string{"auto", "exact", "cg", "inducing"}, doc: "exact: Cholesky; cg: conjugate gradients with all instances; inducing: inducing points. auto: exact up to 1,500 instances, cg up to 20,000, else inducing."},
			{name: "inducing", typ: tInt, def: "1000", in: between(1, 20000), doc: "Inducing points, drawn among the instances; with cg they carry the variance alone."},
			{name: "subset", typ: tInt, def: "0", in: atLeast(0), doc: "Instances, in whole bags, that the hyper-parameters are learned on, with a tenth as many inducing points; 0: all. Predictions always use all."},
			{name: "lengthscale", typ: tFloat, def: "0", in: atLeast(0), doc: "First lengthscale of the kernel, in units of the features; 0: median distance between two instances. The authors' program starts at 0.6931."},
			{name: "probes", typ: tInt, def: "10", in: between(1, 10000), doc: "cg: random vectors of the trace estimates."},
			{name: "rank", typ: tInt, def: "100", in: between(0, 10000), doc: "cg: rank of the preconditioner."},
			{name: "tolerance", typ: tFloat, def: "0.001", in: within(0, 1), doc: "cg: residual at which a system counts as solved, relative to its right side."},
		}},
}

func learnerNamed(name string) *LearnerKind {
	for i := range Learners {
		if Learners[i].Name == name {
			return &Learners[i]
		}
	}
	return nil
}

func learnerNames() []string {
	list := make([]string, len(Learners))
	for i := range Learners {
		list[i] = Learners[i].Name
	}
	return list
}

// trained reports whether the spec has a model that is trained by gradient
// steps, and not a learner.
func (s *Spec) trained() bool { return s.Learner == nil }

func (s *Spec) fitted() bool { return s.Learner != nil }

// kindRow stands for learner.kind in messages and in the schema.
var kindRow = row{name: "kind", typ: tString, required: true, doc: "Kind of the learner."}

// learner decodes learner: {kind: word, arguments}, or a plain word.
func (r *reader) learner(key, n *node) {
	l := &Learner{Pos: key.pos}
	r.spec.Learner = l
	word, args := n, (*node)(nil)
	switch {
	case n.kind == mapNode:
		if word = n.get(kindRow.name); word == nil {
			r.errs.Add(n.errorf("learner.kind is missing").WithNote("known: %s", strings.Join(learnerNames(), ", ")))
			return
		}
		args = withoutKey(n, kindRow.name)
	case n.kind != scalarNode:
		r.errs.Add(n.errorf("learner must be a map such as {kind: %s}, not %s", Learners[0].Name, n.describe()))
		return
	}
	name, ok := r.text(&kindRow, "learner.kind", word)
	if !ok {
		return
	}
	kind := learnerNamed(name)
	if kind == nil {
		r.unknownWord(word, "learner", learnerNames())
		return
	}
	l.Kind = Str{V: name, Pos: word.pos}
	if args != nil {
		args = r.withoutOtherKinds(kind, word, args)
	}
	l.Args = r.args("learner", kind.args, entry{word: word, args: args})
}

// withoutOtherKinds leaves out inherited arguments of another kind, when the
// spec changes the kind that it inherits.
func (r *reader) withoutOtherKinds(kind *LearnerKind, word, args *node) *node {
	out := args
	for _, key := range args.keys {
		others := func(k LearnerKind) bool { return find(k.args, key.text) != nil }
		inherited := r.below(key.pos, word.pos)
		if find(kind.args, key.text) == nil && inherited && slices.ContainsFunc(Learners, others) {
			out = withoutKey(out, key.text)
		}
	}
	return out
}

// learnerRules refuses what has no effect beside a learner, and drops it where
// it is merely inherited.
func (r *reader) learnerRules() {
	l := r.spec.Learner
	for _, name := range []string{"model", "loss", "weights"} {
		if pos := r.spec.keyPos(name); r.pointless(pos, l.Pos) {
			note(r.add(pos, "%s has no effect beside learner", name),
				"a learner (at %s) brings its model and is not trained by gradient steps: leave one of the two out", l.Pos)
		}
	}
	for i := range trainRows {
		row := &trainRows[i]
		if row.holds == nil || row.holds(r.spec) {
			continue
		}
		pos := posOf(row.to(r.spec))
		if !r.pointless(pos, l.Pos) {
			continue
		}
		e := r.add(pos, "train.%s has no effect: a learner is not trained by gradient steps", row.name)
		if kind := learnerNamed(l.Kind.V); kind != nil {
			note(e, "settings of %s: %s, in learner", kind.Name, strings.Join(kind.Args(), ", "))
		}
	}
	r.spec.Model, r.spec.Loss, r.spec.Weights = Model{}, nil, Weights{}
}

// learner writes the section with all arguments.
func (w *writer) learner() *yaml.Node {
	l, m := w.spec.Learner, mapping(0)
	put(m, kindRow.name, textNode(l.Kind.V))
	rows := learnerNamed(l.Kind.V).args
	for i := range rows {
		a := l.Args[rows[i].name]
		value := argNode(&rows[i], a)
		if rows[i].typ == tBool {
			value = valueNode(&Bool{V: a.Bool})
		}
		put(m, rows[i].name, value)
	}
	return m
}

// learnerSchema allows a plain word or the arguments of one of the kinds.
func learnerSchema() *object {
	forms := []*object{newObject("type", "string", "enum", learnerNames())}
	for i := range Learners {
		k := &Learners[i]
		form := sectionSchema(k.args)
		word := newObject("type", "string", "enum", []string{k.Name}, "description", kindRow.doc)
		form.set("properties", withFirst(form.get("properties").(*object), kindRow.name, word))
		form.set("description", k.Doc)
		forms = append(forms, form)
	}
	return newObject("anyOf", forms)
}

func learnerEntries() []schemaEntry {
	var list []schemaEntry
	for i := range Learners {
		list = append(list, schemaEntry{Learners[i].Name, Learners[i].Doc, Learners[i].args})
	}
	return list
}
