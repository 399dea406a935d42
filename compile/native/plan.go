// Package native lowers a graph to a plan: a list of calls of CPU kernels with fixed addresses, for one number of
// instances and bags. Running a plan allocates nothing.
package native

import (
	"fmt"
	"runtime/debug"
	"strings"
	"unsafe"

	"github.com/miplc/miplc/compile/native/kernel"
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/resources"
)

// Plan computes the outputs of a graph for fixed numbers of instances and bags. Plans that share a Memory must not run
// at the same time, and each overwrites the outputs of the others.
type Plan struct {
	Instances, Bags int

	calls   []call
	inputs  map[string]*Input
	outputs map[string][]float32
	starts  []int // first instance of each bag, and the number of instances
	scratch int   // size of the arena in elements
}

// call is a kernel with its arguments, a loop in Go, or a chain.
type call struct {
	kernel kernel.Kernel
	run    func(*kernel.Args) // of the kernel
	loop   loop
	chain  *chain
	args   kernel.Args
	op     graph.Op // of the node that the call computes
	// The units are divided among parts threads: rows or columns of a kernel (axis), those of a loop, blocks of a chain.
	units, parts int
	axis         kernel.Split
}

// loop computes the units from number from to before number to. Each worker, counted from 0, has temporary memory of
// its own.
type loop func(worker int, a *kernel.Args, from, to int)

// chain are element-wise calls on equally many elements, which run block by block, so that their values stay in the
// cache.
type chain struct {
	links []link
	block kernel.Args // of the running link
	size  int         // of a block, in elements
}

// link is a call of a chain.
type link struct {
	call
	flat flatness
}

// flatness has a bit for each operand of an element-wise call that has one element per element of the result.
type flatness uint8

const (
	flatDst flatness = 1 << iota
	flatA
	flatB
)

// blockSize is the number of elements of a block of a chain: values that a link writes are in the cache for the next
// one. Four or more operands of chains on longChain elements, which are outside of the second-level cache, fit the
// first one in blocks of longBlockSize.
const (
	blockSize     = 2048
	longChain     = 1 << 16
	longBlockSize = 1024
)

// Run computes the outputs. All inputs must be bound, and SetBags called for plans of several bags.
func (p *Plan) Run() {
	for i := range p.calls {
		switch c := &p.calls[i]; {
		case c.parts > 1:
			c.divide()
		case c.run != nil:
			c.run(&c.args)
		case c.loop != nil:
			c.loop(0, &c.args, 0, c.units)
		default:
			c.chain.compute(&c.chain.block, c.args.N, 0, c.units)
		}
	}
}

// divide computes the parts of a call on as many threads. Parts do not change a bit of the result.
func (c *call) divide() {
	var others resources.Group
	for worker := range c.parts {
		compute := func() { c.part(worker, c.units*worker/c.parts, c.units*(worker+1)/c.parts) }
		if worker < c.parts-1 {
			others.Go(compute)
		} else {
			compute()
		}
	}
	others.Wait()
}

func (c *call) part(worker, from, to int) {
	switch {
	case c.run != nil:
		args := c.kernel.Part(&c.args, c.axis, from, to)
		c.run(&args)
	case c.loop != nil:
		c.loop(worker, &c.args, from, to)
	default:
		c.chain.compute(new(kernel.Args), c.args.N, from, to)
	}
}

// compute runs the calls of a chain on n elements for the blocks from number from to before number to.
func (c *chain) compute(args *kernel.Args, n, from, to int) {
	for at := from * c.size; at < min(n, to*c.size); at += c.size {
		for i := range c.links {
			l := &c.links[i]
			*args = l.args
			args.N = min(c.size, n-at)
			for bit, pointer := range [...]*unsafe.Pointer{&args.Dst, &args.A, &args.B} {
				if l.flat&(1<<bit) != 0 {
					*pointer = unsafe.Add(*pointer, 4*at)
				}
			}
			l.run(args)
		}
	}
}

// Input is an input that the caller binds to memory, and the addresses that depend on it.
type Input struct {
	name   string
	size   int
	bound  *float32
	places []inputPlace
}

// inputPlace is a pointer of a call into an input.
type inputPlace struct {
	pointer *unsafe.Pointer
	at      int // in bytes
}

// Input returns an input of the plan, or nil if the plan's graph does not use it.
func (p *Plan) Input(name string) *Input { return p.inputs[name] }

