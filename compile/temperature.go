// Probabilities with a temperature.

package compile

import (
	"math"

	"github.com/miplc/miplc/compile/graph"
)

// leastProbability keeps the logarithm of a probability or a weight of 0 finite in float32.
const leastProbability = 1e-37

// WithTemperature returns the program with the probabilities p^(1/t), divided by their
// sum, in its inference graph. If they are a softmax, this divides its logits by t. The
// training graph stays as it is.
func (p *Program) WithTemperature(t float64) (*Program, error) {
	b := graph.NewBuilder(p.Infer.Name)
	copies := b.Copy(p.Infer, nil)
	for _, o := range p.Infer.Outputs {
		n := copies[o.Node.ID]
		if o.Name == OutProbabilities {
			n = b.Label("temperature").Softmax(b.Mul(logits(b, n), b.Scalar(1/t)))
		}
		b.Output(o.Name, n)
	}
	g, err := b.Graph()
	if err != nil {
		return nil, err
	}
	out := *p
	out.Infer, err = graph.Optimize(g)
	return &out, err
}

// logits returns values whose softmax is proportional to the probabilities.
func logits(b *graph.Builder, p *graph.Node) *graph.Node {
	if p.Op == graph.OpSoftmax {
		return p.In[0]
	}
	return b.Log(b.Clamp(p, leastProbability, math.MaxFloat32))
}
