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

// learnerKinds is the table of the learners. What a kind does is in the package
// under learners of its name.
var learnerKinds = []Kind{
	{Name: "pl-aggd", Doc: "Adaptive graph guided disambiguation (PL-AGGD, KDD 2019) on one vector per bag: a neighbour graph and labelling confidences in turn, then kernel ridge regression.",
		args: []Row{
			{Name: "vector", Type: Text, Default: "mean", Choices: []string{"mean", "maxmin"}, Doc: "What turns the instances of a bag into its vector: their mean, or maxima and minima side by side."},
			{Name: "neighbours", Type: Whole, Default: "10", In: Between(1, 10000), Doc: "Neighbours of each training vector in the graph; with fewer training bags, all others."},
			{Name: "width", Type: Real, Default: "0", In: AtLeast(0), Doc: "Width sigma of the kernel exp(-d^2 / (2 sigma^2)); 0: mean distance between two training vectors."},
			{Name: "gamma", Type: Real, Default: "0.05", In: above(0), Doc: "Weight of the norm of the regression."},
			{Name: "lambda", Type: Real, Default: "1", In: AtLeast(0), Doc: "Weight of the features in the graph."},
			{Name: "mu", Type: Real, Default: "1", In: above(0), Doc: "Weight of the labelling confidences in the graph, and of the graph in the confidences."},
			{Name: "iterations", Type: Whole, Default: "10", In: Between(0, 10000), Doc: "Times that graph, confidences and regression are renewed after the start."},
		}},
	{Name: "miplgp", onDevice: true, Doc: "Gaussian process per class on instances with the bag's candidates and a class of negatives (MIPLGP, Tang, Zhang, Zhang); a bag takes the class of its most confident instance.",
		args: []Row{
			{Name: "iterations", Type: Whole, Default: "500", In: Between(0, 100000), Doc: "Steps of Adam on the hyper-parameters."},
			{Name: "lr", Type: Real, Default: "0.1", In: above(0), Doc: "Rate of the first step; falls to 0 along a cosine."},
			{Name: "epsilon", Type: Real, Default: "0.0001", In: above(0), Doc: "What a Dirichlet parameter has beside its confidence."},
			{Name: "confidences", Type: Text, Default: "prior", Choices: []string{"prior", "posterior"}, Doc: "What renews the confidences: the constant prior means, for the hyper-parameters alone (the authors' program), or the posterior mean at each instance, for noise and predictions too."},
			{Name: "samples", Type: Whole, Default: "512", In: Between(1, 1000000), Doc: "Draws of the posterior where predictions are sampled; the exported model takes mean and variance instead."},
			{Name: "solver", Type: Text, Default: "auto", Choices: []string{"auto", "exact", "cg", "inducing"}, Doc: "exact: Cholesky; cg: conjugate gradients with all instances; inducing: inducing points. auto: exact up to 1,500 instances, cg up to 20,000, else inducing."},
			{Name: "inducing", Type: Whole, Default: "1000", In: Between(1, 20000), Doc: "Inducing points, drawn among the instances; with cg they carry the variance alone."},
			{Name: "subset", Type: Whole, Default: "0", In: AtLeast(0), Doc: "Instances, in whole bags, that the hyper-parameters are learned on, with a tenth as many inducing points; 0: all. Predictions always use all."},
			{Name: "lengthscale", Type: Real, Default: "0", In: AtLeast(0), Doc: "First lengthscale of the kernel, in units of the features; 0: median distance between two instances. The authors' program starts at 0.6931."},
			{Name: "probes", Type: Whole, Default: "10", In: Between(1, 10000), Doc: "cg: random vectors of the trace estimates."},
			{Name: "rank", Type: Whole, Default: "100", In: Between(0, 10000), Doc: "cg: rank of the preconditioner."},
			{Name: "tolerance", Type: Real, Default: "0.001", In: Within(0, 1), Doc: "cg: residual at which a system counts as solved, relative to its right side."},
		}},
}

// trained reports whether the spec has a model that is trained by gradient
// steps, and not a learner.
func (s *Spec) trained() bool { return s.Learner == nil }

func (s *Spec) fitted() bool { return s.Learner != nil }

