package compile

import (
	"fmt"

	"github.com/miplc/miplc/graph"
)

// Inputs and outputs that the training step adds to those of the training graph.
const (
	InParams    = "params"       // [P] all parameters, in the order of Program.Params
	InVelocity  = "velocity"     // [P] momentum of the optimiser
	InLR        = "lr"           // [1] learning rate
	OutParams   = "new_params"   // [P]
	OutVelocity = "new_velocity" // [P]
)

// FlatSize is the length P of the flat parameter vector.
func (p *Program) FlatSize() int {
	n := 0
	for _, q := range p.Params {
		n += volume(q.Shape)
	}
	return n
}

// Flatten puts parameters by name into the order of the flat vector.
func (p *Program) Flatten(byName map[string][]float32) ([]float32, error) {
	flat := make([]float32, 0, p.FlatSize())
	for _, q := range p.Params {
		v := byName[q.Name]
		if len(v) != volume(q.Shape) {
			return nil, fmt.Errorf("parameter %s has %d numbers, its shape %v holds %d", q.Name, len(v), q.Shape, volume(q.Shape))
		}
		flat = append(flat, v...)
	}
	return flat, nil
}

// Unflatten copies the flat vector out into parameters by name.
func (p *Program) Unflatten(flat []float32) map[string][]float32 {
	byName := make(map[string][]float32, len(p.Params))
	at := 0
	for _, q := range p.Params {
		n := volume(q.Shape)
		byName[q.Name] = append([]float32(nil), flat[at:at+n]...)
		at += n
	}
	return byName
}

// Step builds the whole training step as one graph: forward, gradient and the
// update of stochastic gradient descent with momentum and weight decay as
// PyTorch defines them. Parameters and velocity are flat vectors, so that a
// target moves them as two buffers. Scalar inputs have the shape [1]: a buffer
// that a caller can write to between steps.
func Step(p *Program) (*graph.Graph, error) {
	names := make([]string, len(p.Params))
	for i, q := range p.Params {
		names[i] = q.Name
	}
	g, err := graph.Gradient(p.Train, OutLoss, names)
	if err != nil {
		return nil, err
	}
	b := graph.NewBuilder("train_step")
	params, byName := flatParams(b, p)
	velocity := b.Input(InVelocity, graph.Float, graph.Shape{graph.Dim(p.FlatSize())})
	lr := b.Input(InLR, graph.Float, graph.Shape{1})
	copied := b.Copy(g, func(n *graph.Node) *graph.Node {
		switch {
		case n.Op == graph.OpParam:
			return byName[n.Name]
		case n.Op == graph.OpInput && len(n.Shape) == 0:
			return b.Reshape(b.Input(n.Name, n.Type, graph.Shape{1}), graph.Shape{})
		}
		return nil
	})
	grads := make([]*graph.Node, len(p.Params))
	for i, q := range p.Params {
		grads[i] = b.Reshape(copied[g.Output("grad."+q.Name)], graph.Shape{graph.Dim(volume(q.Shape))})
	}
	for _, o := range g.Outputs {
		if len(o.Name) < 5 || o.Name[:5] != "grad." {
			b.Output(o.Name, copied[o.Node])
		}
	}
	next, v := sgd(b, p, params, velocity, lr, b.Concat(0, grads...))
	b.Output(OutParams, next)
	b.Output(OutVelocity, v)
	step, err := b.Graph()
	if err != nil {
		return nil, fmt.Errorf("bug: building the training step: %w", err)
	}
	return graph.Optimize(step)
}

// flatParams cuts the flat vector into the parameters.
func flatParams(b *graph.Builder, p *Program) (flat *graph.Node, byName map[string]*graph.Node) {
	flat = b.Input(InParams, graph.Float, graph.Shape{graph.Dim(p.FlatSize())})
	byName = map[string]*graph.Node{}
	at := 0
	for _, q := range p.Params {
		n := volume(q.Shape)
		shape := make(graph.Shape, len(q.Shape))
		for i, e := range q.Shape {
			shape[i] = graph.Dim(e)
		}
		byName[q.Name] = b.Reshape(b.Slice(flat, 0, at, at+n), shape)
		at += n
	}
	return flat, byName
}

// sgd is g += decay w; v = mu v + g; w -= lr (g + mu v), or w -= lr v without
// Nesterov's form.
func sgd(b *graph.Builder, p *Program, w, v, lr, g *graph.Node) (next, velocity *graph.Node) {
	t := &p.Spec.Train
	if t.WeightDecay.V != 0 {
		g = b.Add(g, b.Mul(b.Scalar(t.WeightDecay.V), w))
	}
	move := g
	velocity = g
	if mu := t.Momentum.V; mu != 0 {
		velocity = b.Add(b.Mul(b.Scalar(mu), v), g)
		move = velocity
		if t.Nesterov.V {
			move = b.Add(g, b.Mul(b.Scalar(mu), velocity))
		}
	}
	return b.Sub(w, b.Mul(lr, move)), velocity
}
