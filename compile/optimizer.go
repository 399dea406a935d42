// The optimizers, and the state and scalars of their updates.

package compile

import (
	"math"
	"slices"

	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/language"
)

// State vectors of the optimisers, inputs [P] of a step; UpdatedName names the outputs that replace them.
const (
	InVelocity     = "velocity"             // sum of the past gradients with momentum
	InFirstMoment  = "first_moment"         // running mean of the gradients
	InSecondMoment = "second_moment"        // running mean of their squares
	InAccumulated  = "accumulated_gradient" // of the steps since the last update, with train.accumulate
)

// Inputs [1] of a step that change from step to step, see Program.StepScalars.
const (
	InFirstCorrection  = "first_correction"  // 1 / (1 - beta1^n) in update n, from 1
	InSecondCorrection = "second_correction" // 1 / sqrt(1 - beta2^n)
	InGradientShare    = "gradient_share"    // 1 / n in an update from the gradients of n steps
	InUpdateNow        = "update_now"        // 1 in the last step of an update, else 0
)

// Inputs [1] of a step that are the same in all steps of a training, see Program.Settings. They have the names of keys
// of specs.
const (
	InWeightDecay = "train.weight_decay"
	InClip        = "train.clip"
	InMomentum    = "train.momentum"
	InBeta1       = "train.beta1"
	InBeta2       = "train.beta2"
	InAlpha       = "train.alpha"
	InEpsilon     = "train.epsilon"
)

// restOf returns the name of the input with 1 - x for the input x, which float32 would round twice. In the text of an
// XLA program, a name must not begin with a digit.
func restOf(name string) string { return "one_minus_" + name }

// Position is the place of a training step among the updates of the parameters. The zero
// value means the only step of the first update.
type Position struct {
	Update  int  // number of the update that the step belongs to, from 1
	Steps   int  // number of steps whose gradients the update averages, from 1
	Pending bool // whether more steps of the update follow
}

// UpdatedName returns the name of the step output with the new value of a state vector.
func UpdatedName(vector string) string { return "new_" + vector }

// optimizer is a rule that computes new parameters from gradients. All are defined as in
// PyTorch, including the order of operations that matters to rounding.
type optimizer struct {
	state func(t *language.Train) []string // state vectors in addition to the parameters
	// scalars appends the scalars of an update.
	scalars func(to []Scalar, t *language.Train, update int) []Scalar
	// settings appends the scalars that are the same in all updates.
	settings func(to []Scalar, t *language.Train) []Scalar
	// step sets the new values of the state vectors and returns the new parameters.
	step func(u *update, w, g *graph.Node) *graph.Node
}

// optimizers has the rules by the words of train.optimizer.
var optimizers = map[string]optimizer{
	"sgd":     {always(InVelocity), noScalars, momentum, (*update).sgd},
	"adam":    adam,
	"adamw":   adam,
	"rmsprop": {rmspropState, noScalars, rmspropSettings, (*update).rmsprop},
}

var adam = optimizer{always(InFirstMoment, InSecondMoment), corrections, adamSettings, (*update).adam}

func always(names ...string) func(*language.Train) []string {
	return func(*language.Train) []string { return names }
}

func rmspropState(t *language.Train) []string {
	if t.Momentum.V > 0 {
		return []string{InSecondMoment, InVelocity}
	}
	return []string{InSecondMoment}
}

// Scalar is an input [1] of a step.
type Scalar struct {
	Name  string
	Value float64
}

func adamSettings(to []Scalar, t *language.Train) []Scalar {
	return append(decays(decays(to, InBeta1, t.Beta1.V), InBeta2, t.Beta2.V), Scalar{InEpsilon, t.Epsilon.V})
}

func rmspropSettings(to []Scalar, t *language.Train) []Scalar {
	return append(decays(momentum(to, t), InAlpha, t.Alpha.V), Scalar{InEpsilon, t.Epsilon.V})
}

// momentum appends the momentum, unless it is 0.
func momentum(to []Scalar, t *language.Train) []Scalar {
	if t.Momentum.V != 0 {
		to = append(to, Scalar{InMomentum, t.Momentum.V})
	}
	return to
}

// decays appends the decay of a running mean and the share of a new value.
func decays(to []Scalar, name string, beta float64) []Scalar {
	return append(to, Scalar{name, beta}, Scalar{restOf(name), 1 - beta})
}

