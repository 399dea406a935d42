// Rules of parameters, sizes and numbers, and what of them is inherited and unused.

package language

import (
	"slices"

	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/language/schema"
)

// resolveParams checks that the sizes of shapes are known, and completes the initialisers.
func (c *checker) resolveParams() {
	m := &c.spec.Model
	var known vocabulary
	known.add(schema.Words(sizeNames)...)
	for _, s := range m.Sizes {
		known.add(s.Name.V)
	}
	checkSize := func(e schema.Str, name string) {
		if e.V == "" || e.V[0] >= '0' && e.V[0] <= '9' || known.has[e.V] || c.full() {
			return
		}
		d := c.add(e.Pos, "the size %s of %s is not known", e.V, name)
		*d = d.SuggestOr(Dialect.Suggest(e.V, known.list), "known: %s; others are named under sizes", diag.Words(known.list))
	}
	for i := range m.Params {
		p := &m.Params[i]
		for _, e := range p.Shape {
			checkSize(e, p.Name.V)
		}
		checkSize(p.FanIn, p.Name.V)
		c.resolveInit(p)
	}
}

// resolveInit checks that scale and fan_in fit the initialiser, and fills in the default fan_in.
func (c *checker) resolveInit(p *Param) {
	scaled := p.Init.V == "normal" || p.Init.V == "uniform" || p.Init.V == "constant"
	switch {
	case scaled && p.Scale.V == 0 && p.Scale.Pos.IsZero():
		c.add(p.Init.Pos, "init %s of %s needs a scale", p.Init.V, p.Name.V)
	case !scaled && c.writtenWith(p.Scale.Pos, p.Init.Pos):
		note(c.add(p.Scale.Pos, "scale has no effect with init %s", p.Init.V), "normal, uniform and constant have a scale")
	}
	if !scaled {
		p.Scale = schema.Float{}
	}
	if p.Init.V != "fan_in" {
		if c.writtenWith(p.FanIn.Pos, p.Init.Pos) {
			c.add(p.FanIn.Pos, "fan_in has no effect with init %s", p.Init.V)
		}
		p.FanIn = schema.Str{}
		return
	}
	if p.FanIn.V == "" {
		p.FanIn.V = "1"
		if len(p.Shape) > 0 {
			p.FanIn.V = p.Shape[0].V
		}
	}
}

func (c *checker) dropUnusedSizes(sc *scope) {
	used := sc.used()
	for i := range c.spec.Model.Params {
		p := &c.spec.Model.Params[i]
		used[p.FanIn.V] = true
		for _, e := range p.Shape {
			used[e.V] = true
		}
	}
	c.spec.Model.Sizes = dropUnused(c, c.spec.Model.Sizes, used, func(name schema.Str) {
		c.add(name.Pos, "the size %s is used by no parameter and no equation", name.V)
	})
}

func (c *checker) dropUnusedNumbers(sc *scope) {
	used := sc.used()
	var others []string
	for _, n := range c.spec.Model.Numbers {
		if used[n.Name.V] {
			others = append(others, n.Name.V)
		}
	}
	c.spec.Model.Numbers = dropUnused(c, c.spec.Model.Numbers, used, func(name schema.Str) {
		c.add(name.Pos, "the number %s is used by no equation", name.V).Suggestion = Dialect.Suggest(name.V, others)
	})
}

// dropUnusedParams reports parameters that nothing trained depends on. Inherited ones are dropped, with the
// equations that use them.
func (c *checker) dropUnusedParams(sc *scope) {
	m := &c.spec.Model
	reached := map[string]bool{}
	var reach func(name string)
	reach = func(name string) {
		if reached[name] {
			return
		}
		reached[name] = true
		for _, n := range sc.uses[name] {
			reach(n)
		}
	}
	for _, n := range []string{m.Attention.V, m.ClassAttention.V, m.Probabilities.V, m.LogProbabilities.V} {
		reach(n)
	}
	for _, n := range sc.uses[""] {
		reach(n)
	}
	userOf := map[string]string{} // the first equation that uses a name
	for i := range m.Let {
		for _, n := range sc.uses[m.Let[i].Name.V] {
			if userOf[n] == "" {
				userOf[n] = m.Let[i].Name.V
			}
		}
	}
	m.Let = slices.DeleteFunc(m.Let, func(eq Equation) bool {
		unused := !reached[eq.Name.V] && c.Inherited(eq.Name.Pos)
		if unused {
			delete(sc.uses, eq.Name.V)
		}
		return unused
	})
	m.Params = slices.DeleteFunc(m.Params, func(p Param) bool { return !reached[p.Name.V] && c.Inherited(p.Name.Pos) })
	for _, p := range m.Params {
		if reached[p.Name.V] {
			continue
		}
		d := c.add(p.Name.Pos, "the parameter %s is never used", p.Name.V)
		if name := userOf[p.Name.V]; name != "" {
			note(d, "%s uses it, but neither outputs nor losses depend on %s", name, name)
		}
	}
}

// dropUnused returns list without its unused settings. It calls report for each of them that is not
// inherited.
func dropUnused[T any](c *checker, list []Setting[T], used map[string]bool, report func(name schema.Str)) []Setting[T] {
	return slices.DeleteFunc(list, func(s Setting[T]) bool {
		if !used[s.Name.V] && !c.Inherited(s.Name.Pos) {
			report(s.Name)
		}
		return !used[s.Name.V]
	})
}
