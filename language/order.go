// The order of definitions: those that others use come first, however the files of a spec list them.

package language

import (
	"go/ast"
	"slices"
	"strings"
)

// sortLet puts each definition after those that it uses and otherwise keeps the order, so that a spec may define in a
// new equation what an inherited one uses. It reports definitions that use each other, and returns whether there are
// none.
func (c *checker) sortLet(list []Equation) bool {
	index, state := map[string]int{}, make([]int, len(list)) // 1: being visited, 2: placed
	for i := range list {
		index[list[i].Name.V] = i
	}
	var sorted []Equation
	var way []string
	var visit func(i int) bool
	visit = func(i int) bool {
		eq := &list[i]
		if state[i] == 2 || eq.Expr == nil {
			state[i] = 2
			return true
		}
		if way = append(way, eq.Name.V); state[i] == 1 {
			circle := way[slices.Index(way, eq.Name.V):]
			note(c.add(eq.Name.Pos, "the definition of %s depends on itself", eq.Name.V), "%s", strings.Join(circle, " uses "))
			return false
		}
		state[i] = 1
		ok := true
		eq.names(func(x *ast.Ident) {
			if j, defined := index[x.Name]; ok && defined && j != i { // a definition that names itself is reported with its name
				ok = visit(j)
			}
		})
		state[i], way = 2, way[:len(way)-1]
		sorted = append(sorted, *eq)
		return ok
	}
	for i := range list {
		if state[i] == 0 && !visit(i) {
			return false
		}
	}
	if len(sorted) == len(list) {
		copy(list, sorted)
	}
	return true
}