// Settings appends the inputs [1] of a step that are the same in all steps of a training. Their names and order depend
// only on the optimizer and on which settings are 0: a step has no weight decay, clipping and momentum of 0.
func (p *Program) Settings(to []Scalar) []Scalar {
	t := &p.Spec.Train
	if t.Clip.V != 0 {
		to = append(to, Scalar{InClip, t.Clip.V})
	}
	if t.WeightDecay.V != 0 {
		to = append(to, Scalar{InWeightDecay, t.WeightDecay.V})
	}
	return optimizers[t.Optimizer.V].settings(to, t)
}

func noScalars(to []Scalar, _ *language.Train, _ int) []Scalar { return to }

// corrections are computed in float64: in float32, 1 - 0.999^n has only four correct
// digits in the first updates.
func corrections(to []Scalar, t *language.Train, n int) []Scalar {
	left := func(beta float64) float64 { return -math.Expm1(float64(n) * math.Log(beta)) }
	first, second := 1., 1.
	if beta := t.Beta1.V; beta > 0 {
		first = 1 / left(beta)
	}
	if beta := t.Beta2.V; beta > 0 {
		second = 1 / math.Sqrt(left(beta))
	}
	return append(to, Scalar{InFirstCorrection, first}, Scalar{InSecondCorrection, second})
}

// OptimizerState returns the names of the state vectors [P] of the optimiser. A training
// starts with zeros.
func (p *Program) OptimizerState() []string {
	t := &p.Spec.Train
	names := optimizers[t.Optimizer.V].state(t)
	if accumulates(t) {
		names = append(slices.Clone(names), InAccumulated)
	}
	return names
}

// StateVectors returns the names of the inputs [P] of a step that the outputs UpdatedName(name)
// replace: the parameters and the state of the optimiser.
func (p *Program) StateVectors() []string { return append([]string{InParams}, p.OptimizerState()...) }

// StepScalars appends the inputs [1] of a step that change from step to step, except the learning rate. Their order is
// the same for all steps.
func (p *Program) StepScalars(to []Scalar, at Position) []Scalar {
	t := &p.Spec.Train
	if accumulates(t) {
		now := 1.
		if at.Pending {
			now = 0
		}
		to = append(to, Scalar{InGradientShare, 1 / float64(max(1, at.Steps))}, Scalar{InUpdateNow, now})
	}
	return optimizers[t.Optimizer.V].scalars(to, t, max(1, at.Update))
}

// accumulates reports whether an update averages the gradients of several steps.
func accumulates(t *language.Train) bool { return t.Accumulate.V > 1 }

// update builds the end of a training step.
type update struct {
	b       *graph.Builder
	train   *language.Train
	program *Program
	lr      *graph.Node
	state   map[string]*graph.Node // by name, before the update
	updated map[string]*graph.Node // and after it
}

func newUpdate(b *graph.Builder, p *Program) *update {
	u := &update{b: b, train: &p.Spec.Train, program: p, state: map[string]*graph.Node{},
		updated: map[string]*graph.Node{}}
	for _, name := range p.StateVectors() {
		u.state[name] = b.Input(name, graph.Float, graph.Shape{graph.Dim(p.FlatSize())})
	}
	u.lr = u.scalar(InLR)
	return u
}

func (u *update) scalar(name string) *graph.Node { return u.b.Input(name, graph.Float, graph.Shape{1}) }

func (u *update) params() *graph.Node { return u.state[InParams] }

// apply builds the update from a gradient [P] and returns the new parameters [P].
func (u *update) apply(g *graph.Node) *graph.Node {
	w, statistics := u.params(), g
	if u.program.hasStatistics() {
		u.b.Label("statistics")
		zeros := u.b.Fill(0, g.Shape)
		g, w = u.withStatistics(g, zeros), u.withStatistics(w, zeros)
	}
	if accumulates(u.train) {
		u.b.Label("accumulate")
		g = u.b.Add(u.state[InAccumulated], u.b.Mul(u.scalar(InGradientShare), g))
	}
	sum := g
	g = u.clipped(g)
	u.b.Label("update")
	if u.train.WeightDecay.V != 0 && u.train.Optimizer.V != "adamw" {
		g = u.b.Add(g, u.b.Mul(u.scalar(InWeightDecay), w))
	}
	u.updated[InParams] = optimizers[u.train.Optimizer.V].step(u, w, g)
	if accumulates(u.train) {
		u.orWait(sum)
	}
	if u.program.hasStatistics() {
		u.updated[InParams] = u.withStatistics(u.updated[InParams], statistics)
	}
	return u.updated[InParams]
}

