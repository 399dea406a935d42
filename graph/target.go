// Code shared by the lowerings to all targets: a table with one function per op of the IR, and one way to report
// errors.

package graph

import (
	"errors"
	"fmt"

	"github.com/miplc/miplc/internal/diag"
)

// Func writes one node to the program l under construction and returns its value there. in has the
// values of the node's inputs. It reports errors with Fail.
type Func[L, V any] func(l L, n *Node, in []V) V

// Table has one row per op.
type Table[L, V any] map[Op]Func[L, V]

// Lower writes node n. Errors contain the op and its position in the spec. f may be nil: the target
// has no lowering of the op.
func (f Func[L, V]) Lower(l L, n *Node, in []V) V {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case failure:
			panic(failure{at{diag.Errorf(n.Pos, "%v: %v", n.Op, r.err), r.err}})
		default:
			panic(r)
		}
	}()
	if f == nil {
		NoForm("there is no lowering of it")
	}
	return f(l, n, in)
}

// at is an error in the lowering of a node.
type at struct {
	diag.Diagnostic
	err error
}

func (e at) Unwrap() []error { return []error{e.Diagnostic, e.err} }

// failure is the value with which Fail and Check panic.
type failure struct{ err error }

// Fail ends the lowering with an error. It panics, because lowerings nest deeply and every step can
// fail; the exported functions of a target return the error with Catch.
func Fail(format string, args ...any) { panic(failure{fmt.Errorf(format, args...)}) }

// ErrNoForm is in the chain of errors that mean that a graph has no form in a target, as opposed to
// defects. Callers that can train or run the graph in another way test for it with errors.Is.
var ErrNoForm = errors.New("no form in this target")

// NoForm ends the lowering with an error that has ErrNoForm in its chain.
func NoForm(format string, args ...any) { panic(failure{noForm{fmt.Errorf(format, args...)}}) }

type noForm struct{ error }

func (noForm) Is(err error) bool { return err == ErrNoForm }

// Check fails with err unless it is nil.
func Check(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// Must returns v, or fails with err.
func Must[T any](v T, err error) T {
	Check(err)
	return v
}

// Catch must be deferred in an exported function. It turns a failure into the error of that
// function, and a panic of a library too, because no input may crash a training.
func Catch(err *error, format string, args ...any) {
	switch r := recover().(type) {
	case nil:
	case failure:
		*err = fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), r.err)
	default:
		*err = fmt.Errorf("%s: bug: %v", fmt.Sprintf(format, args...), r)
	}
}
