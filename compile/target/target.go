// Package target is what the lowerings to all targets have in common: a table with
// one function per op of the IR, all of one signature, and one way to fail.
package target

import (
	"fmt"

	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/diag"
)

// Func writes one node into a program under construction, l, and returns its
// value there; in holds the values of its inputs. It fails by Fail.
type Func[L, V any] func(l L, n *graph.Node, in []V) V

// Table has one row per op.
type Table[L, V any] map[graph.Op]Func[L, V]

// Lower writes the node n of a graph. A failure gets its op and its place in the spec.
func (t Table[L, V]) Lower(l L, n *graph.Node, in []V) V {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case failure:
			panic(failure{at{diag.Errorf(n.Pos, "%v: %v", n.Op, r.err), r.err}})
		default:
			panic(r)
		}
	}()
	lower := t[n.Op]
	if lower == nil {
		Fail("there is no lowering of it")
	}
	return lower(l, n, in)
}

// at is an error in the lowering of a node.
type at struct {
	diag.Diagnostic
	err error
}

func (e at) Unwrap() []error { return []error{e.Diagnostic, e.err} }

// failure is what Fail and Check panic with.
type failure struct{ err error }

// Fail ends the lowering with an error. Lowerings nest deep and any step can
// fail, so errors are not handed up by hand: the exported functions of a target
// turn a failure into their error with Catch.
func Fail(format string, args ...any) { panic(failure{fmt.Errorf(format, args...)}) }

// Check fails with err unless it is nil.
func Check(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// Must gives v, or fails with err.
func Must[T any](v T, err error) T {
	Check(err)
	return v
}

// Catch ends an exported function, deferred: a failure becomes its error, and a
// panic of a library below too, as no input may crash a training.
func Catch(err *error, format string, args ...any) {
	switch r := recover().(type) {
	case nil:
	case failure:
		*err = fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), r.err)
	default:
		*err = fmt.Errorf("%s: bug: %v", fmt.Sprintf(format, args...), r)
	}
}
