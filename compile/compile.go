package compile

import (
	"fmt"

	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/specs"
)

// SignatureOf settles what the program sees of a data set whose instances have
// the stored shape: data.shape may reshape them, data.classes must agree.
func SignatureOf(spec *specs.Spec, stored []int, classes int) (Signature, error) {
	sig := Signature{Instance: stored, Classes: classes}
	if want := spec.Data.Classes; want.V > 0 && want.V != classes {
		return sig, spec.Locate(diag.Errorf(want.Pos, "data.classes is %d, the data set has %d classes", want.V, classes))
	}
	if shape := spec.Data.Shape; len(shape.V) > 0 {
		if volume(shape.V) != volume(stored) {
			return sig, spec.Locate(diag.Errorf(shape.Pos, "data.shape %v holds %d numbers, an instance of the data set has %d %v",
				shape.V, volume(shape.V), volume(stored), stored))
		}
		sig.Instance = shape.V
	}
	return sig, nil
}

// Compile lowers a spec to its inference and training graphs. All shape errors
// of the spec are reported together, each at its place.
func Compile(spec *specs.Spec, sig Signature) (*Program, error) {
	if sig.Classes < 2 || len(sig.Instance) == 0 || volume(sig.Instance) < 1 {
		return nil, fmt.Errorf("a program needs instances with at least one feature and at least 2 classes, not %v and %d", sig.Instance, sig.Classes)
	}
	if l := spec.Learner; l != nil {
		return nil, spec.Locate(diag.Errorf(l.Kind.Pos, "learner %s is fitted to bags: there is nothing to compile before that", l.Kind.V))
	}
	p := &Program{Spec: spec, Signature: sig, Normalize: spec.Data.Normalize.V != "none"}
	train := newLowering(p, true)
	train.lower()
	if err := train.finish(); err != nil {
		return nil, err
	}
	infer := newLowering(p, false)
	infer.lower()
	if err := infer.finish(); err != nil {
		return nil, err
	}
	p.Params, p.Masks = train.params, train.masks
	p.Train, p.Infer = train.graph, infer.graph
	if spec.Weights.Order.V == "after_step" {
		var err error
		if p.Train, p.Renew, err = splitWeights(p.Train); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// lowering builds one of the two graphs of a program.
type lowering struct {
	spec     *specs.Spec
	prog     *Program
	training bool
	b        *graph.Builder
	errs     diag.List
	graph    *graph.Graph

	bagOf   *graph.Node
	env     map[string]*graph.Node // values known by name to equations
	numbers map[string]float64     // extents, sizes and numbers, known by name to equations
	failed  map[string]bool        // names whose definition has an error: their users are not reported again
	params  []Param
	nodes   map[string]*graph.Node // parameter nodes by name
	masks   []Mask
	counts  map[string]int    // blocks so far, per kind, for parameter names
	mixers  map[diag.Pos]bool // places reported to mix bags
	pooled  bool              // the blocks have reached one row per bag
}

func newLowering(p *Program, training bool) *lowering {
	name := "infer"
	if training {
		name = "train"
	}
	return &lowering{
		spec: p.Spec, prog: p, training: training, b: graph.NewBuilder(name),
		env: map[string]*graph.Node{}, nodes: map[string]*graph.Node{}, failed: map[string]bool{}, numbers: map[string]float64{}, counts: map[string]int{}, mixers: map[diag.Pos]bool{},
	}
}

func (l *lowering) lower() {
	l.inputs()
	if !l.blocks() {
		return
	}
	l.equations()
	if len(l.errs) > 0 {
		return
	}
	l.outputs()
	if l.training && len(l.errs) == 0 {
		l.losses()
	}
}

// finish cleans and checks the graph.
func (l *lowering) finish() error {
	if err := l.b.Err(); err != nil && len(l.errs) == 0 {
		l.errs.AddError(l.spec.Model.Pos, err)
	}
	if len(l.errs) > 0 {
		for i := range l.errs {
			l.errs[i] = l.spec.Locate(l.errs[i])
		}
		return l.errs.Err()
	}
	g, err := l.b.Graph()
	if err != nil {
		return err
	}
	if g, err = graph.Optimize(g); err != nil {
		return fmt.Errorf("bug: cleaning the %s graph: %w", g.Name, err)
	}
	l.graph = pruneInputs(g)
	if err := graph.Verify(l.graph); err != nil {
		return fmt.Errorf("bug: the %s graph is not valid: %w", g.Name, err)
	}
	if l.training {
		return l.checkLoss()
	}
	return l.checkInference()
}

// checkLoss refuses a loss that no parameter can change: training would be
// waiting.
func (l *lowering) checkLoss() error {
	if l.graph.Output(OutLoss).Learns() {
		return nil
	}
	term := &l.spec.Loss[0]
	pos := term.Kind.Pos
	if term.Equation.Text.Set() {
		pos = term.Equation.Text.Pos
	}
	return l.spec.Locate(diag.Errorf(pos, "no parameter can change the loss: there is nothing to train").
		WithNote("a term counts when its weight is not 0 and it depends on a parameter of the model outside of stop_gradient"))
}

// checkInference refuses predictions that would need what only training knows.
func (l *lowering) checkInference() error {
	for _, in := range l.graph.ByOp(graph.OpInput) {
		if in.Name == InInstances || in.Name == InBagOf {
			continue
		}
		return l.spec.Locate(diag.Errorf(l.spec.Model.Probabilities.Pos,
			"the model's outputs depend on %s, which is known in training alone", in.Name).
			WithNote("keep S, w and lambda to the loss and the label weights"))
	}
	return nil
}

// splitWeights takes the new label weights out of a training graph into a graph
// of their own.
func splitWeights(g *graph.Graph) (train, renew *graph.Graph, err error) {
	part := func(name string, belongs func(output string) bool) *graph.Graph {
		b := graph.NewBuilder(name)
		copied := b.Copy(g, nil)
		for _, o := range g.Outputs {
			if belongs(o.Name) {
				b.Output(o.Name, copied[o.Node])
			}
		}
		out, e := b.Graph()
		if e == nil {
			out, e = graph.Optimize(out)
		}
		if e == nil {
			out = pruneInputs(out)
			e = graph.Verify(out)
		}
		if e != nil && err == nil {
			err = fmt.Errorf("bug: the %s graph with label weights after the step: %w", name, e)
		}
		return out
	}
	train = part(g.Name, func(o string) bool { return o != OutWeights })
	renew = part("renew", func(o string) bool { return o == OutWeights })
	return train, renew, err
}

// inputs declares what is fed. Inputs that no output needs are removed at the end.
func (l *lowering) inputs() {
	b, k := l.b, graph.Dim(l.prog.Signature.Classes)
	shape := graph.Shape{graph.N}
	for _, e := range l.prog.Signature.Instance {
		shape = append(shape, graph.Dim(e))
	}
	x := b.Input(InInstances, graph.Float, shape)
	l.bagOf = b.Input(InBagOf, graph.Int, graph.Shape{graph.N})
	l.env["S"] = b.Input(InCandidates, graph.Float, graph.Shape{graph.B, k})
	l.env["w"] = b.Input(InWeights, graph.Float, graph.Shape{graph.B, k})
	l.env["lambda"] = b.Input(InLambda, graph.Float, graph.Shape{})
	l.epoch()
	if l.prog.Normalize && !l.training {
		row := append(graph.Shape{1}, shape[1:]...)
		x = b.Div(b.Sub(x, b.Param(ParamMean, row)), b.Param(ParamStd, row))
	}
	l.env["X"], l.env["H"] = x, x
}

// epoch makes t and T known. A prediction has those of the last epoch: what
// decays over the epochs keeps its final value in the exported model.
func (l *lowering) epoch() {
	if l.training {
		l.env["t"] = l.b.Input(InEpoch, graph.Float, graph.Shape{})
		l.env["T"] = l.b.Input(InEpochs, graph.Float, graph.Shape{})
		return
	}
	epochs := l.spec.Train.Epochs.V
	l.numbers["t"] = float64(epochs - 1 + l.spec.Weights.FirstEpoch.V)
	l.numbers["T"] = float64(epochs)
}

// param declares a learned value, or returns it when it exists already.
func (l *lowering) param(name string, init Init, shape ...int) *graph.Node {
	if n := l.nodes[name]; n != nil {
		return n
	}
	s := make(graph.Shape, len(shape))
	for i, e := range shape {
		s[i] = graph.Dim(e)
	}
	n := l.b.Param(name, s)
	l.nodes[name] = n
	l.params = append(l.params, Param{Name: name, Shape: shape, Init: init})
	return n
}

// outputs settles attention, probabilities and their logarithm.
func (l *lowering) outputs() {
	m, b := &l.spec.Model, l.b
	named := func(v specs.Str, fallback string) *graph.Node {
		if v.V == "" {
			return l.env[fallback]
		}
		if n := l.env[v.V]; n != nil {
			return n
		}
		l.errs.Add(diag.Errorf(v.Pos, "the model defines no value called %q", v.V))
		return nil
	}
	p, logp, a := named(m.Probabilities, "p"), named(m.LogProbabilities, "logp"), named(m.Attention, "a")
	if len(l.errs) > 0 {
		return
	}
	if p == nil {
		l.errs.Add(diag.Errorf(m.Pos, "the model has no class probabilities").
			WithNote("end the blocks in a classifier, or name an equation with probabilities:"))
		return
	}
	bags := graph.Shape{graph.B, graph.Dim(l.prog.Signature.Classes)}
	if !l.wantShape(m.Probabilities, m.Pos, "probabilities", p, bags) {
		return
	}
	if logp == nil || (m.Probabilities.V != "" && m.LogProbabilities.V == "") {
		logp = l.logOf(p)
	}
	l.wantShape(m.LogProbabilities, m.Pos, "log_probabilities", logp, bags)
	if a == nil {
		// Pooling without scores weighs every instance alike.
		a = b.SegmentSoftmax(b.Fill(0, graph.Shape{graph.N, 1}), l.bagOf)
	}
	l.wantShape(m.Attention, m.Pos, "attention", a, graph.Shape{graph.N, 1})
	l.wantOneBag("probabilities", p)
	l.wantOneBag("log_probabilities", logp)
	l.wantOneBag("attention", a)
	l.env["p"], l.env["logp"], l.env["a"] = p, logp, a
	b.Output(OutProbabilities, p)
	b.Output(OutAttention, a)
}

func (l *lowering) wantShape(v specs.Str, fallback diag.Pos, what string, n *graph.Node, want graph.Shape) bool {
	pos := v.Pos
	if !v.Set() {
		pos = fallback
	}
	if n.Type == graph.Float && n.Shape.Equal(want) {
		return true
	}
	l.errs.Add(diag.Errorf(pos, "%s must have the shape %v, not %v", what, want, n.Shape))
	return false
}

// wantOneBag refuses a prediction that the other bags of a batch would change: it
// would not be that of the exported model, which sees one bag.
func (l *lowering) wantOneBag(what string, n *graph.Node) {
	for _, mixer := range n.Mixers() {
		if l.mixers[mixer.Pos] {
			continue // reported: for another output, or as another node of the same call
		}
		l.mixers[mixer.Pos] = true
		l.errs.Add(diag.Errorf(mixer.Pos, "this mixes the rows of different bags, and the %s depend on it; a prediction is a function of one bag", what).
			WithNote("join the instances of a bag with bag_sum, bag_mean, bag_max or bag_softmax; only losses and weights.update may mix bags"))
	}
}

// pruneInputs removes inputs that nothing reads. Instances and bag_of stay, so
// that every program is fed alike.
func pruneInputs(g *graph.Graph) *graph.Graph {
	used := map[*graph.Node]bool{}
	for _, n := range g.Nodes {
		for _, in := range n.In {
			used[in] = true
		}
	}
	for _, o := range g.Outputs {
		used[o.Node] = true
	}
	kept := g.Nodes[:0:0]
	for _, n := range g.Nodes {
		if n.Op == graph.OpInput && !used[n] && n.Name != InInstances && n.Name != InBagOf {
			continue
		}
		n.ID = len(kept)
		kept = append(kept, n)
	}
	g.Nodes = kept
	return g
}

func volume(shape []int) int {
	n := 1
	for _, e := range shape {
		n *= e
	}
	return n
}
