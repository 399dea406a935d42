// Writing of operations with the axis of trials.

package xla

import (
	"fmt"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"

	"github.com/miplc/miplc/graph"
)

// tensor is a value of a program with the sizes of its axes. trialAxes is the number of leading trial axes
// in dims, 0 or 1; the axes of the graph follow.
type tensor struct {
	v         compute.Value
	dims      []int
	trialAxes int
}

// inner returns the sizes of the axes of the graph.
func (t tensor) inner() []int { return t.dims[t.trialAxes:] }

// outer returns the size of the trial axis, or nothing.
func (t tensor) outer() []int { return t.dims[:t.trialAxes] }

// emitter writes operations into a function. Its methods report errors by target.Fail.
type emitter struct{ f compute.Function }

// tensor wraps a value of the builder.
func (e *emitter) tensor(v compute.Value, trialAxes int) tensor {
	s := graph.Must(e.f.Shape(v))
	return tensor{v, slices.Clone(s.Dimensions), trialAxes}
}

// must wraps the result of one call of the builder, or fails.
func (e *emitter) must(trialAxes int) func(v compute.Value, err error) tensor {
	return func(v compute.Value, err error) tensor {
		return e.tensor(graph.Must(v, err), trialAxes)
	}
}

func (e *emitter) constant(flat any, dims ...int) tensor {
	return e.must(0)(e.f.Constant(flat, dims...))
}

func (e *emitter) scalar(v float64) tensor { return e.constant([]float32{float32(v)}) }
func (e *emitter) number(v int) tensor     { return e.constant([]int32{int32(v)}) }

// zeros returns zeros of the given shape.
func (e *emitter) zeros(t dtypes.DType, dims []int) tensor {
	zero := e.scalar(0)
	if t != dtypes.Float32 {
		zero = e.convert(zero, t)
	}
	return e.broadcast(zero, dims, nil)
}

func (e *emitter) dtype(t tensor) dtypes.DType {
	return graph.Must(e.f.Shape(t.v)).DType
}

// iota returns 0, 1, ... along an axis, int32.
func (e *emitter) iota(axis int, dims ...int) tensor {
	return e.must(0)(e.f.Iota(ints(dims...), axis))
}

func (e *emitter) convert(x tensor, t dtypes.DType) tensor {
	return e.must(x.trialAxes)(e.f.ConvertDType(x.v, t))
}

// reshape changes the inner axes.
func (e *emitter) reshape(x tensor, inner ...int) tensor {
	dims := slices.Concat(x.outer(), inner)
	if slices.Equal(dims, x.dims) {
		return x
	}
	return e.must(x.trialAxes)(e.f.Reshape(x.v, dims...))
}

// broadcast repeats x to the inner sizes, aligned at the right. outer is the trial axis to add or
// keep, nil for none.
func (e *emitter) broadcast(x tensor, inner, outer []int) tensor {
	if x.trialAxes > len(outer) {
		outer = x.outer()
	}
	dims := slices.Concat(outer, inner)
	if slices.Equal(dims, x.dims) {
		return x
	}
	// Axes to be repeated are dropped first, because the pure Go executor mishandles a broadcast
	// that keeps the rank inside a loop.
	var axes, kept []int
	for i, d := range x.dims {
		at := i
		if i >= x.trialAxes {
			at = len(dims) - len(x.dims) + i
		}
		if d == dims[at] && d != 1 {
			axes, kept = append(axes, at), append(kept, d)
		}
	}
	if len(kept) != len(x.dims) {
		x = e.must(0)(e.f.Reshape(x.v, kept...))
	}
	return e.must(len(outer))(e.f.BroadcastInDim(x.v, shapes.Make(e.dtype(x), dims...), axes))
}

// align gives the operands of an element-wise operation the same rank by adding axes of size 1 in
// front of the inner axes, so that the builder can broadcast them.
func (e *emitter) align(x ...tensor) ([]tensor, int) {
	trialAxes, rank := 0, 0
	for _, t := range x {
		trialAxes, rank = max(trialAxes, t.trialAxes), max(rank, len(t.inner()))
	}
	out := make([]tensor, len(x))
	for i, t := range x {
		out[i] = t
		if len(t.dims) == 0 || len(t.dims) == trialAxes+rank {
			continue // the builder broadcasts scalars itself
		}
		front := ones(trialAxes + rank - len(t.dims))
		out[i] = e.must(trialAxes)(e.f.Reshape(t.v, slices.Concat(t.outer(), front, t.inner())...))
	}
	return out, trialAxes
}

