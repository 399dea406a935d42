// The outputs of a model: attention, probabilities and their logarithm.

package compile

import (
	"cmp"
	"math"

	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/language/schema"
)

// outputs determines attention, probabilities and their logarithm.
func (l *lowerer) outputs() {
	m, b := &l.spec.Model, l.b
	bags := graph.Shape{graph.B, graph.Dim(l.prog.Signature.Classes)}
	p := l.output(m.Probabilities, "p", "probabilities", bags)
	logp := l.output(m.LogProbabilities, "logp", "log_probabilities", bags)
	if p != nil && (l.env["logp"] == nil || m.Probabilities.V != "") && m.LogProbabilities.V == "" {
		logp = l.logOf(p)
	}
	a := l.output(m.Attention, "a", "attention", graph.Shape{graph.N, 1})
	l.prog.Attends = a != nil
	if a == nil && !l.reported.names["a"] {
		// Pooling without scores gives every instance the same weight.
		b.Label("a")
		a = b.SegmentSoftmax(b.Fill(0, graph.Shape{graph.N, 1}), l.bagOf)
	}
	var classes *graph.Node
	if m.ClassAttention.V != "" && !l.training {
		classes = l.output(m.ClassAttention, "class_attention", "class_attention", graph.Shape{graph.N, bags[1]})
	}
	for _, o := range []struct {
		name, what string
		n          *graph.Node
	}{{"p", "probabilities", p}, {"logp", "log_probabilities", logp}, {"a", "attention", a}} {
		if o.n == nil {
			l.markUnknown(o.name)
			continue
		}
		l.wantOneBag(o.what, o.n)
		l.env[o.name] = o.n
	}
	if p != nil && a != nil {
		b.Output(OutProbabilities, p)
		b.Output(OutAttention, a)
	}
	if classes != nil {
		l.wantOneBag("class_attention", classes)
		b.Output(OutClassAttention, classes)
	}
}

// output returns the value that the spec names as an output of the model, or else the value with the
// usual name. It returns nil if there is none or its shape is wrong.
func (l *lowerer) output(named schema.Str, usual, what string, want graph.Shape) *graph.Node {
	name := cmp.Or(named.V, usual)
	n := l.env[name]
	if l.reported.names[name] {
		l.markUnknown(usual)
		return nil
	}
	if n == nil || l.reported.names["k"] || n.Type == graph.Float && n.Shape.Equal(want) {
		return n
	}
	d := diag.Errorf(named.Pos, "%s must have the shape %v, not %v", what, want, n.Shape)
	for i := range l.spec.Model.Let {
		switch eq := &l.spec.Model.Let[i]; {
		case eq.Name.V != name:
		case named.Written():
			d = d.WithNote("%s is defined at %s", name, eq.Text.Pos)
		default:
			d = l.at(eq, 0, len(eq.Text.V), d.Text)
		}
	}
	if want[0] == graph.B {
		d = d.WithNote("B is the number of bags: bag_sum, bag_mean and bag_max join the instances of each bag")
	}
	l.errs.Add(d)
	l.markUnknown(usual)
	return nil
}

// wantOneBag rejects a prediction that depends on the other bags of a batch, because the exported
// model gets one bag. With running statistics only the inference graph shows this.
func (l *lowerer) wantOneBag(what string, n *graph.Node) {
	if l.training && l.hasStatistics {
		return
	}
	for _, mixer := range n.Mixers() {
		if l.reported.mixers[mixer.Pos] {
			continue // reported: for another output, or as another node of the same call
		}
		l.reported.mixers[mixer.Pos] = true
		l.errs.Add(diag.Errorf(mixer.Pos, "this mixes the rows of different bags on the way to the %s; a prediction is a "+
			"function of one bag", what).
			WithNote("join the instances of a bag with bag_sum, bag_mean, bag_max or bag_softmax; only losses and " +
				"weights.update may mix bags"))
	}
}

// checkInference rejects predictions that depend on inputs of the training graph, and probabilities that do
// not fit the labels.
func (l *lowerer) checkInference() error {
	for _, in := range l.graph.ByOp(graph.OpInput) {
		if in.Name == InInstances || in.Name == InBagOf {
			continue
		}
		return l.spec.AtUserLine(diag.Errorf(l.spec.Model.Probabilities.Pos,
			"the model's outputs depend on %s, which is known only in training", in.Name).
			WithNote("keep S, w and lambda to the loss and the label weights"))
	}
	return l.checkMulti()
}

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
	g, err := b.Optimized()
	out := *p
	out.Infer = g
	return &out, err
}

// logits returns values whose softmax is proportional to the probabilities.
func logits(b *graph.Builder, p *graph.Node) *graph.Node {
	if p.Op == graph.OpSoftmax {
		return p.In[0]
	}
	return b.Log(b.Clamp(p, leastProbability, math.MaxFloat32))
}