// TakesEngine reports whether an engine computes for the spec: its model is trained,
// or its learner is of a kind that computes on the device of an engine.
func (s *Spec) TakesEngine() bool {
	if s.trained() {
		return true
	}
	kind := find(learnerKinds, s.Learner.Kind.V)
	return kind != nil && kind.onDevice
}

// kindRow stands for learner.kind in messages and in the schema.
var kindRow = Row{Name: "kind", Type: Text, Required: true, Doc: "Kind of the learner."}

var learnerForm = Own{Says: "a map", Schema: learnerSchema, Read: readLearner, write: writeLearner}

// readLearner decodes learner: {kind: word, arguments}, or a plain word.
func readLearner(r *Reader, _ string, key, n *Node, _ any) {
	l := &Learner{Pos: key.Pos()}
	r.spec.Learner = l
	word, args := n, (*Node)(nil)
	switch {
	case n.kind == mapNode:
		if word = n.get(kindRow.Name); word == nil {
			r.errs.Add(n.Errorf("learner.kind is missing").WithNote("known: %s", strings.Join(wordsOf(learnerKinds), ", ")))
			return
		}
		args = withoutKey(n, kindRow.Name)
	case n.kind != scalarNode:
		r.errs.Add(n.Errorf("learner must be a map such as {kind: %s}, not %s", learnerKinds[0].Name, n.Describe()))
		return
	}
	name, ok := r.text(&kindRow, "learner.kind", word)
	if !ok {
		return
	}
	kind := find(learnerKinds, name)
	if kind == nil {
		r.unknownWord(word, "learner", wordsOf(learnerKinds))
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
func (r *Reader) withoutOtherKinds(kind *Kind, word, args *Node) *Node {
	out := args
	for _, key := range args.keys {
		others := func(k Kind) bool { return find(k.args, key.text) != nil }
		inherited := r.below(key.pos, word.pos)
		if find(kind.args, key.text) == nil && inherited && slices.ContainsFunc(learnerKinds, others) {
			out = withoutKey(out, key.text)
		}
	}
	return out
}

// learnerRules refuses what has no effect beside a learner, and drops it where
// it is merely inherited.
func (r *Reader) learnerRules() {
	l := r.spec.Learner
	for _, name := range []string{"model", "loss", "weights"} {
		if pos := r.keyPos(name); r.pointless(pos, l.Pos) {
			note(r.add(pos, "%s has no effect beside learner", name),
				"a learner (at %s) brings its model and is not trained by gradient steps: leave one of the two out", l.Pos)
		}
	}
	for i := range trainRows {
		row := &trainRows[i]
		if row.holds == nil || row.holds(r.spec) {
			continue
		}
		pos := posOf(row.To(r.spec))
		if !r.pointless(pos, l.Pos) {
			continue
		}
		e := r.add(pos, "train.%s has no effect: a learner is not trained by gradient steps", row.Name)
		if kind := find(learnerKinds, l.Kind.V); kind != nil {
			note(e, "settings of %s: %s, in learner", kind.Name, strings.Join(wordsOf(kind.args), ", "))
		}
	}
	r.spec.Model, r.spec.Loss, r.spec.Weights = Model{}, nil, Weights{}
}

// writeLearner writes the section with all arguments.
func writeLearner(s *Spec) *yaml.Node {
	l, m := s.Learner, mapping(0)
	put(m, kindRow.Name, textNode(l.Kind.V))
	for _, row := range find(learnerKinds, l.Kind.V).args {
		put(m, row.Name, valueNode(l.Args[row.Name].V))
	}
	return m
}

// learnerSchema allows a plain word or the arguments of one of the kinds.
func learnerSchema() *object {
	forms := []*object{newObject("type", "string", "enum", wordsOf(learnerKinds))}
	for i := range learnerKinds {
		k := &learnerKinds[i]
		word := newObject("type", "string", "enum", []string{k.Name}, "description", kindRow.Doc)
		form := sectionSchema(k.args, member{kindRow.Name, word})
		form.set("description", k.Doc)
		forms = append(forms, form)
	}
	return newObject("anyOf", forms)
}
