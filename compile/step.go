// The training step as one graph, and the graphs of trials that train together.

package compile

import (
	"fmt"
	"slices"

	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/ndarray"
)

// Inputs and outputs that the training step adds to those of the training graph.
const (
	InParams  = "params"     // [P] all parameters, in the order of Program.Params
	InLR      = "lr"         // [1] learning rate
	InGrads   = "grads"      // [P] gradient by all parameters, only of Update
	OutParams = "new_params" // [P]
)

// reserved lists the names that a parameter must not have, because engines and files identify values by name.
var reserved = []string{InInstances, InBagOf, InCandidates, InLabelWeights, InLambda, InEpoch, InEpochs, InParams, InLR,
	InGrads,
	OutProbabilities, OutAttention, OutLoss, OutLabelWeights, OutParams,
	InVelocity, InFirstMoment, InSecondMoment, UpdatedName(InVelocity), UpdatedName(InFirstMoment),
	UpdatedName(InSecondMoment), InFirstCorrection, InSecondCorrection,
	InAccumulated, UpdatedName(InAccumulated), InGradientShare, InUpdateNow, InClassWeights,
	InWeightDecay, InClip, InMomentum, InBeta1, restOf(InBeta1), InBeta2, restOf(InBeta2), InAlpha, restOf(InAlpha),
	InEpsilon}

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
			return nil, fmt.Errorf("parameter %s has %d numbers, its shape %v has %d", q.Name, len(v), q.Shape,
				ndarray.Size(q.Shape))
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

// Step builds the whole training step as one graph: forward pass, gradient, and the update of train.optimizer.
// Parameters and the state of the optimiser are flat vectors, so that a target moves few buffers. Scalar inputs have
// the shape [1]: buffers that a caller can write to between steps.
func Step(p *Program) (*graph.Graph, error) { return step(p, p.Train, p.WeightUpdate) }

// StepOfSpec returns Step with the values of Program.Settings in place of their inputs.
func StepOfSpec(p *Program) (*graph.Graph, error) {
	g, err := Step(p)
	if err != nil {
		return nil, err
	}
	b, values := graph.NewBuilder(g.Name), map[string]*graph.Node{}
	for _, s := range p.Settings(nil) {
		values[s.Name] = b.Scalar(s.Value)
	}
	return copied(b, g, func(n *graph.Node) *graph.Node {
		if n.Op != graph.OpInput {
			return nil
		}
		return values[n.Name]
	})
}

// StepOneBag returns Step for batches of one bag: B is 1 and there is no input bag_of,
// see graph.SingleBag.
func StepOneBag(p *Program) (*graph.Graph, error) {
	single, err := graph.SingleBag(p.Train)
	if err != nil {
		return nil, err
	}
	weightUpdate := p.WeightUpdate
	if weightUpdate != nil {
		if weightUpdate, err = graph.SingleBag(weightUpdate); err != nil {
			return nil, err
		}
	}
	return step(p, single, weightUpdate)
}

// step appends the gradients, the update and the graph of the new label weights to a training graph.
// weightUpdate is nil if the training graph computes the new label weights.
func step(p *Program, train, weightUpdate *graph.Graph) (*graph.Graph, error) {
	g, err := gradients(p, train)
	if err != nil {
		return nil, err
	}
	b := graph.NewBuilder("train_step")
	u := newUpdate(b, p)
	byName := cut(b, p, u.params())
	inputs := map[string]*graph.Node{}
	copies := b.Copy(g, bind(b, inputs, byName))
	b.Label(InGrads)
	grads, joined := make([]*graph.Node, len(p.Params)), map[string]bool{} // outputs that are joined to one vector
	for i, q := range p.Params {
		output := graph.GradPrefix + q.Name
		if q.Statistic { // the update expects its next value in the place of a gradient
			output = StatisticPrefix + q.Name
		}
		joined[output] = true
		grads[i] = b.Reshape(copies[g.Output(output).ID], graph.Shape{graph.Dim(ndarray.Size(q.Shape))})
	}
	for _, o := range g.Outputs {
		if !joined[o.Name] {
			b.Output(o.Name, copies[o.Node.ID])
		}
	}
	next := u.apply(b.Concat(0, grads...))
	u.outputs()
	if weightUpdate != nil { // a second forward pass, with the new parameters
		again := b.Copy(weightUpdate, bind(b, inputs, cut(b, p, next)))
		b.Output(OutLabelWeights, again[weightUpdate.Output(OutLabelWeights).ID])
	}
	return b.Optimized()
}

