// Rules of equations: every name is defined once, known where it is used, and used.

package language

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"

	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/language/schema"
)

// resolveEquations checks the names of sizes, parameters and equations and that each is used.
func (c *checker) resolveEquations() {
	m := &c.spec.Model
	before := len(c.faults)
	c.checkDuplicateNames()
	c.resolveParams()
	sc := scope{later: map[string]diag.Pos{}, uses: map[string][]string{}, inside: true}
	sc.known.add(c.resultNames()...)
	for _, s := range m.Sizes {
		sc.known.add(s.Name.V)
	}
	for _, n := range m.Numbers {
		sc.known.add(n.Name.V)
	}
	sc.known.add(schema.Words(sizeNames)...)
	sc.known.add(schema.Words(epochNames)...)
	for _, p := range m.Params {
		sc.known.add(p.Name.V)
	}
	c.resolveFunctions(&sc)
	c.sortLet(m.Let)
	c.resolveLet(m.Let, &sc)
	sc.inside = false
	if sc.known.add("S"); !c.spec.Multi() { // else there are no label weights
		sc.known.add(schema.Words(lossOnlyNames)...)
	}
	for _, n := range schema.Words(outputNames) {
		if n != "a" || c.hasAttention() {
			sc.known.add(n)
		}
	}
	c.resolveSharedLet(&sc)
	for i := range c.spec.Loss {
		if l := &c.spec.Loss[i]; l.Kind.V == "equation" {
			c.resolveNames(&l.Equation, &sc, "")
		}
	}
	if u := c.spec.Weights.Update; u != nil {
		c.resolveNames(u, &sc, "")
		c.checkSchedule()
	}
	if c.inModel == 0 && len(c.faults) == before {
		c.dropUnusedParams(&sc)
		c.dropUnusedFunctions(&sc)
		c.dropUnusedSizes(&sc)
		c.dropUnusedNumbers(&sc)
	}
}

// checkDuplicateNames reports names that are defined twice.
func (c *checker) checkDuplicateNames() {
	m := &c.spec.Model
	first := map[string]diag.Pos{}
	define := func(name schema.Str) {
		if pos, ok := first[name.V]; ok {
			d := c.clash([]diag.Pos{name.Pos, pos}, "%s is defined already", name.V)
			if pos.IsZero() {
				note(d, "the blocks make %s", name.V)
				if blocks := m.Blocks; len(blocks) > 0 && c.ExtendedBy(blocks[0].Kind.Pos, name.Pos) &&
					!slices.Contains(instanceNames, name.V) {
					note(d, "they are inherited, from %s; without blocks: write model: {blocks: []}", blocks[0].Kind.Pos)
				}
			} else if pos.SameSource(name.Pos) {
				note(d, "at %s", pos)
			}
			return
		}
		first[name.V] = name.Pos
	}
	if !c.broken() {
		for _, n := range c.resultNames() {
			first[n] = diag.Pos{}
		}
	}
	// In losses p, logp and a are the outputs of the model, so only equations and parameters may define them.
	defineUnlessOutput := func(name schema.Str) {
		if _, ok := first[name.V]; !ok && slices.Contains(schema.Words(outputNames), name.V) {
			note(c.add(name.Pos, "%s is the name of a model output; choose another name", name.V), "losses can use %s",
				strings.Join(schema.Words(outputNames), ", "))
			return
		}
		define(name)
	}
	for _, s := range m.Sizes {
		defineUnlessOutput(s.Name)
	}
	for _, n := range m.Numbers {
		defineUnlessOutput(n.Name)
	}
	for _, p := range m.Params {
		define(p.Name)
	}
	for i := range m.Functions {
		defineUnlessOutput(m.Functions[i].Name)
	}
	for i := range m.Let {
		define(m.Let[i].Name)
	}
	for i := range c.spec.Let {
		defineUnlessOutput(c.spec.Let[i].Name)
	}
}

// resolveSharedLet checks the definitions that losses and weights.update share. Inherited ones
// that nothing uses any more are dropped: they may be of a model that was replaced.
func (c *checker) resolveSharedLet(sc *scope) {
	used := map[string]bool{}
	use := func(eq *Equation) {
		if eq.Expr != nil {
			eq.names(func(x *ast.Ident) { used[x.Name] = true })
		}
	}
	for i := range c.spec.Loss {
		use(&c.spec.Loss[i].Equation)
	}
	if c.spec.Weights.Update != nil {
		use(c.spec.Weights.Update)
	}
	for i := range slices.Backward(c.spec.Let) {
		if eq := &c.spec.Let[i]; used[eq.Name.V] || !c.Inherited(eq.Name.Pos) {
			use(eq)
			used[eq.Name.V] = true
		}
	}
	c.spec.Let = slices.DeleteFunc(c.spec.Let, func(eq Equation) bool { return !used[eq.Name.V] })
	c.sortLet(c.spec.Let)
	c.resolveLet(c.spec.Let, sc)
}

// resolveLet checks the names in definitions, each of which may use the earlier ones.
func (c *checker) resolveLet(list []Equation, sc *scope) {
	for _, eq := range list {
		sc.later[eq.Name.V] = eq.Name.Pos
	}
	for i := range list {
		eq := &list[i]
		c.resolveNames(eq, sc, eq.Name.V)
		delete(sc.later, eq.Name.V)
		sc.known.add(eq.Name.V)
	}
}

// resolveNames reports names in eq that are not defined, and records the others as used by user, see
// scope.
func (c *checker) resolveNames(eq *Equation, sc *scope, user string) {
	if eq.Expr == nil || c.full() {
		return // reported when it was read
	}
	eq.names(func(x *ast.Ident) {
		sc.uses[user] = append(sc.uses[user], x.Name)
		if sc.known.has[x.Name] {
			return
		}
		if d := c.unknownName(eq, sc, x); !slices.ContainsFunc(c.faults, func(f diag.Diagnostic) bool {
			return f.Pos == d.Pos && f.Text == d.Text
		}) {
			c.faults.Add(d)
		}
	})
	c.resolveCalls(eq, sc, user)
}

func (c *checker) unknownName(eq *Equation, sc *scope, x *ast.Ident) diag.Diagnostic {
	d := eq.errorAt(x, "%s is not defined", x.Name)
	_, later := sc.later[x.Name]
	switch fn := schema.Find(Functions, x.Name); {
	case x.Name == eq.Name.V && later:
		d.Text = fmt.Sprintf("the definition of %s refers to itself", x.Name)
	case fn != nil:
		d.Text = fmt.Sprintf("%s is a function and needs arguments", x.Name)
		d = d.WithNote("%s", fn.Signature())
	case sc.functions[x.Name] != nil:
		d.Text = fmt.Sprintf("%s is a function and needs arguments", x.Name)
	case sc.function && (c.letNamed(x.Name) != nil || slices.Contains(c.resultNames(), x.Name)):
		d.Text = fmt.Sprintf("%s is not defined in a function", x.Name)
		d = d.WithNote("pass it as an argument")
	case sc.inside && slices.Contains(schema.Words(lossOnlyNames), x.Name):
		d.Text = fmt.Sprintf("%s is known only in losses and weights.update", x.Name)
		d = d.WithNote("a prediction has no candidates")
	case slices.Contains(schema.Words(lossOnlyNames), x.Name):
		d = c.needsWeights(eq, d, x.Name).WithNote("write a loss of S, the true labels [B, k], such as loss: [%s]",
			classTerm(true))
	default:
		d = d.SuggestOr(Dialect.Suggest(x.Name, sc.known.list), "known here: %s", diag.Words(sc.known.list))
	}
	return d
}
