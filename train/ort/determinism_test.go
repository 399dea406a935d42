//go:build cgo

package ort_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/runtime/ortlib/ortest"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/enginebench"
	"github.com/miplc/miplc/train/ort"
)

// Two runs of the same steps end in the same bits, on features and on images,
// one bag or several a step, with one thread and with two.
func TestSameBitsTwice(t *testing.T) {
	library := ortest.Library(t)
	for _, c := range enginebench.Cases {
		for _, threads := range []int{1, 2} {
			if c.Bags > 1 {
				c.Bags = 3 // enough for several, and quick
			}
			t.Run(fmt.Sprintf("%s/bags=%d/threads=%d", c.Name, c.Bags, threads), func(t *testing.T) {
				p := c.Program(t)
				o := ort.Options{Library: library, Threads: threads}
				first, second := trained(t, &c, p, o), trained(t, &c, p, o)
				sameBits(t, "parameters", first.Params, second.Params)
				sameBits(t, "velocity", first.Velocity, second.Velocity)
			})
		}
	}
}

// Bags of images that go through side by side add up to the bits of bags that go
// through one after the other.
func TestSameBitsOnAnyNumberOfThreads(t *testing.T) {
	library := ortest.Library(t)
	c := enginebench.Cases[slices.IndexFunc(enginebench.Cases, func(c enginebench.Case) bool { return c.Name == "cnn" })]
	c.Bags = 5
	p := c.Program(t)
	one := trained(t, &c, p, ort.Options{Library: library, Threads: 1})
	for _, threads := range []int{2, 3, 8} {
		many := trained(t, &c, p, ort.Options{Library: library, Threads: threads})
		sameBits(t, fmt.Sprintf("parameters with %d threads", threads), one.Params, many.Params)
		sameBits(t, fmt.Sprintf("velocity with %d threads", threads), one.Velocity, many.Velocity)
	}
}

// trained runs a few steps from the same start with batches of two sizes.
func trained(t *testing.T, c *enginebench.Case, p *compile.Program, o ort.Options) *train.State {
	t.Helper()
	e, err := ort.New(p, c.Params(p), o)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	small := *c
	small.Instances = c.Instances/2 + 1
	for i := range 6 {
		b := c.Batch(p)
		if i%2 == 1 {
			b = small.Batch(p)
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

func sameBits(t *testing.T, what string, first, second map[string][]float32) {
	t.Helper()
	for name, v := range first {
		for i := range v {
			if math.Float32bits(v[i]) != math.Float32bits(second[name][i]) {
				t.Fatalf("%s of %s: element %d is %v, then %v", what, name, i, v[i], second[name][i])
			}
		}
	}
}
