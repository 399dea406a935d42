// Checks for specs that are valid but cannot work, by facts that hold for all data and by trying the model.

package compile

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/language/schema"
)

// sure is the probability that a good model must be able to give.
const sure = 0.9

// WarningCode is the kind of a warning. It stays the same when the text changes.
type WarningCode int

// Kinds of warnings.
const (
	LowProbabilities WarningCode = iota // no probability can come near 1, whatever the parameters are
	EqualAttention                      // all instances of a bag have the same attention
	UselessTerm                         // no parameter changes a loss term
	FixedParameter                      // no gradient reaches a parameter
)

// Warning is a probable mistake in a spec.
type Warning struct {
	Code WarningCode
	Text string // with its position
}

// WarningTexts returns the texts of the warnings.
func (p *Program) WarningTexts() (texts []string) {
	for _, w := range p.Warnings {
		texts = append(texts, w.Text)
	}
	return texts
}

// Warned reports whether there is a warning of a kind.
func (p *Program) Warned(code WarningCode) bool {
	return slices.ContainsFunc(p.Warnings, func(w Warning) bool { return w.Code == code })
}

// lint returns an error for a model that cannot work, and adds warnings about probable mistakes to the program.
func (p *Program) lint(train, infer *lowerer) error {
	var errs diag.List
	train.lintLoss(&errs)
	infer.lintPredictions(&errs)
	for i, d := range errs {
		errs[i] = p.Spec.AtUserLine(d)
	}
	return errs.Err()
}

// warn adds a warning to the program.
func (l *lowerer) warn(code WarningCode, pos diag.Pos, format string, args ...any) {
	l.prog.Warnings = append(l.prog.Warnings, Warning{code, diag.Errorf(pos, format, args...).Error()})
}

// lintPredictions checks the outputs of the inference graph.
func (l *lowerer) lintPredictions(errs *diag.List) {
	facts := graph.Analyze(l.graph, rangeOfLeaf)
	p, k := l.graph.Output(OutProbabilities), l.prog.Signature.Classes
	at := l.placeOf(l.spec.Model.Probabilities, "p")
	// The number of instances of a bag may decide, too: bag_of is known only for counts.
	if leaves := facts.Leaves(p, false); !leaves[l.graph.Input(InInstances)] && !leaves[l.graph.Input(InBagOf)] {
		errs.Add(diag.Errorf(at, "the probabilities do not depend on the instances: every bag gets the same prediction").
			WithNote("use H, the result of the blocks, or X, the instances, on the way to the probabilities"))
		return
	}
	most, least := math.Inf(-1), math.Inf(-1) // largest possible and largest certain value
	for c := range k {
		r := facts.Range(p, c)
		most, least = math.Max(most, r.Hi), math.Max(least, r.Lo)
	}
	if l.spec.Multi() {
		least, most = l.spec.Model.Threshold.V, 1
	}
	for c := range k {
		if hi := facts.Range(p, c).Hi; hi < least-1e-9 {
			errs.Add(diag.Errorf(at, "class %d of %d can never be predicted: its probability is at most %.3g, which is too "+
				"small in every bag", c+1, k, hi))
		}
	}
	if most < sure {
		l.warn(LowProbabilities, at, "no probability can exceed %.3g: use them to rank the classes, not as probabilities",
			most)
	}
	if a := l.graph.Output(OutAttention); l.prog.Attends && facts.Even(a) {
		l.warn(EqualAttention, l.placeOf(l.spec.Model.Attention, "a"), "the attention is the same for all instances of a "+
			"bag: it tells nothing about them")
	}
}

// lintLoss checks the loss, its terms and the parameters of the training graph. A loss that no parameter changes is an
// error, because training would have no effect.
func (l *lowerer) lintLoss(errs *diag.List) {
	facts := graph.Analyze(l.graph, rangeOfLeaf)
	reached := facts.Leaves(l.graph.Output(OutLoss), true)
	if !anyParam(reached) {
		term := &l.spec.Loss[0]
		pos := term.Kind.Pos
		if term.Equation.Text.Written() {
			pos = term.Equation.Text.Pos
		}
		errs.Add(diag.Errorf(pos, "no parameter can change the loss: there is nothing to train").
			WithNote("a term counts when its weight is not 0 and it depends on a parameter of the model outside of " +
				"stop_gradient"))
		return
	}
	for i := range l.spec.Loss {
		term := &l.spec.Loss[i]
		learns := anyParam(facts.Leaves(l.graph.Output(TermPrefix+term.Term()), true))
		if term.Weight.V != 0 && !learns {
			l.warn(UselessTerm, term.Kind.Pos, "the loss term %s has no effect: no parameter can change it", term.Term())
		}
	}
	for i := range l.params {
		q := &l.params[i]
		if !q.Statistic && !reached[l.graph.Param(q.Name)] {
			l.warn(FixedParameter, l.placeOfParam(q.Name), "the parameter %s keeps its initial value: no gradient of the "+
				"loss reaches it", q.Name)
		}
	}
}

