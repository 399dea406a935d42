// The loop over the batches of an epoch.

package xla

import (
	"maps"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/internal/ndarray"
)

// Inputs of the programs over many steps, Epoch and Forward, in addition to those of the graphs.
const (
	InLimit      = "limit"      // int32 []: number of steps to run
	InOrder      = "order"      // int32 [Steps, Trials, Batch]: bags of each step, -1 for none, all -1 at the end
	InRows       = "rows"       // float32 [Rows, ...]: the raw instances of the dataset
	InStarts     = "starts"     // int32 [Bags]: first instance of each bag
	InSizes      = "sizes"      // int32 [Bags]: instances of each bag
	InSets       = "sets"       // float32 [Trials, Bags, k]: candidate labels
	InOldWeights = "oldweights" // float32 [Trials, Bags, k]: label weights before the epoch
	InMean       = "mean"       // float32 [Trials, ...]: statistics of the features
	InStd        = "std"
	InMask       = "mask."  // uint8 [Steps, Trials, N, ...] and the name of the mask: 1 where an element is kept
	InScale      = "scale." // float32 [Trials, 1] and the name of the mask: the value of kept elements
)

// OutTrace is the output that each step writes to, float32 [Steps, Trials, Width]; see Epoch and
// Forward.
const OutTrace = "trace"

// Layout has the sizes of a program over many steps.
type Layout struct {
	Trials int // runs that train at once
	Steps  int // steps of one call, at most
	Batch  int // bags of a step, at most
	N      int // instances of a step, at most
	Bags   int // bags of the dataset
	Rows   int // instances of the dataset
}

func (l Layout) capacity() Capacity { return Capacity{N: l.N, B: l.Batch, Trials: l.Trials} }

// scan builds a While program over steps. Operations of the body cannot use values of the
// surrounding function, so everything they need is part of the state of the loop. XLA does not copy
// state that does not change.
type scan struct {
	*writer
	layout Layout
	states []Port
	first  []tensor
}

func newScan(backend compute.Backend, name string, l Layout) *scan {
	s := &scan{writer: newWriter(backend, name), layout: l}
	s.state(InLimit, shapes.Make(dtypes.Int32))
	s.state(InOrder, ints(l.Steps, l.Trials, l.Batch))
	return s
}

// state adds an input that is part of the state of the loop.
func (s *scan) state(name string, shape shapes.Shape) {
	s.begin(Port{name, shape}, s.input(name, shape))
}

// trace adds the state to which each step writes one row: [Steps, Trials*width].
func (s *scan) trace(width int) {
	shape := floats(s.layout.Steps, s.layout.Trials*width)
	s.begin(Port{OutTrace, shape}, s.zeros(shape.DType, shape.Dimensions))
}

func (s *scan) begin(p Port, first tensor) {
	s.states, s.first = append(s.states, p), append(s.first, first)
}

// data adds the inputs for the dataset.
func (s *scan) data(p *compile.Program) {
	l, instance := s.layout, p.Signature.Instance
	s.state(InRows, floats(append([]int{l.Rows}, instance...)...))
	s.state(InStarts, ints(l.Bags))
	s.state(InSizes, ints(l.Bags))
	if p.Normalize {
		s.state(InMean, floats(append([]int{l.Trials}, instance...)...))
		s.state(InStd, floats(append([]int{l.Trials}, instance...)...))
	}
}

// body computes one step, given its number and the state by name. It returns the state that
// changes.
type body func(e *emitter, step tensor, in map[string]tensor) (changed map[string]tensor)

// loop runs the body limit times and returns the states named by outputs.
func (s *scan) loop(b body, outputs ...string) *Executable {
	named := func(in []tensor) map[string]tensor {
		byName := map[string]tensor{}
		for i, port := range s.states {
			byName[port.Name] = in[1+i]
		}
		return byName
	}
	limit := func(_ *emitter, in []tensor) tensor { return named(in)[InLimit] }
	last := named(s.while("state", append([]tensor{s.number(0)}, s.first...), limit,
		func(e *emitter, in []tensor) []tensor {
			state, next := named(in), slices.Clone(in)
			maps.Copy(state, b(e, in[0], state))
			for i, port := range s.states {
				next[1+i] = state[port.Name]
			}
			return next
		}))
	for _, name := range outputs {
		out := last[name]
		if name == OutTrace {
			out = s.reshape(out, s.layout.Steps, s.layout.Trials, out.dims[1]/s.layout.Trials)
		}
		s.output(name, out)
	}
	return s.compile()
}

// batch has the bags of one step, gathered from the dataset.
type batch struct {
	bag       tensor // int32 [Trials, Batch], 0 for none
	real      tensor // bool [Trials, Batch]
	active    tensor // bool [Trials]: the trial has a bag in this step
	bagOf     tensor // int32 [Trials, N]
	instances tensor // float32 [Trials, N, ...], raw; padding repeats the trial's first instance
}

