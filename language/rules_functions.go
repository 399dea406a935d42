// Rules of functions that a spec defines.

package language

import (
	"fmt"
	"go/ast"
	"maps"
	"slices"

	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/language/schema"
)

// resolveFunctions checks the functions of the spec. Each may use the settings and parameters in sc,
// its arguments and definitions, and earlier functions.
func (c *checker) resolveFunctions(sc *scope) {
	sc.functions = map[string]*UserFunction{}
	var settings vocabulary // all but the results of blocks, which a call passes as arguments
	results := c.resultNames()
	for _, name := range sc.known.list {
		if !slices.Contains(results, name) {
			settings.add(name)
		}
	}
	for i := range c.spec.Model.Functions {
		f := &c.spec.Model.Functions[i]
		if len(f.Args) > 0 { // else reported when it was read
			c.resolveFunction(f, sc, &settings)
		}
		sc.functions[f.Name.V] = f // now, because it cannot call itself
	}
}

// resolveFunction checks one function. It may use settings, its arguments and definitions, and
// the functions in sc.
func (c *checker) resolveFunction(f *UserFunction, sc *scope, settings *vocabulary) {
	c.checkArguments(f)
	inner := scope{later: map[string]diag.Pos{}, uses: map[string][]string{}, functions: sc.functions, inside: true,
		function: true}
	inner.known.add(settings.list...)
	var own vocabulary
	for _, a := range f.Args {
		own.add(a.V)
	}
	inner.known.add(own.list...)
	c.resolveLet(f.Let, &inner)
	for j := range f.Let {
		own.add(f.Let[j].Name.V)
	}
	if f.Value != nil {
		c.resolveNames(f.Value, &inner, "")
	}
	for _, name := range slices.Sorted(maps.Keys(inner.used())) {
		if !own.has[name] {
			sc.uses[f.Name.V] = append(sc.uses[f.Name.V], name)
		}
	}
}

// has reports whether eq is an equation of the function.
func (f *UserFunction) has(eq *Equation) bool {
	for i := range f.Let {
		if eq == &f.Let[i] {
			return true
		}
	}
	return eq == f.Value
}

// checkArguments checks the names of the arguments and definitions of a function.
func (c *checker) checkArguments(f *UserFunction) {
	first := map[string]diag.Pos{}
	define := func(name schema.Str) {
		if pos, ok := first[name.V]; ok {
			note(c.add(name.Pos, "%s is defined already in the function %s", name.V, f.Name.V), "at %s", pos)
		}
		first[name.V] = name.Pos
	}
	for _, a := range f.Args {
		if text, why := refusedName(a.V, "an argument"); text != "" {
			note(c.add(a.Pos, "%s", text), "%s", why)
		}
		define(a)
	}
	for i := range f.Let {
		define(f.Let[i].Name)
	}
}

// resolveCalls checks the calls of functions of the spec. After an error it removes eq.Expr, as if the
// equation could not be parsed, see Draft.
func (c *checker) resolveCalls(eq *Equation, sc *scope, user string) {
	faulty := false
	eq.calls(func(call *ast.CallExpr, name string) {
		f := sc.functions[name]
		switch {
		case f == nil:
			c.faults.Add(c.unknownFunction(eq, sc, call, name))
			faulty = true
		case len(f.Args) == 0: // reported when it was read
			faulty = true
		case len(f.Args) != len(call.Args):
			c.faults.Add(eq.errorAt(call, "%s takes %s, not %d", name, diag.Count(len(f.Args), "argument"),
				len(call.Args)).
				WithNote("it is defined at %s", f.Name.Pos))
			faulty = true
		default:
			sc.uses[user] = append(sc.uses[user], name)
		}
	})
	if faulty {
		eq.Expr = nil
	}
}

func (c *checker) unknownFunction(eq *Equation, sc *scope, call *ast.CallExpr, name string) diag.Diagnostic {
	d := eq.errorAt(call.Fun, "there is no function %s", name)
	known := schema.Words(Functions)
	for i := range c.spec.Model.Functions {
		f := &c.spec.Model.Functions[i]
		if f.Name.V == name && f.has(eq) {
			d.Text = fmt.Sprintf("the function %s calls itself", name)
			return d
		}
		if f.Name.V == name {
			d.Text = fmt.Sprintf("the function %s is called before it is defined", name)
			return d.WithNote("a function may call the functions before it; %s is defined at %s", name, f.Name.Pos)
		}
		if sc.functions[f.Name.V] != nil {
			known = append(known, f.Name.V)
		}
	}
	return d.SuggestOr(Dialect.Suggest(name, known), "to multiply, write *")
}

// dropUnusedFunctions drops functions that no other equation calls, and everything that only they use.
// It reports those that are not inherited.
func (c *checker) dropUnusedFunctions(sc *scope) {
	m := &c.spec.Model
	called := map[string]bool{}
	for user, names := range sc.uses {
		if sc.functions[user] == nil {
			for _, name := range names {
				called[name] = true
			}
		}
	}
	for i := range slices.Backward(m.Functions) { // later ones call earlier ones
		f := &m.Functions[i]
		if !called[f.Name.V] {
			if !c.Inherited(f.Name.Pos) {
				c.add(f.Name.Pos, "the function %s is never called", f.Name.V)
			}
			delete(sc.uses, f.Name.V)
			continue
		}
		for _, name := range sc.uses[f.Name.V] {
			called[name] = true
		}
	}
	m.Functions = slices.DeleteFunc(m.Functions, func(f UserFunction) bool { return !called[f.Name.V] })
}
