// Calls of functions that a spec defines, as copies of their bodies.

package compile

import (
	"errors"
	"fmt"
	"go/ast"

	"github.com/miplc/miplc/compile/graph"
	"github.com/miplc/miplc/internal/diag"
)

// inline lowers a call of a function of the spec: its equations, with the values of the
// call in place of the arguments. An error is reported at its place in the function,
// once for all calls, with the place of the call.
func (e *expression) inline(x *ast.CallExpr, args []*graph.Node) (*graph.Node, error) {
	name := x.Fun.(*ast.Ident).Name
	f := e.functions[name]
	e.inlined++
	if f == nil || f.Value == nil || e.failedFunctions[name] || e.oversize(e.place(x)) {
		return nil, errPoisoned
	}
	inner := &expression{lowerer: e.lowerer, locals: map[string]*graph.Node{}, path: fmt.Sprintf("%s%p ", e.path, x)}
	for i, a := range f.Args {
		inner.locals[a.V] = args[i]
	}
	for i := range f.Let {
		inner.eq = &f.Let[i]
		n, err := inner.body()
		if err != nil {
			return nil, e.failedCall(x, err)
		}
		inner.locals[inner.eq.Name.V] = n
	}
	inner.eq = f.Value
	n, err := inner.body()
	if err != nil {
		return nil, e.failedCall(x, err)
	}
	return n, nil
}

// body lowers one equation of a function.
func (e *expression) body() (*graph.Node, error) {
	if e.eq.Expr == nil {
		return nil, errPoisoned
	}
	return e.node(e.eq.Expr)
}

// failedCall adds the position of a call to the errors of a function.
func (e *expression) failedCall(x *ast.CallExpr, err error) error {
	if errors.Is(err, errPoisoned) {
		return err
	}
	name := x.Fun.(*ast.Ident).Name
	e.failedFunctions[name] = true
	var list diag.List
	list.AddError(e.place(x), err)
	for i := range list {
		list[i] = list[i].WithNote("%s is called at %s", name, e.place(x))
	}
	return list
}