// level adds the trial axis to all tensors if one of them has it.
func (e *emitter) level(x ...tensor) []tensor {
	var outer []int
	for _, t := range x {
		if t.trialAxes == 1 {
			outer = t.outer()
		}
	}
	out := make([]tensor, len(x))
	for i, t := range x {
		out[i] = e.broadcast(t, t.inner(), outer)
	}
	return out
}

type (
	unaryFunc  = func(compute.Function, compute.Value) (compute.Value, error)
	binaryFunc = func(compute.Function, compute.Value, compute.Value) (compute.Value, error)
)

func (e *emitter) unary(f unaryFunc, x tensor) tensor { return e.must(x.trialAxes)(f(e.f, x.v)) }

func (e *emitter) binary(f binaryFunc, x, y tensor) tensor {
	in, trialAxes := e.align(x, y)
	return e.must(trialAxes)(f(e.f, in[0].v, in[1].v))
}

func (e *emitter) add(x, y tensor) tensor { return e.binary(compute.Function.Add, x, y) }
func (e *emitter) sub(x, y tensor) tensor { return e.binary(compute.Function.Sub, x, y) }
func (e *emitter) mul(x, y tensor) tensor { return e.binary(compute.Function.Mul, x, y) }
func (e *emitter) div(x, y tensor) tensor { return e.binary(compute.Function.Div, x, y) }
func (e *emitter) max(x, y tensor) tensor { return e.binary(compute.Function.Max, x, y) }
func (e *emitter) equal(x, y tensor) tensor {
	return e.binary(compute.Function.Equal, x, y)
}
func (e *emitter) less(x, y tensor) tensor { return e.binary(compute.Function.LessThan, x, y) }
func (e *emitter) and(x, y tensor) tensor  { return e.binary(compute.Function.LogicalAnd, x, y) }
func (e *emitter) exp(x tensor) tensor     { return e.unary(compute.Function.Exp, x) }

// where selects elements of x or y by a condition. All three are broadcast to one shape.
func (e *emitter) where(condition, x, y tensor) tensor {
	rank, outer := 0, []int(nil)
	for _, t := range []tensor{condition, x, y} {
		rank = max(rank, len(t.inner()))
		if t.trialAxes == 1 {
			outer = t.outer()
		}
	}
	inner := ones(rank)
	for _, t := range []tensor{condition, x, y} {
		shift := rank - len(t.inner())
		for i, d := range t.inner() {
			inner[shift+i] = max(inner[shift+i], d)
		}
	}
	c, x, y := e.broadcast(condition, inner, outer), e.broadcast(x, inner, outer), e.broadcast(y, inner, outer)
	return e.must(len(outer))(e.f.Where(c.v, x.v, y.v))
}

type reduceFunc = func(compute.Function, compute.Value, ...int) (compute.Value, error)

// reduce combines the values along inner axes and drops these axes.
func (e *emitter) reduce(f reduceFunc, x tensor, axes ...int) tensor {
	if len(axes) == 0 {
		return x
	}
	at := make([]int, len(axes))
	for i, a := range axes {
		at[i] = a + x.trialAxes
	}
	return e.must(x.trialAxes)(f(e.f, x.v, at...))
}

// kept combines the values along an inner axis, which keeps the size 1.
func (e *emitter) kept(f reduceFunc, x tensor, axis int) tensor {
	dims := slices.Clone(x.inner())
	dims[axis] = 1
	return e.reshape(e.reduce(f, x, axis), dims...)
}

// argMax reduces one axis to the index, int32, of its first maximum. Masks of maxima are made from
// it, because XLA may compute a value again in each place that uses it and round it differently
// there, so that no value equals the maximum.
func argMax(f compute.Function, x compute.Value, axes ...int) (compute.Value, error) {
	if len(axes) != 1 {
		return nil, fmt.Errorf("bug: the index of a maximum along %d axes", len(axes))
	}
	return f.ArgMinMax(x, axes[0], dtypes.Int32, false)
}

