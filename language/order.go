// The order of definitions: those that others use come first, however the files of a spec list them.

package language

import (
	"go/ast"
	"slices"
	"strings"
)

// sortLet puts each definition after those that it uses and otherwise keeps the order, so that a spec may define in a
// new equation what an inherited one uses. It reports each circle of definitions that use each other, and removes their
// expressions, as if these could not be parsed, so that no error follows from them.
func (c *checker) sortLet(list []Equation) {
	index, state := map[string]int{}, make([]int, len(list)) // 1: being visited, 2: placed
	for i := range list {
		index[list[i].Name.V] = i
	}
	var sorted []Equation
	var way []string
	var visit func(i int)
	visit = func(i int) {
		eq := &list[i]
		switch state[i] {
		case 2:
			return
		case 1:
			circle := append(slices.Clone(way[slices.Index(way, eq.Name.V):]), eq.Name.V)
			note(c.add(eq.Name.Pos, "the definition of %s depends on itself", eq.Name.V), "%s", strings.Join(circle, " uses "))
			for _, name := range circle {
				list[index[name]].Expr = nil
			}
			return
		}
		if state[i], way = 1, append(way, eq.Name.V); eq.Expr != nil {
			eq.names(func(x *ast.Ident) {
				if j, defined := index[x.Name]; defined && j != i { // a definition that names itself is reported with its name
					visit(j)
				}
			})
		}
		state[i], way = 2, way[:len(way)-1]
		sorted = append(sorted, *eq)
	}
	for i := range list {
		visit(i)
	}
	copy(list, sorted)
}
