package language

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"

	"github.com/miplc/miplc/internal/diag"
)

// trainingNames are known in losses and in weights.update alone, since a
// prediction has no candidates.
var trainingNames = []meaning{
	{"S", "Candidate labels [B, k]: 1 for candidates, else 0."},
	{"w", "Label weights [B, k]: those the loss uses; in weights.update the previous ones."},
	{"lambda", "Momentum of the label weights in this epoch."},
}

// epochNames are known in all equations. A prediction takes the values of the
// last epoch, so that what decays over the epochs keeps its final value.
var epochNames = []meaning{
	{"t", "Number of the epoch, from weights.first_epoch on; in predictions that of the last epoch."},
	{"T", "Number of epochs."},
}

// outputNames mean the model's outputs in losses and weights.update.
var outputNames = []meaning{
	{"p", "Class probabilities [B, k]."},
	{"logp", "Logarithm of p."},
	{"a", "Attention scores [N, 1], where the model has any."},
}

// meaning is a name that equations may use, with its meaning.
type meaning struct{ Name, Doc string }

// extentNames are the extents that every spec knows.
var extentNames = []meaning{
	{"d", "Features of an instance, flattened."},
	{"h", "Features of an instance after the feature blocks."},
	{"k", "Classes."},
}

func (m meaning) word() string { return m.Name }

// checkName checks the form of a name that a spec defines.
func checkName(key *Node, what string) (diag.Diagnostic, bool) {
	name := key.text
	switch {
	case !identifier.MatchString(name):
		return key.Errorf("%q cannot be the name of %s", name, what).
			WithNote("a name has letters, digits and _, and starts with a letter"), false
	case token.IsKeyword(name), name == "_":
		return key.Errorf("%s is a reserved word and cannot name %s", name, what), false
	case find(Functions, name) != nil:
		return key.Errorf("%s is a function and cannot name %s", name, what), false
	case slices.Contains(wordsOf(extentNames), name):
		return key.Errorf("the extent %s is known already", name).WithNote("d, h and k are given by data and blocks"), false
	case slices.Contains(wordsOf(trainingNames), name), slices.Contains(wordsOf(epochNames), name):
		return key.Errorf("%s is known already and cannot name %s", name, what).
			WithNote("losses and weights.update know %s", strings.Join(append(wordsOf(trainingNames), wordsOf(epochNames)...), ", ")), false
	}
	return diag.Diagnostic{}, true
}

// scope is what an equation may refer to.
type scope struct {
	known  vocabulary
	later  map[string]diag.Pos // defined further down
	uses   map[string][]string // names used, by the equation that uses them
	inside bool                // an equation of the model, not of the loss
}

// vocabulary is a set of names in the order in which they became known.
type vocabulary struct {
	list []string
	has  map[string]bool
}

func (v *vocabulary) add(names ...string) {
	if v.has == nil {
		v.has = map[string]bool{}
	}
	for _, n := range names {
		if !v.has[n] {
			v.has[n] = true
			v.list = append(v.list, n)
		}
	}
}

// equationRules checks the names of sizes, parameters and equations and that
// each is used.
func (r *Reader) equationRules() {
	m := &r.spec.Model
	before := len(r.errs)
	r.noDoubles()
	r.sizeRules()
	sc := scope{later: map[string]diag.Pos{}, uses: map[string][]string{}, inside: true}
	sc.known.add(r.made()...)
	for _, s := range m.Sizes {
		sc.known.add(s.Name.V)
	}
	for _, n := range m.Numbers {
		sc.known.add(n.Name.V)
	}
	sc.known.add(wordsOf(extentNames)...)
	sc.known.add(wordsOf(epochNames)...)
	for _, p := range m.Params {
		sc.known.add(p.Name.V)
	}
	for i := range m.Let {
		sc.later[m.Let[i].Name.V] = m.Let[i].Name.Pos
	}
	for i := range m.Let {
		eq := &m.Let[i]
		r.resolve(eq, &sc, "let "+eq.Name.V)
		delete(sc.later, eq.Name.V)
		sc.known.add(eq.Name.V)
	}
	sc.inside = false
	sc.known.add(wordsOf(trainingNames)...)
	for _, n := range wordsOf(outputNames) {
		if n != "a" || r.scores() {
			sc.known.add(n)
		}
	}
	for i := range r.spec.Loss {
		if l := &r.spec.Loss[i]; l.Kind.V == "equation" {
			r.resolve(&l.Equation, &sc, "")
		}
	}
	if u := r.spec.Weights.Update; u != nil {
		r.resolve(u, &sc, "")
		r.scheduleRule()
	}
	if r.model == 0 && len(r.errs) == before {
		r.unusedSizes(&sc)
		r.unusedNumbers(&sc)
		r.unusedParams(&sc)
	}
}

