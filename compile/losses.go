// Loss terms and the update of the label weights, equations 4 to 8.

package compile

import (
	"fmt"
	"slices"

	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/language"
)

// excluded is subtracted from a value to exclude it from a softmax or maximum: its exponential is 0 in float32 and
// float64.
const excluded = 1e30

// newWeightsInLoss says for each weights.order whether the loss uses the new label weights, or those of the epoch
// before.
var newWeightsInLoss = map[string]bool{"before_loss": true, "after_loss": false, "after_step": false}

// losses adds the label weights of this epoch (Eq. 7), the loss terms (Eq. 4, 5 or equations) and their weighted sum
// (Eq. 8).
func (l *lowerer) losses() {
	l.pastModel = true
	for i := range l.spec.Let {
		l.lateEquations[l.spec.Let[i].Name.V] = &l.spec.Let[i]
	}
	l.b.Label(OutLabelWeights)
	newWeights := l.newWeights()
	// The update uses other w and p than the losses.
	for name := range l.lateEquations {
		delete(l.env, name)
	}
	if newWeights != nil {
		l.b.Name(newWeights, OutLabelWeights)
		l.b.Output(OutLabelWeights, newWeights)
	}
	if before, ok := lowering(l, newWeightsInLoss, l.spec.Weights.Order); ok && before {
		l.env["w"] = newWeights
	}
	var total *graph.Node
	for i := range l.spec.Loss {
		term := &l.spec.Loss[i]
		name := term.Term()
		l.b.At(term.Kind.Pos).Label(TermPrefix + name)
		value := l.term(term)
		if value == nil {
			l.markUnknown(TermPrefix + term.Kind.V)
			continue
		}
		l.b.Name(value, TermPrefix+name)
		l.b.Output(TermPrefix+name, value)
		l.prog.Terms = append(l.prog.Terms, name)
		if term.Weight.V != 1 {
			value = l.b.Mul(l.b.Scalar(term.Weight.V), value)
		}
		if total == nil {
			total = value
		} else {
			total = l.b.Add(total, value)
		}
	}
	if total != nil {
		l.b.Name(total, OutLoss)
		l.b.Output(OutLoss, total)
	}
}

// known reports whether all names have a value.
func (l *lowerer) known(names ...string) bool {
	return !slices.ContainsFunc(names, func(n string) bool { return l.env[n] == nil })
}

// newWeights computes Eq. 7. The share p_c / sum of p over the candidates is computed as a softmax of
// log p over the candidates, which cannot be 0/0. No gradient flows through the weights. With
// data.labels: multi, nothing changes or uses them.
func (l *lowerer) newWeights() *graph.Node {
	b := l.b
	if l.spec.Multi() {
		if !l.known("w") {
			return nil
		}
		return b.StopGrad(l.env["w"])
	}
	if eq := l.spec.Weights.Update; eq != nil {
		saved := l.env["p"]
		if saved != nil {
			l.env["p"] = b.StopGrad(saved)
		}
		n := l.equation(eq)
		l.env["p"] = saved
		if n == nil || l.reported.names["k"] {
			return nil
		}
		want := graph.Shape{graph.B, graph.Dim(l.prog.Signature.Classes)}
		if !n.Shape.Equal(want) {
			l.errs.Add(l.at(eq, 0, len(eq.Text.V), fmt.Sprintf("the label weights must have the shape %v, not %v", want,
				n.Shape)))
			return nil
		}
		return b.StopGrad(n)
	}
	if !l.known("S", "w", "logp") {
		return nil
	}
	one := b.Scalar(1)
	s, lambda := l.env["S"], l.env["lambda"]
	outside := b.Mul(b.Sub(one, s), b.Scalar(excluded))
	share := b.Softmax(b.Sub(l.env["logp"], outside))
	return b.StopGrad(b.Add(b.Mul(lambda, l.env["w"]), b.Mul(b.Sub(one, lambda), share)))
}

// lossTerms has the unweighted value of each row of language.LossTerms, a scalar; nil if there was an error. The values
// that the row reads are known.
var lossTerms = map[string]func(l *lowerer, t *language.Loss) *graph.Node{
	"disambiguation":       (*lowerer).crossEntropy,
	"binary_cross_entropy": (*lowerer).binaryCrossEntropy,
	"attention":            (*lowerer).attentionLoss,
	"equation":             func(l *lowerer, t *language.Loss) *graph.Node { return l.number(&t.Equation) },
}

