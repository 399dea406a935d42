package compile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/ndarray"
)

// Inputs and outputs that the training step adds to those of the training graph.
const (
	InParams    = "params"       // [P] all parameters, in the order of Program.Params
	InVelocity  = "velocity"     // [P] momentum of the optimiser
	InLR        = "lr"           // [1] learning rate
	InGrads     = "grads"        // [P] gradient by all parameters, of Update alone
	OutParams   = "new_params"   // [P]
	OutVelocity = "new_velocity" // [P]
)

// reserved names no parameter: engines and files know values by their names.
var reserved = []string{InInstances, InBagOf, InCandidates, InWeights, InLambda, InEpoch, InEpochs, InParams, InVelocity, InLR, InGrads,
	OutProbabilities, OutAttention, OutLoss, OutWeights, OutParams, OutVelocity}

// FlatSize returns P, the length of the flat parameter vector.
func (p *Program) FlatSize() int {
	n := 0
	for _, q := range p.Params {
		n += ndarray.Size(q.Shape)
	}
	return n
}

// Flatten concatenates parameters to the flat vector.
func (p *Program) Flatten(byName map[string][]float32) ([]float32, error) {
	flat := make([]float32, 0, p.FlatSize())
	for _, q := range p.Params {
		v := byName[q.Name]
		if len(v) != ndarray.Size(q.Shape) {
			return nil, fmt.Errorf("parameter %s has %d numbers, its shape %v holds %d", q.Name, len(v), q.Shape, ndarray.Size(q.Shape))
		}
		flat = append(flat, v...)
	}
	return flat, nil
}

// Unflatten copies the flat vector to separate parameters by name.
func (p *Program) Unflatten(flat []float32) map[string][]float32 {
	return p.ParamViews(slices.Clone(flat))
}

// ParamViews returns the slice of flat that belongs to each parameter, without copying.
func (p *Program) ParamViews(flat []float32) map[string][]float32 {
	byName := make(map[string][]float32, len(p.Params))
	for _, q := range p.Params {
		n := ndarray.Size(q.Shape)
		byName[q.Name], flat = flat[:n:n], flat[n:]
	}
	return byName
}

// Step builds the whole training step as one graph: forward pass, gradient, and
// stochastic gradient descent with momentum and weight decay as in PyTorch. Parameters
// and velocity are flat vectors, so that a target moves two buffers. Scalar inputs have
// the shape [1]: buffers that a caller can write to between steps.
func Step(p *Program) (*graph.Graph, error) { return step(p, p.Train, p.Renew) }

// StepOneBag returns Step for batches of one bag: B is 1 and there is no input bag_of,
// see graph.SingleBag.
func StepOneBag(p *Program) (*graph.Graph, error) {
	single, err := graph.SingleBag(p.Train)
	if err != nil {
		return nil, err
	}
	renew := p.Renew
	if renew != nil {
		if renew, err = graph.SingleBag(renew); err != nil {
			return nil, err
		}
	}
	return step(p, single, renew)
}

// step puts gradients and the update behind a training graph, and behind them
// the graph of new label weights, nil where the training graph has them.
func step(p *Program, train, renew *graph.Graph) (*graph.Graph, error) {
	g, err := gradients(p, train)
	if err != nil {
		return nil, err
	}
	b := graph.NewBuilder("train_step")
	params := b.Input(InParams, graph.Float, graph.Shape{graph.Dim(p.FlatSize())})
	byName := cut(b, p, params)
	velocity := b.Input(InVelocity, graph.Float, graph.Shape{graph.Dim(p.FlatSize())})
	lr := b.Input(InLR, graph.Float, graph.Shape{1})
	inputs := map[string]*graph.Node{}
	of := b.Copy(g, bind(b, inputs, byName))
	b.Label(InGrads)
	grads := make([]*graph.Node, len(p.Params))
	for i, q := range p.Params {
		grads[i] = b.Reshape(of[g.Output(graph.GradPrefix+q.Name).ID], graph.Shape{graph.Dim(ndarray.Size(q.Shape))})
	}
	for _, o := range g.Outputs {
		if !strings.HasPrefix(o.Name, graph.GradPrefix) {
			b.Output(o.Name, of[o.Node.ID])
		}
	}
	next, v := sgd(b, p, params, velocity, lr, b.Concat(0, grads...))
	b.Output(OutParams, next)
	b.Output(OutVelocity, v)
	if renew != nil { // a second forward pass, with the new parameters
		again := b.Copy(renew, bind(b, inputs, cut(b, p, next)))
		b.Output(OutWeights, again[renew.Output(OutWeights).ID])
	}
	return finished(b)
}