func anyParam(leaves map[*graph.Node]bool) bool {
	for n := range leaves {
		if n.Op == graph.OpParam {
			return true
		}
	}
	return false
}

// rangeOfLeaf returns the range of an input or parameter of the graphs.
func rangeOfLeaf(n *graph.Node) graph.Interval {
	switch n.Name {
	case InCandidates, InLabelWeights, InLambda:
		return graph.Interval{Lo: 0, Hi: 1}
	case InEpoch, InEpochs, InClassWeights:
		return graph.Interval{Lo: 0, Hi: math.Inf(1)}
	}
	return graph.Anything
}

// placeOf returns the position of the equation that defines an output.
func (l *lowerer) placeOf(named schema.Str, usual string) diag.Pos {
	name := cmp.Or(named.V, usual)
	for i := range l.spec.Model.Let {
		if eq := &l.spec.Model.Let[i]; eq.Name.V == name {
			return eq.Text.Pos
		}
	}
	return l.spec.Model.Pos
}

func (l *lowerer) placeOfParam(name string) diag.Pos {
	for i := range l.spec.Model.Params {
		if p := &l.spec.Model.Params[i]; p.Name.V == name {
			return p.Name.Pos
		}
	}
	return l.spec.Model.Pos
}

// maxTried is the number of parameters up to which checkMulti evaluates a model.
const maxTried = 1e7

// checkMulti rejects equations for several labels per bag whose probabilities sum to 1. Many forms have
// this sum, such as the mean of a softmax over instances, so it evaluates the graph: with random
// parameters, the probabilities of classes that do not depend on each other have another sum.
func (l *lowerer) checkMulti() error {
	if !l.spec.Multi() || l.paramCount > maxTried {
		return nil
	}
	sums, err := sumsOfClasses(l.graph)
	if err != nil {
		return nil // not a statement about the sum: the engines report it
	}
	for _, sum := range sums {
		if !(math.Abs(sum-1) < 1e-9) {
			return nil
		}
	}
	m := &l.spec.Model
	for i := range m.Let {
		if m.Let[i].Name.V == m.Probabilities.V {
			return l.sumError(m.Let[i].Text.Pos)
		}
	}
	return l.sumError(m.Probabilities.Pos)
}

// sumsOfClasses returns the sum of the probabilities of some bags.
func sumsOfClasses(g *graph.Graph) ([]float64, error) {
	const bags, instances = 3, 6
	rng := ndarray.NewStream(1, "multi")
	env := graph.Env{N: instances, B: bags, Values: map[string]*graph.Tensor{InBagOf: graph.NewInts(0, 0, 1, 1, 2, 2)}}
	for _, n := range append(g.ByOp(graph.OpParam), g.ByOp(graph.OpInput)...) {
		if n.Type != graph.Float {
			continue // bag_of
		}
		shape, scale := ndarray.Convert[int](n.Shape), 1.0
		if n.Op == graph.OpInput {
			shape[0] = instances
		} else if len(shape) > 0 {
			scale = 1 / float64(shape[0])
		}
		t := graph.NewTensor(shape)
		for i := range t.Data {
			t.Data[i] = scale * (0.5 + rng.Float64()) // positive, as variances must be
		}
		env.Values[n.Name] = t
	}
	out, err := graph.Eval(g, env)
	if err != nil {
		return nil, err
	}
	p := out[OutProbabilities]
	sums := make([]float64, bags)
	for i, v := range p.Data {
		sums[i/p.Shape[1]] += v
	}
	return sums, nil
}

// sumError reports probabilities that sum to 1 at their equation or, if it is inherited, at data.labels.
func (l *lowerer) sumError(pos diag.Pos) error {
	d := diag.Errorf(pos, "the probabilities of the classes sum to 1, but data.labels is multi")
	if labels := l.spec.Data.Labels.Pos; l.spec.ExtendedBy(pos, labels) {
		at := l.spec.AddSource(d)
		d.Pos = labels
		d = d.WithNote("inherited from %s: %s", pos, strings.TrimSpace(at.Line))
	}
	return l.spec.AddSource(d).WithNote("give each class a probability by itself, such as p: sigmoid(logits) and logp: " +
		"log(sigmoid(logits))")
}