// Bind sets the memory that the following runs read an input from. The caller must not change it during a run. Bind of
// nil does nothing.
func (in *Input) Bind(values []float32) error {
	if in == nil {
		return nil
	}
	if len(values) != in.size {
		return fmt.Errorf("input %s has %d numbers, the plan needs %d", in.name, len(values), in.size)
	}
	first := unsafe.SliceData(values)
	if in.bound == first {
		return nil
	}
	in.bound = first
	for _, place := range in.places {
		*place.pointer = unsafe.Add(unsafe.Pointer(first), place.at)
	}
	return nil
}

// SetBags sets the bag of each instance, ascending from 0.
func (p *Plan) SetBags(bagOf []int) error {
	if len(bagOf) != p.Instances {
		return fmt.Errorf("%d bag numbers for %d instances", len(bagOf), p.Instances)
	}
	next := 0
	for i, bag := range bagOf {
		if bag < max(0, next-1) || bag >= p.Bags {
			return fmt.Errorf("instance %d of bag %d: bags must ascend from 0 to %d", i, bag, p.Bags-1)
		}
		for ; next <= bag; next++ {
			p.starts[next] = i
		}
	}
	for ; next <= p.Bags; next++ {
		p.starts[next] = p.Instances
	}
	return nil
}

// Output returns the memory of a named output, or nil. It is valid until the next run of a plan with the same Memory.
func (p *Plan) Output(name string) []float32 { return p.outputs[name] }

// Calls returns the number of kernel calls.
func (p *Plan) Calls() int { return len(p.calls) }

// ArenaBytes returns the size of the intermediate values.
func (p *Plan) ArenaBytes() int { return 4 * p.scratch }

// String lists the calls, one per line.
func (p *Plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d instances, %d bags, %d bytes\n", p.Instances, p.Bags, p.ArenaBytes())
	for i := range p.calls {
		c := &p.calls[i]
		c.write(&b, "")
		if c.chain != nil {
			for k := range c.chain.links {
				c.chain.links[k].write(&b, "  ")
			}
		}
	}
	return b.String()
}

func (c *call) write(to *strings.Builder, indent string) {
	name := "loop"
	switch {
	case c.run != nil:
		name = c.kernel.String()
	case c.chain != nil:
		name = "chain"
	}
	fmt.Fprintf(to, "%s%-10s m %d n %d k %d  %v, %d parts\n", indent, name, c.args.M, c.args.N, c.args.K, c.op, c.parts)
}

// Memory is what plans share: values with a name, which keep them between runs, and the arena of intermediate values.
type Memory struct {
	// OnGrow is called before a larger arena replaces the one that earlier plans and their outputs keep alive; may be
	// nil. The caller should drop them.
	OnGrow func()
	named  map[string][]float32
	arena  []float32
}

// NewMemory returns a Memory without values.
func NewMemory() *Memory { return &Memory{named: map[string][]float32{}} }

// Add adds a named value of zeros. Inputs of graphs with this name read it, and an output new_x updates x in place.
func (m *Memory) Add(name string, size int) []float32 {
	m.named[name] = aligned(size)
	return m.named[name]
}

// Value returns the memory of a named value, or nil.
func (m *Memory) Value(name string) []float32 { return m.named[name] }

// reserve returns an arena of at least size elements, or an error if the memory does not suffice. Plans that were made
// before keep the one that they have.
func (m *Memory) reserve(size int) ([]float32, error) {
	const unchecked = 1 << 24 // elements: asking the system takes longer than allocating so few
	if len(m.arena) >= size {
		return m.arena, nil
	}
	large := len(m.arena) > unchecked
	m.arena = nil
	if m.OnGrow != nil {
		m.OnGrow()
	}
	if large {
		debug.FreeOSMemory() // otherwise the old arena and the new one would be in memory together
	}
	if size > unchecked {
		if err := resources.Memory().Check("a step", 4*float64(size), "use a smaller model or smaller batches"); err != nil {
			return nil, err
		}
		m.arena = aligned(size)
	} else {
		m.arena = aligned(size + size/8)
	}
	return m.arena, nil
}

// alignment is the size of a line of the cache in elements.
const alignment = 16

// aligned returns n zeros at the start of a line of the cache. It never returns an empty slice, because a call needs
// an address.
func aligned(n int) []float32 {
	all := make([]float32, max(n, 1)+alignment)
	skip := (alignment - int(uintptr(unsafe.Pointer(&all[0]))/4%alignment)) % alignment
	return all[skip : skip+n : skip+max(n, 1)]
}

// floats returns n elements at an address.
func floats(at unsafe.Pointer, n int) []float32 { return unsafe.Slice((*float32)(at), n) }

// ErrNoForm is in the chain of errors of Compile for graphs that this target cannot compute.
var ErrNoForm = graph.ErrNoForm
