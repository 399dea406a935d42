// Package enginebench measures the training step of an engine on the sizes of
// the paper's data sets. It is for benchmarks.
package enginebench

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/internal/extent"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/train"
)

// Case is one size of work.
type Case struct {
	Name      string
	Spec      string // a shipped spec
	Signature compile.Signature
	Instances int // of a bag
	Bags      int // of a step
}

// Cases are features of two data sets and the CNN, with 1 and 16 bags a step.
var Cases = []Case{
	{"birdsong", "demipl", compile.Signature{Instance: []int{38}, Classes: 13}, 37, 1},
	{"birdsong", "demipl", compile.Signature{Instance: []int{38}, Classes: 13}, 37, 16},
	{"crc-sift", "demipl", compile.Signature{Instance: []int{128}, Classes: 7}, 25, 1},
	{"crc-sift", "demipl", compile.Signature{Instance: []int{128}, Classes: 7}, 25, 16},
	{"cnn", "demipl-image", compile.Signature{Instance: []int{1, 28, 28}, Classes: 5}, 41, 1},
	{"cnn", "demipl-image", compile.Signature{Instance: []int{1, 28, 28}, Classes: 5}, 41, 16},
}

// Program compiles the spec of a case.
func (c *Case) Program(tb testing.TB) *compile.Program {
	tb.Helper()
	spec, err := language.Load(c.Spec, language.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	p, err := compile.Compile(spec, c.Signature)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// Params are starting parameters and, where the program normalises, statistics
// that change nothing.
func (c *Case) Params(p *compile.Program) map[string][]float32 {
	params := train.InitParams(p, 1)
	if p.Normalize {
		dim := extent.Size(c.Signature.Instance)
		params[compile.ParamMean], params[compile.ParamStd] = make([]float32, dim), make([]float32, dim)
		for i := range dim {
			params[compile.ParamStd][i] = 1
		}
	}
	return params
}

// Batch draws the input of a step.
func (c *Case) Batch(p *compile.Program) *train.Batch {
	rng := rand.New(rand.NewPCG(1, 2))
	n, k, dim := c.Instances*c.Bags, c.Signature.Classes, extent.Size(c.Signature.Instance)
	b := &train.Batch{Bags: c.Bags, Instances: make([]float32, n*dim), BagOf: make([]int, n),
		Candidates: make([]float32, c.Bags*k), Weights: make([]float32, c.Bags*k), Masks: map[string][]float32{},
		Lambda: 0.5, Epoch: 50, Epochs: 100, LR: 1e-4}
	for i := range b.Instances {
		b.Instances[i] = float32(rng.NormFloat64())
	}
	for i := range b.BagOf {
		b.BagOf[i] = i / c.Instances
	}
	for bag := range c.Bags {
		for j := range 2 {
			at := bag*k + (bag+3*j)%k
			b.Candidates[at], b.Weights[at] = 1, 0.5
		}
	}
	for _, m := range p.Masks {
		mask := make([]float32, extent.Size(m.Shape.Concrete(n, c.Bags)))
		for i := range mask {
			mask[i] = float32(2 * rng.IntN(2))
		}
		b.Masks[m.Name] = mask
	}
	return b
}

// Steps benchmarks one training step per iteration.
func Steps(b *testing.B, newEngine func(p *compile.Program, params map[string][]float32) (train.Engine, error)) {
	for _, c := range Cases {
		b.Run(fmt.Sprintf("%s/bags=%d", c.Name, c.Bags), func(b *testing.B) {
			p := c.Program(b)
			e, err := newEngine(p, c.Params(p))
			if err != nil {
				b.Fatal(err)
			}
			defer e.Close()
			batch := c.Batch(p)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := e.Step(batch); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