// noDoubles reports names that are defined twice.
func (r *Reader) noDoubles() {
	m := &r.spec.Model
	first := map[string]diag.Pos{}
	define := func(name Str) {
		if pos, ok := first[name.V]; ok {
			d := r.clash([]diag.Pos{name.Pos, pos}, "%s is defined already", name.V)
			if pos.IsZero() {
				note(d, "the blocks make %s", name.V)
			} else if pos.File == name.Pos.File {
				note(d, "at %s", pos)
			}
			return
		}
		first[name.V] = name.Pos
	}
	if !r.broken() {
		for _, n := range r.made() {
			first[n] = diag.Pos{}
		}
	}
	setting := func(name Str) { // in losses these names mean the outputs
		if _, ok := first[name.V]; !ok && slices.Contains(wordsOf(outputNames), name.V) {
			note(r.add(name.Pos, "%s means an output of the model; take another name", name.V), "losses know %s", strings.Join(wordsOf(outputNames), ", "))
			return
		}
		define(name)
	}
	for _, s := range m.Sizes {
		setting(s.Name)
	}
	for _, n := range m.Numbers {
		setting(n.Name)
	}
	for _, p := range m.Params {
		define(p.Name)
	}
	for i := range m.Let {
		define(m.Let[i].Name)
	}
}

// sizeRules checks that extents are known and initialisers complete.
func (r *Reader) sizeRules() {
	m := &r.spec.Model
	var known vocabulary
	known.add(wordsOf(extentNames)...)
	for _, s := range m.Sizes {
		known.add(s.Name.V)
	}
	extent := func(e Str, name string) {
		if e.V == "" || e.V[0] >= '0' && e.V[0] <= '9' || known.has[e.V] {
			return
		}
		d := r.add(e.Pos, "the extent %s of %s is not known", e.V, name)
		if d.Suggestion = suggest(e.V, known.list); d.Suggestion == "" {
			note(d, "known: %s; others are named under sizes", diag.Words(known.list))
		}
	}
	for i := range m.Params {
		p := &m.Params[i]
		for _, e := range p.Shape {
			extent(e, p.Name.V)
		}
		extent(p.FanIn, p.Name.V)
		r.initRules(p)
	}
}

// inherited reports whether a place is in a file that the spec extends. What
// is merely inherited may be left unused; it is dropped.
func (r *Reader) inherited(pos diag.Pos) bool { return r.layers[pos.File] < 0 }

func (r *Reader) unusedSizes(sc *scope) {
	used := sc.used()
	for i := range r.spec.Model.Params {
		p := &r.spec.Model.Params[i]
		used[p.FanIn.V] = true
		for _, e := range p.Shape {
			used[e.V] = true
		}
	}
	r.spec.Model.Sizes = dropUnused(r, r.spec.Model.Sizes, used, func(name Str) {
		r.add(name.Pos, "the size %s is used by no parameter and no equation", name.V)
	})
}

func (r *Reader) unusedNumbers(sc *scope) {
	used := sc.used()
	var others []string
	for _, n := range r.spec.Model.Numbers {
		if used[n.Name.V] {
			others = append(others, n.Name.V)
		}
	}
	r.spec.Model.Numbers = dropUnused(r, r.spec.Model.Numbers, used, func(name Str) {
		r.add(name.Pos, "the number %s is used by no equation", name.V).Suggestion = suggest(name.V, others)
	})
}

// dropUnused leaves out settings that are not used, and tells of those that are not
// merely inherited.
func dropUnused[T any](r *Reader, list []Setting[T], used map[string]bool, tell func(name Str)) []Setting[T] {
	return slices.DeleteFunc(list, func(s Setting[T]) bool {
		if !used[s.Name.V] && !r.inherited(s.Name.Pos) {
			tell(s.Name)
		}
		return !used[s.Name.V]
	})
}

// used is the set of all names that equations use.
func (sc *scope) used() map[string]bool {
	used := map[string]bool{}
	for _, names := range sc.uses {
		for _, n := range names {
			used[n] = true
		}
	}
	return used
}