// withStatistics returns a vector [P] with the running statistics of another one.
func (u *update) withStatistics(vector, statistics *graph.Node) *graph.Node {
	var parts []*graph.Node
	at := 0
	for _, q := range u.program.Params {
		from, n := vector, ndarray.Size(q.Shape)
		if q.Statistic {
			from = statistics
		}
		parts, at = append(parts, u.b.Slice(from, 0, at, at+n)), at+n
	}
	return u.b.Concat(0, parts...)
}

// orWait updates the state vectors only in the last step of an accumulation. The other steps change
// only the accumulated gradient. The factors are 0 and 1, so that no rounding changes a value.
func (u *update) orWait(sum *graph.Node) {
	b := u.b
	b.Label("accumulate")
	now := u.scalar(InUpdateNow)
	wait := b.Sub(b.Scalar(1), now)
	for _, name := range u.program.StateVectors() {
		if name == InAccumulated {
			u.updated[name] = b.Mul(wait, sum)
		} else {
			u.updated[name] = b.Add(b.Mul(now, u.updated[name]), b.Mul(wait, u.state[name]))
		}
	}
}

// outputs declares the new state vectors.
func (u *update) outputs() {
	for _, name := range u.program.StateVectors() {
		u.b.Output(UpdatedName(name), u.updated[name])
	}
}

// clipEpsilon is PyTorch's, which keeps the scale of a zero gradient finite.
const clipEpsilon = 1e-6

// clipped scales a gradient g down to the norm train.clip, as PyTorch's clip_grad_norm_:
// g min(1, clip / (norm + 1e-6)).
func (u *update) clipped(g *graph.Node) *graph.Node {
	b := u.b
	if u.train.Clip.V == 0 {
		return g
	}
	b.Label("clip")
	norm := b.Sqrt(b.SumAll(b.Mul(g, g)))
	return b.Mul(b.Minimum(b.Scalar(1), b.Div(u.scalar(InClip), b.Add(norm, b.Scalar(clipEpsilon)))), g)
}

// sgd computes v = mu v + g; w -= lr (g + mu v), or w -= lr v without Nesterov's form.
func (u *update) sgd(w, g *graph.Node) *graph.Node {
	b, move, velocity := u.b, g, g
	if u.train.Momentum.V != 0 {
		mu := u.scalar(InMomentum)
		velocity = b.Add(b.Mul(mu, u.state[InVelocity]), g)
		move = velocity
		if u.train.Nesterov.V {
			move = b.Add(g, b.Mul(mu, velocity))
		}
	}
	u.updated[InVelocity] = velocity
	return b.Sub(w, b.Mul(u.lr, move))
}

// adam computes m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2 and, with the
// corrections c1 and c2 of n updates, w -= lr c1 m / (c2 sqrt(v) + epsilon). Adamw also subtracts lr decay w; adam has
// the decay in g.
func (u *update) adam(w, g *graph.Node) *graph.Node {
	b, t := u.b, u.train
	m, v := u.average(InFirstMoment, InBeta1, g), u.average(InSecondMoment, InBeta2, b.Mul(g, g))
	size := b.Add(b.Mul(u.scalar(InSecondCorrection), b.Sqrt(v)), u.scalar(InEpsilon))
	if t.WeightDecay.V != 0 && t.Optimizer.V == "adamw" {
		w = b.Sub(w, b.Mul(b.Mul(u.lr, u.scalar(InWeightDecay)), w))
	}
	return b.Sub(w, b.Mul(b.Mul(u.lr, u.scalar(InFirstCorrection)), b.Div(m, size)))
}

// rmsprop computes v = alpha v + (1 - alpha) g^2; w -= lr g / (sqrt(v) + epsilon). With
// momentum mu, the velocity u = mu u + g / (sqrt(v) + epsilon) takes the place of the
// quotient.
func (u *update) rmsprop(w, g *graph.Node) *graph.Node {
	b, t := u.b, u.train
	v := u.average(InSecondMoment, InAlpha, b.Mul(g, g))
	move := b.Div(g, b.Add(b.Sqrt(v), u.scalar(InEpsilon)))
	if t.Momentum.V != 0 {
		move = b.Add(b.Mul(u.scalar(InMomentum), u.state[InVelocity]), move)
		u.updated[InVelocity] = move
	}
	return b.Sub(w, b.Mul(u.lr, move))
}

// average updates a running mean with the decay beta, an input: beta mean + (1 - beta) x.
func (u *update) average(name, beta string, x *graph.Node) *graph.Node {
	b := u.b
	u.updated[name] = b.Add(b.Mul(u.scalar(beta), u.state[name]), b.Mul(u.scalar(restOf(beta)), x))
	return u.updated[name]
}