// gradients puts the gradients by all parameters behind a training graph.
func gradients(p *Program, train *graph.Graph) (*graph.Graph, error) {
	train, err := graph.PoolFirst(train)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(p.Params))
	for i, q := range p.Params {
		names[i] = q.Name
	}
	return graph.Gradient(train, OutLoss, names)
}

// finished is the optimised graph of a builder.
func finished(b *graph.Builder) (*graph.Graph, error) {
	g, err := b.Graph()
	if err != nil {
		return nil, fmt.Errorf("bug: building a graph of the program: %w", err)
	}
	return graph.Optimize(g)
}

// copied is the optimised copy of a graph with other values in the place of some.
func copied(b *graph.Builder, g *graph.Graph, replace func(n *graph.Node) *graph.Node) (*graph.Graph, error) {
	of := b.Copy(g, replace)
	for _, o := range g.Outputs {
		b.Output(o.Name, of[o.Node.ID])
	}
	return finished(b)
}

// bind replaces parameters and inputs of a copied graph: scalars become buffers
// of one element, parameters that params lacks inputs, and graphs of one step share
// their inputs.
func bind(b *graph.Builder, inputs, params map[string]*graph.Node) func(n *graph.Node) *graph.Node {
	return func(n *graph.Node) *graph.Node {
		switch {
		case n.Op != graph.OpParam && n.Op != graph.OpInput:
			return nil
		case params[n.Name] != nil:
			return params[n.Name]
		case inputs[n.Name] != nil:
			return inputs[n.Name]
		}
		if len(n.Shape) == 0 {
			inputs[n.Name] = b.Reshape(b.Input(n.Name, n.Type, graph.Shape{1}), graph.Shape{})
		} else {
			inputs[n.Name] = b.Input(n.Name, n.Type, n.Shape)
		}
		return inputs[n.Name]
	}
}

// cut takes the flat vector apart into the parameters.
func cut(b *graph.Builder, p *Program, flat *graph.Node) map[string]*graph.Node {
	byName := map[string]*graph.Node{}
	at := 0
	for _, q := range p.Params {
		n := ndarray.Size(q.Shape)
		b.Label(q.Name)
		byName[q.Name] = b.Reshape(b.Slice(flat, 0, at, at+n), static(q.Shape))
		b.Name(byName[q.Name], q.Name)
		at += n
	}
	return byName
}

// Predict returns the inference graph with flat parameters. The statistics of a
// normalisation are separate inputs, ParamMean and ParamStd.
func Predict(p *Program) (*graph.Graph, error) {
	b := graph.NewBuilder("predict")
	byName := cut(b, p, b.Input(InParams, graph.Float, graph.Shape{graph.Dim(p.FlatSize())}))
	return copied(b, p.Infer, bind(b, map[string]*graph.Node{}, byName))
}

// Update returns only the end of a training step: from parameters, velocity, gradients
// and learning rate to new parameters and velocity, all flat vectors [P].
func Update(p *Program) (*graph.Graph, error) {
	b := graph.NewBuilder("update")
	size := graph.Shape{graph.Dim(p.FlatSize())}
	params, velocity := b.Input(InParams, graph.Float, size), b.Input(InVelocity, graph.Float, size)
	grads, lr := b.Input(InGrads, graph.Float, size), b.Input(InLR, graph.Float, graph.Shape{1})
	next, v := sgd(b, p, params, velocity, lr, grads)
	b.Output(OutParams, next)
	b.Output(OutVelocity, v)
	g, err := b.Graph()
	if err != nil {
		return nil, fmt.Errorf("bug: building the update: %w", err)
	}
	return g, nil
}

// clipEpsilon is PyTorch's, which keeps the scale of a zero gradient finite.
const clipEpsilon = 1e-6

// clipped scales a gradient g down to the norm train.clip, as PyTorch's clip_grad_norm_:
// g min(1, clip / (norm + 1e-6)).
func clipped(b *graph.Builder, p *Program, g *graph.Node) *graph.Node {
	limit := p.Spec.Train.Clip.V
	if limit == 0 {
		return g
	}
	b.Label("clip")
	norm := b.Sqrt(b.SumAll(b.Mul(g, g)))
	return b.Mul(b.Minimum(b.Scalar(1), b.Div(b.Scalar(limit), b.Add(norm, b.Scalar(clipEpsilon)))), g)
}

// sgd is g += decay w; v = mu v + g; w -= lr (g + mu v), or w -= lr v without
// Nesterov's form.
func sgd(b *graph.Builder, p *Program, w, v, lr, g *graph.Node) (next, velocity *graph.Node) {
	g = clipped(b, p, g)
	b.Label("update")
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
