// Speed of a training step in each engine.

package engines_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/testkit/modeltest"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/train"
)

// work is the size of a training step. The sizes are those of the paper's datasets.
type work struct {
	name      string
	spec      string // a shipped spec, or a file
	signature compile.Signature
	instances int // of a bag
	bags      int // of a step
}

// works are the feature shapes of two datasets and the CNN, with 1 and 16 bags per step.
var works = []work{
	{"birdsong", "demipl", compile.Signature{Instance: []int{38}, Classes: 13}, 37, 1},
	{"birdsong", "demipl", compile.Signature{Instance: []int{38}, Classes: 13}, 37, 16},
	{"birdsong-program", "../../bench/program-features.yaml", compile.Signature{Instance: []int{38}, Classes: 13}, 37, 1},
	{"birdsong-mlp", "demipl-mlp", compile.Signature{Instance: []int{38}, Classes: 13}, 37, 1},
	{"birdsong-abmil", "gated-abmil", compile.Signature{Instance: []int{38}, Classes: 13}, 37, 1},
	{"crc-sift", "demipl", compile.Signature{Instance: []int{128}, Classes: 7}, 25, 1},
	{"crc-sift", "demipl", compile.Signature{Instance: []int{128}, Classes: 7}, 25, 16},
	{"cnn", "demipl-image", compile.Signature{Instance: []int{1, 28, 28}, Classes: 5}, 41, 1},
	{"cnn", "demipl-image", compile.Signature{Instance: []int{1, 28, 28}, Classes: 5}, 41, 16},
}

// program compiles the spec of a case.
func (c *work) program(tb testing.TB) *compile.Program {
	tb.Helper()
	spec, err := language.Load(c.spec)
	if err != nil {
		tb.Fatal(err)
	}
	return modeltest.Compiled(tb, spec, c.signature)
}

// params returns initial parameters and, if the program normalises, statistics that leave the
// features unchanged.
func (c *work) params(p *compile.Program) map[string][]float32 {
	params := train.InitParams(p, 1)
	if p.Normalize {
		dim := ndarray.Size(c.signature.Instance)
		params[compile.ParamMean], params[compile.ParamStd] = make([]float32, dim), make([]float32, dim)
		for i := range dim {
			params[compile.ParamStd][i] = 1
		}
	}
	return params
}

// batch draws the input of a step.
func (c *work) batch(p *compile.Program) *train.Batch {
	rng := rand.New(rand.NewPCG(1, 2))
	n, k, dim := c.instances*c.bags, c.signature.Classes, ndarray.Size(c.signature.Instance)
	b := &train.Batch{Bags: c.bags, Instances: make([]float32, n*dim), BagOf: make([]int, n),
		Candidates: make([]float32, c.bags*k), LabelWeights: make([]float32, c.bags*k), Masks: map[string][]float32{},
		Lambda: 0.5, Epoch: 50, Epochs: 100, LR: 1e-4}
	for i := range b.Instances {
		b.Instances[i] = float32(rng.NormFloat64())
	}
	for i := range b.BagOf {
		b.BagOf[i] = i / c.instances
	}
	for bag := range c.bags {
		for j := range 2 {
			at := bag*k + (bag+3*j)%k
			b.Candidates[at], b.LabelWeights[at] = 1, 0.5
		}
	}
	for _, m := range p.Masks {
		mask := make([]float32, ndarray.Size(m.Shape.Concrete(n, c.bags)))
		for i := range mask {
			mask[i] = float32(rng.IntN(2)) * m.Scale()
		}
		b.Masks[m.Name] = mask
	}
	return b
}

// BenchmarkStep measures a training step of every engine: forward, backward and update.
func BenchmarkStep(b *testing.B) {
	for _, m := range compared(b) {
		for _, c := range works {
			b.Run(fmt.Sprintf("%s/%s/bags=%d", m.name, c.name, c.bags), func(b *testing.B) {
				p := c.program(b)
				e := m.started(b, p, &train.State{Params: c.params(p)})
				defer e.Close()
				batch := c.batch(p)
				step := func() {
					if _, err := e.Step(batch); err != nil {
						b.Fatal(err)
					}
				}
				step() // the first one compiles
				b.ReportAllocs()
				for b.Loop() {
					step()
				}
			})
		}
	}
}
