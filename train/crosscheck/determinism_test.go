// One seed gives the same bits.

package crosscheck_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/internal/testkit/enginetest"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/ort"
)

// Two runs of the same steps in onnxruntime end with the same bits, on features and images, with
// one and several bags per step, and with one and two threads.
func TestSameBitsTwice(t *testing.T) {
	library := enginetest.Library(t)
	for _, c := range works {
		for _, threads := range []int{1, 2} {
			if c.bags > 1 {
				c.bags = 3 // several bags, and still fast
			}
			t.Run(fmt.Sprintf("%s/bags=%d/threads=%d", c.name, c.bags, threads), func(t *testing.T) {
				p := c.program(t)
				o := ort.Setup{Library: library, Threads: threads}
				first, second := steps(t, &c, p, o), steps(t, &c, p, o)
				sameState(t, "the second run", first, second)
			})
		}
	}
}

// Bags of images computed in parallel give the same bits as bags computed sequentially.
func TestSameBitsOnAnyNumberOfThreads(t *testing.T) {
	library := enginetest.Library(t)
	c := works[slices.IndexFunc(works, func(c work) bool { return c.name == "cnn" })]
	c.bags = 5
	p := c.program(t)
	one := steps(t, &c, p, ort.Setup{Library: library, Threads: 1})
	for _, threads := range []int{2, 3, 8} {
		many := steps(t, &c, p, ort.Setup{Library: library, Threads: threads})
		sameState(t, fmt.Sprintf("%d threads", threads), one, many)
	}
}

// steps runs a few steps from the same initial state with batches of two sizes.
func steps(t *testing.T, c *work, p *compile.Program, o ort.Setup) *train.State {
	t.Helper()
	e, err := ort.New(p, c.params(p), o)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
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