// term returns the unweighted value of a loss term, or nil.
func (l *lowerer) term(t *language.Loss) *graph.Node {
	lower, ok := lowering(l, lossTerms, t.Kind)
	if !ok || !l.known(t.Row().Reads...) {
		return nil
	}
	return lower(l, t)
}

// crossEntropy is Eq. 5.
func (l *lowerer) crossEntropy(*language.Loss) *graph.Node {
	return l.b.Neg(l.meanOverBags(l.b.Mul(l.classWeighted(l.env["w"]), l.env["logp"])))
}

// attentionLoss is Eq. 4. A score of 0 has the loss 0.
func (l *lowerer) attentionLoss(*language.Loss) *graph.Node {
	b, a := l.b, l.env["a"]
	logs := l.logOf(a)
	if logs.Op == graph.OpLog && logs.In[0] == a {
		logs = b.Log(b.Maximum(a, b.Scalar(leastProbability)))
	}
	return b.Neg(l.meanOverBags(b.Mul(a, logs)))
}

// binaryCrossEntropy is the mean over bags and classes of -S log p - (1 - S) log(1 - p), with class
// weights as factors of the first part. For p = sigmoid(x), the logarithms are -softplus(-x) and
// -softplus(x), which are finite for any x.
func (l *lowerer) binaryCrossEntropy(*language.Loss) *graph.Node {
	b, labels, one := l.b, l.env["S"], l.b.Scalar(1)
	x := b.Logit(l.env["p"])
	present, absent := b.Mul(l.classWeighted(labels), b.Softplus(b.Neg(x))), b.Mul(b.Sub(one, labels), b.Softplus(x))
	return b.Mul(b.Scalar(1/float64(l.prog.Signature.Classes)), l.meanOverBags(b.Add(present, absent)))
}

// classWeighted multiplies label weights or labels [B, k] by the weights of the classes, if the spec
// has any.
func (l *lowerer) classWeighted(w *graph.Node) *graph.Node {
	want, k := l.spec.Train.ClassWeights, l.prog.Signature.Classes
	if !l.prog.WeighsClasses() {
		return w
	}
	if l.classWeights != nil {
		return l.b.Mul(l.classWeights, w)
	}
	if n := len(want.V.List); n > 0 && n != k && !l.reported.names["k"] {
		l.errs.Add(diag.Errorf(want.Pos, "train.class_weights has %s, the dataset has %s", diag.Count(n, "number"),
			diag.Count(k, "class")))
	}
	l.classWeights = l.b.Input(InClassWeights, graph.Float, graph.Shape{1, graph.Dim(k)})
	return l.b.Mul(l.classWeights, w)
}

// number lowers an equation whose value must be a single number.
func (l *lowerer) number(eq *language.Equation) *graph.Node {
	n := l.equation(eq)
	if n != nil && len(n.Shape) > 0 {
		l.errs.Add(l.at(eq, 0, len(eq.Text.V), fmt.Sprintf("a loss term must be a single number, this has the shape %v",
			n.Shape)).
			WithNote("take the mean or the sum of it"))
		return nil
	}
	return n
}

// logOf returns log x, if possible in a form in which x cannot round to zero.
func (l *lowerer) logOf(x *graph.Node) *graph.Node {
	if x.Op == graph.OpSegmentSoftmax {
		return l.logBagSoftmax(x.In[0])
	}
	return l.b.StableLog(x)
}

// logBagSoftmax returns the logarithm of a softmax over the instances of each bag: the difference to
// the largest value, minus the logarithm of the sum of the exponentials of these differences.
func (l *lowerer) logBagSoftmax(x *graph.Node) *graph.Node {
	b := l.b
	largest := b.StopGrad(b.SegmentMax(x, l.bagOf))
	low := b.Sub(x, b.SegmentGather(largest, l.bagOf))
	sum := b.SegmentSum(b.Exp(low), l.bagOf)
	return b.Sub(low, b.SegmentGather(b.Log(sum), l.bagOf))
}

// meanOverBags sums all elements and divides by the number of bags.
func (l *lowerer) meanOverBags(x *graph.Node) *graph.Node {
	return l.b.Div(l.b.SumAll(x), l.b.SumAll(l.b.Fill(1, graph.Shape{graph.B})))
}