// gradients appends the gradients by all parameters to a training graph.
func gradients(p *Program, train *graph.Graph) (*graph.Graph, error) {
	var names []string
	for _, q := range p.Params {
		if !q.Statistic {
			names = append(names, q.Name)
		}
	}
	return graph.Gradient(train, OutLoss, names)
}

// copied returns an optimised copy of a graph in which some values are replaced.
func copied(b *graph.Builder, g *graph.Graph, replace func(n *graph.Node) *graph.Node) (*graph.Graph, error) {
	copies := b.Copy(g, replace)
	for _, o := range g.Outputs {
		if o.Name != OutClassAttention { // engines do not return it
			b.Output(o.Name, copies[o.Node.ID])
		}
	}
	return b.Optimized()
}

// bind returns the replacements for Builder.Copy. A parameter becomes params[name], or an input if params has none.
// Inputs are made once and shared through the map inputs. An input without axes becomes an input [1], so that a
// caller can write to it between steps.
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

// cut splits the flat vector into the parameters.
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
func Predict(p *Program) (*graph.Graph, error) { return predict(p, false) }

// PredictNormalized returns the graph of Predict for instances that are normalised already.
func PredictNormalized(p *Program) (*graph.Graph, error) { return predict(p, true) }

func predict(p *Program, normalized bool) (*graph.Graph, error) {
	b := graph.NewBuilder("predict")
	inputs := map[string]*graph.Node{}
	leaf := bind(b, inputs, cut(b, p, b.Input(InParams, graph.Float, graph.Shape{graph.Dim(p.FlatSize())})))
	return copied(b, p.Infer, func(n *graph.Node) *graph.Node {
		if normalized && n.Op == graph.OpDiv && n.In[1].Op == graph.OpParam && n.In[1].Name == ParamStd {
			return inputs[InInstances]
		}
		return leaf(n)
	})
}

// Update returns only the end of a training step: from gradients, learning rate and the
// state vectors [P] of the program to their new values. Running statistics have their next
// values in the place of gradients.
func Update(p *Program) (*graph.Graph, error) {
	b := graph.NewBuilder("update")
	u := newUpdate(b, p)
	u.apply(b.Input(InGrads, graph.Float, graph.Shape{graph.Dim(p.FlatSize())}))
	u.outputs()
	g, err := b.Graph()
	if err != nil {
		return nil, fmt.Errorf("bug: building the update: %w", err)
	}
	return g, nil
}

func static(shape []int) graph.Shape {
	s := make(graph.Shape, len(shape))
	for i, e := range shape {
		s[i] = graph.Dim(e)
	}
	return s
}

// TermWeightPrefix begins the names of the inputs that ForGroup adds, one scalar per loss
// term: the weight of the term in the loss (paper Eq. 8).
const TermWeightPrefix = "loss_weight."

// GroupGraphs has the graphs that trials of one program share. The weights of the loss terms are inputs, so that
// trials may differ in them.
type GroupGraphs struct {
	*Program
	StepGraph, PredictGraph *graph.Graph
}

// ForGroup returns the graphs that trials of a program share.
func ForGroup(p *Program) (*GroupGraphs, error) {
	q, err := withTermWeights(p)
	if err != nil {
		return nil, err
	}
	s := &GroupGraphs{Program: q}
	if s.StepGraph, err = Step(q); err == nil {
		s.PredictGraph, err = Predict(q)
	}
	return s, err
}

// withTermWeights returns a program whose training graph has the weights of the loss terms as inputs.
func withTermWeights(p *Program) (_ *Program, err error) {
	b := graph.NewBuilder(p.Train.Name)
	copied := b.Copy(p.Train, nil)
	var total *graph.Node
	for _, o := range p.Train.Outputs {
		if o.Name != OutLoss {
			b.Output(o.Name, copied[o.Node.ID])
		}
	}
	for _, name := range p.Terms {
		part := b.Mul(b.Input(TermWeightPrefix+name, graph.Float, graph.Shape{}), copied[p.Train.Output(TermPrefix+name).ID])
		if total == nil {
			total = part
		} else {
			total = b.Add(total, part)
		}
	}
	if total == nil {
		return nil, fmt.Errorf("the training graph %s has no loss terms to weigh", p.Train.Name)
	}
	b.Output(OutLoss, total)
	q := *p
	q.Train, err = b.Optimized()
	return &q, err
}