// initRules checks that scale and fan_in fit the initialiser, and fills in the
// default fan_in.
func (r *Reader) initRules(p *Param) {
	scaled := p.Init.V == "normal" || p.Init.V == "uniform"
	switch {
	case scaled && p.Scale.V == 0:
		r.add(p.Init.Pos, "init %s of %s needs a scale", p.Init.V, p.Name.V)
	case !scaled && r.pointless(p.Scale.Pos, p.Init.Pos):
		note(r.add(p.Scale.Pos, "scale has no effect with init %s", p.Init.V), "normal and uniform have a scale")
	}
	if !scaled {
		p.Scale = Float{}
	}
	if p.Init.V != "fan_in" {
		if r.pointless(p.FanIn.Pos, p.Init.Pos) {
			r.add(p.FanIn.Pos, "fan_in has no effect with init %s", p.Init.V)
		}
		p.FanIn = Str{}
		return
	}
	if p.FanIn.V == "" {
		p.FanIn.V = "1"
		if len(p.Shape) > 0 {
			p.FanIn.V = p.Shape[0].V
		}
	}
}

// resolve checks the names of one equation; as is the key for its uses.
func (r *Reader) resolve(eq *Equation, sc *scope, as string) {
	if eq.Expr == nil {
		return // reported when it was read
	}
	eq.names(func(x *ast.Ident) {
		sc.uses[as] = append(sc.uses[as], x.Name)
		if sc.known.has[x.Name] {
			return
		}
		r.errs.Add(r.unknownName(eq, sc, x))
	})
}

func (r *Reader) unknownName(eq *Equation, sc *scope, x *ast.Ident) diag.Diagnostic {
	d := eq.errorAt(x, fmt.Sprintf("%s is not defined", x.Name))
	pos, later := sc.later[x.Name]
	switch fn := find(Functions, x.Name); {
	case x.Name == eq.Name.V && later:
		d.Text = fmt.Sprintf("%s is defined by itself", x.Name)
	case later:
		d.Text = fmt.Sprintf("%s is used before it is defined", x.Name)
		d = d.WithNote("equations are read in order; %s stands at %s", x.Name, pos)
	case fn != nil:
		d.Text = fmt.Sprintf("%s is a function and needs arguments", x.Name)
		d = d.WithNote("%s", fn.signature())
	case sc.inside && slices.Contains(wordsOf(trainingNames), x.Name):
		d.Text = fmt.Sprintf("%s is known in losses and weights.update alone", x.Name)
		d = d.WithNote("a prediction has no candidates")
	default:
		if d.Suggestion = suggest(x.Name, sc.known.list); d.Suggestion == "" {
			d = d.WithNote("known here: %s", diag.Words(sc.known.list))
		}
	}
	return d
}

// scheduleRule reports a schedule of lambda that an update without lambda ignores.
func (r *Reader) scheduleRule() {
	w := &r.spec.Weights
	if !r.spec.usesLambda() && r.pointless(w.Schedule.Pos, w.Update.Text.Pos) {
		note(r.add(w.Schedule.Pos, "weights.schedule has no effect: weights.update does not use lambda"), "the update is at %s", w.Update.Text.Pos)
	}
}

// usesLambda reports whether any equation or Eq. 7 reads the momentum lambda.
func (s *Spec) usesLambda() bool {
	if s.Weights.Update == nil || s.Weights.Update.Expr == nil {
		return true
	}
	found := false
	look := func(eq *Equation) {
		if eq.Expr != nil {
			eq.names(func(x *ast.Ident) { found = found || x.Name == "lambda" })
		}
	}
	look(s.Weights.Update)
	for i := range s.Loss {
		look(&s.Loss[i].Equation)
	}
	return found
}

// unusedParams reports parameters that nothing trained depends on.
func (r *Reader) unusedParams(sc *scope) {
	m := &r.spec.Model
	reached := map[string]bool{}
	var reach func(name string)
	reach = func(name string) {
		if reached[name] {
			return
		}
		reached[name] = true
		for _, n := range sc.uses["let "+name] {
			reach(n)
		}
	}
	for _, n := range []string{m.Attention.V, m.Probabilities.V, m.LogProbabilities.V} {
		reach(n)
	}
	for _, n := range sc.uses[""] {
		reach(n)
	}
	user := map[string]string{} // the first equation that uses a name
	for i := range m.Let {
		for _, n := range sc.uses["let "+m.Let[i].Name.V] {
			if user[n] == "" {
				user[n] = m.Let[i].Name.V
			}
		}
	}
	m.Params = slices.DeleteFunc(m.Params, func(p Param) bool { return !reached[p.Name.V] && r.inherited(p.Name.Pos) })
	for _, p := range m.Params {
		if reached[p.Name.V] {
			continue
		}
		d := r.add(p.Name.Pos, "the parameter %s is never used", p.Name.V)
		if name := user[p.Name.V]; name != "" {
			note(d, "%s uses it, but neither outputs nor losses depend on %s", name, name)
		}
	}
}