// transpose permutes the inner axes.
func (e *emitter) transpose(x tensor, perm ...int) tensor {
	full := make([]int, 0, len(x.dims))
	for i := range x.trialAxes {
		full = append(full, i)
	}
	for _, p := range perm {
		full = append(full, p+x.trialAxes)
	}
	return e.must(x.trialAxes)(e.f.Transpose(x.v, full...))
}

// slice returns every step-th element from start to end of an inner axis.
func (e *emitter) slice(x tensor, axis, start, end, step int) tensor {
	starts, steps, limits := make([]int, len(x.dims)), ones(len(x.dims)), slices.Clone(x.dims)
	at := axis + x.trialAxes
	starts[at], limits[at], steps[at] = start, end, step
	return e.must(x.trialAxes)(e.f.Slice(x.v, starts, limits, steps))
}

// pad adds zeros around inner axes and between their elements.
func (e *emitter) pad(x tensor, axes ...compute.PadAxis) tensor {
	all := append(make([]compute.PadAxis, x.trialAxes), axes...)
	zero := e.scalar(0)
	return e.must(x.trialAxes)(e.f.Pad(x.v, zero.v, all...))
}

func (e *emitter) concat(axis int, x ...tensor) tensor {
	x = e.level(x...)
	if len(x) == 1 {
		return x[0]
	}
	return e.must(x[0].trialAxes)(e.f.Concatenate(axis+x[0].trialAxes, values(x)...))
}

// dot multiplies x and y and sums over one inner axis of each. The result has the remaining axes of
// x, then those of y.
func (e *emitter) dot(x tensor, xAxis int, y tensor, yAxis int) tensor {
	if x.trialAxes == 0 && y.trialAxes == 1 {
		x = e.broadcast(x, x.inner(), y.outer())
	}
	if x.trialAxes == 1 && y.trialAxes == 1 {
		batch := []int{0}
		return e.must(1)(e.f.DotGeneral(x.v, []int{xAxis + 1}, batch, y.v, []int{yAxis + 1}, batch,
			compute.DotGeneralConfig{}))
	}
	return e.must(x.trialAxes)(e.f.DotGeneral(x.v, []int{xAxis + x.trialAxes}, nil, y.v, []int{yAxis}, nil,
		compute.DotGeneralConfig{}))
}

// rows gathers rows of x [r, ...] by indices [n], int32, to [n, ...]. Neither has a trial axis. An
// index out of range selects the nearest row.
func (e *emitter) rows(x, index tensor) tensor {
	n, sizes := index.dims[0], slices.Clone(x.dims)
	sizes[0] = 1
	window := make([]int, len(x.dims)-1)
	for i := range window {
		window[i] = i + 1
	}
	column := e.reshape(index, n, 1)
	return e.must(0)(e.f.Gather(x.v, column.v, 1, window, []int{0}, []int{0}, sizes, false))
}

// while repeats the body as long as state 0, which it counts up, is below the limit. Values of the
// parameters of the two functions are named after name.
func (e *emitter) while(name string, state []tensor, limit func(e *emitter, in []tensor) tensor, body func(e *emitter,
	in []tensor) (next []tensor)) []tensor {
	begin := func() (*emitter, []tensor) {
		inner, in := &emitter{f: graph.Must(e.f.Closure())}, make([]tensor, len(state))
		for i, s := range state {
			of := shapes.Make(e.dtype(s), s.dims...)
			in[i] = inner.must(s.trialAxes)(inner.f.Parameter(fmt.Sprintf("%s_%d", name, i), of, nil))
		}
		return inner, in
	}
	cond, in := begin()
	graph.Check(cond.f.Return([]compute.Value{cond.less(in[0], limit(cond, in)).v}, nil))
	step, in := begin()
	next := body(step, in)
	next[0] = step.add(in[0], step.number(1))
	graph.Check(step.f.Return(values(next), nil))
	results := graph.Must(e.f.While(cond.f, step.f, values(state)...))
	out := make([]tensor, len(state))
	for i, s := range state {
		out[i] = e.tensor(results[i], s.trialAxes)
	}
	return out
}

func values(list []tensor) []compute.Value {
	out := make([]compute.Value, len(list))
	for i, t := range list {
		out[i] = t.v
	}
	return out
}
