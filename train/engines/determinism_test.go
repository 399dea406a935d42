// One seed gives the same bits.

package engines_test

import (
	"fmt"
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/compile/native"
	"github.com/miplc/miplc/compile/native/kernel"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/engines"
)

// Steps of the engine native end with the same bits in a second run and on any number of threads, on features and
// images, with one and several bags per step.
func TestSameBitsOnAnyNumberOfThreads(t *testing.T) {
	for _, c := range works {
		if c.bags > 1 {
			c.bags = 5 // several bags, and still fast
		}
		t.Run(fmt.Sprintf("%s/bags=%d", c.name, c.bags), func(t *testing.T) {
			p := c.program(t)
			first := steps(t, &c, p, 1)
			for _, threads := range []int{1, 2, 3, 8} {
				sameState(t, fmt.Sprintf("%d threads", threads), first, steps(t, &c, p, threads))
			}
		})
	}
}

// steps runs a few steps from the same initial state with batches of two sizes.
func steps(t *testing.T, c *work, p *compile.Program, threads int) *train.State {
	t.Helper()
	e := engines.NewNative(p, native.Options{Kernels: kernel.Best(), Threads: threads})
	defer e.Close()
	if err := e.SetState(&train.State{Params: c.params(p)}); err != nil {
		t.Fatal(err)
	}
	small := *c
	small.instances = c.instances/2 + 1
	for i := range 6 {
		b := c.batch(p)
		if i%2 == 1 {
			b = small.batch(p)
		}
		b.LR = 0.01
		if _, err := e.Step(b); err != nil {
			t.Fatal(err)
		}
	}
	s, err := e.State()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func sameState(t *testing.T, what string, a, b *train.State) {
	t.Helper()
	for name, v := range a.Params {
		sameBits(t, what+": "+name, v, b.Params[name])
	}
	for name, v := range a.Optimizer {
		sameBits(t, what+": "+name, v, b.Optimizer[name])
	}
}