// step returns row i of a value [Steps, ...].
func (e *emitter) step(x, i tensor) tensor {
	rest := x.dims[1:]
	return e.reshape(e.rows(e.reshape(x, x.dims[0], ndarray.Size(rest)), e.reshape(i, 1)), rest...)
}

// batch lays out the bags of a step in the given order, each with its instances in order.
func (e *emitter) batch(l Layout, step tensor, in map[string]tensor) batch {
	order := e.step(in[InOrder], step)
	zero := e.number(0)
	b := batch{real: e.binary(compute.Function.GreaterOrEqual, order, zero), bag: e.max(order, zero)}
	b.active = e.reduce(compute.Function.ReduceLogicalOr, b.real, 1)
	ofBags := func(x tensor) tensor {
		all := e.rows(e.reshape(x, l.Bags, 1), e.reshape(b.bag, l.Trials*l.Batch))
		return e.reshape(all, l.Trials, l.Batch)
	}
	size := e.where(b.real, ofBags(in[InSizes]), zero)
	upTo := e.binary(compute.Function.LessOrEqual, e.iota(2, 1, l.Batch, l.Batch), e.iota(1, 1, l.Batch, l.Batch))
	end := e.reduce(compute.Function.ReduceSum, e.where(upTo, e.reshape(size, l.Trials, 1, l.Batch), zero), 2)
	shift := e.add(e.sub(ofBags(in[InStarts]), end), size)

	place := e.iota(2, 1, 1, l.N)
	passed := e.binary(compute.Function.LessOrEqual, e.reshape(end, l.Trials, l.Batch, 1), place)
	slot := e.reduce(compute.Function.ReduceSum, e.convert(passed, dtypes.Int32), 1) // [Trials, N]
	inside := e.less(slot, e.number(l.Batch))
	b.bagOf = e.where(inside, slot, e.number(-1))
	own := e.equal(e.reshape(slot, l.Trials, 1, l.N), e.iota(1, 1, l.Batch, 1))
	moved := e.reduce(compute.Function.ReduceSum, e.where(own, e.reshape(shift, l.Trials, l.Batch, 1), zero), 1)
	first := e.slice(shift, 1, 0, 1, 1)
	row := e.where(inside, e.add(moved, e.iota(1, 1, l.N)), first)
	x := e.rows(in[InRows], e.reshape(row, l.Trials*l.N))
	b.instances = e.reshape(x, append([]int{l.Trials, l.N}, x.dims[1:]...)...)
	return b
}

// perBag gathers the rows of the step's bags from a value [Trials, Bags, k].
func (e *emitter) perBag(l Layout, b batch, x tensor) tensor {
	k := x.dims[2]
	at := e.add(b.bag, e.mul(e.iota(0, l.Trials, 1), e.number(l.Bags)))
	all := e.rows(e.reshape(x, l.Trials*l.Bags, k), e.reshape(at, l.Trials*l.Batch))
	return e.reshape(all, l.Trials, l.Batch, k)
}

// normalized returns the z-scores of instances, with the statistics of their trial.
func (e *emitter) normalized(x tensor, in map[string]tensor) tensor {
	mean, ok := in[InMean]
	if !ok {
		return x
	}
	dims := append([]int{mean.dims[0], 1}, mean.dims[1:]...)
	return e.div(e.sub(x, e.reshape(mean, dims...)), e.reshape(in[InStd], dims...))
}

// record writes parts [Trials, ...] of a step to its row of the trace, which is zero before. Rows of
// trials without a bag in the step stay zero.
func (e *emitter) record(trace, step tensor, active tensor, parts ...tensor) tensor {
	trials := active.dims[0]
	for i, p := range parts {
		p.trialAxes = 0
		parts[i] = e.reshape(p, trials, ndarray.Size(p.dims)/trials)
	}
	row := e.where(e.reshape(active, trials, 1), e.concat(1, parts...), e.scalar(0))
	return e.place(trace, step, e.reshape(row, 1, trace.dims[1]))
}

// place writes a row into a matrix that has zeros there.
func (e *emitter) place(trace, step, row tensor) tensor {
	// XLA updates a slice in place. It would copy the whole matrix for a scatter or a later reshape.
	next, err := e.f.DynamicUpdateSlice(trace.v, row.v, []compute.Value{step.v, e.number(0).v})
	if compute.IsNotImplemented(err) { // on the pure Go executor
		next, err = e.f.ScatterSum(trace.v, e.reshape(step, 1, 1).v, row.v, 1, []int{1}, []int{0}, []int{0}, true, true)
	}
	return e.must(0)(next, err)
}

// trials marks a value as having the trial axis.
func trials(t tensor) tensor { t.trialAxes = 1; return t }
