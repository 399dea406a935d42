// The way from a spec to the graphs of a program: the lowerer and what it declares.

package compile

import (
	"fmt"
	"maps"
	"slices"

	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/language"
)

// SignatureOf returns the signature of a dataset whose instances have the stored shape.
// data.shape may reshape them; data.classes must agree.
func SignatureOf(spec *language.Spec, stored []int, classes int) (Signature, error) {
	sig := Signature{Instance: stored, Classes: classes}
	if want := spec.Data.Classes; want.V > 0 && want.V != classes {
		return sig, spec.AtUserLine(diag.Errorf(want.Pos, "data.classes is %d, the dataset has %s", want.V,
			diag.Count(classes, "class")))
	}
	if shape := spec.Data.Shape; len(shape.V) > 0 {
		if ndarray.Size(shape.V) != ndarray.Size(stored) {
			return sig, spec.AtUserLine(diag.Errorf(shape.Pos, "data.shape %v has %d numbers, an instance of the dataset has "+
				"%d %v",
				shape.V, ndarray.Size(shape.V), ndarray.Size(stored), stored))
		}
		if ndarray.Transposed(stored, shape.V) { // reading the values in another order would mix up the axes
			return sig, spec.AtUserLine(diag.Errorf(shape.Pos, "data.shape is %v, an instance of the dataset %v: transpose "+
				"the array of the dataset", shape.V, stored))
		}
		sig.Instance = shape.V
	}
	return sig, nil
}

// Check reports the shape errors of a spec that may have other errors (language.Draft).
// Values of unknown shape, such as misspelt names, match every shape; with a zero
// signature the instances also do.
func Check(spec *language.Spec, sig Signature) error {
	if spec.Fitted() {
		return nil
	}
	known := sig.Classes > 0
	if !known {
		sig = Signature{Instance: []int{1}, Classes: 2}
	}
	l := newLowerer(&Program{Spec: spec, Signature: sig}, true)
	l.inputs()
	if !known {
		l.markUnknown("X", "H", "S", "w", "d", "h", "k")
	}
	l.build()
	return l.found()
}

// Compile lowers a spec to its inference and training graphs, which are empty for a learner before
// it is fitted. It reports all shape errors of the spec, each at its position.
func Compile(spec *language.Spec, sig Signature) (*Program, error) {
	if sig.Classes < 2 || len(sig.Instance) == 0 || ndarray.Size(sig.Instance) < 1 {
		return nil, fmt.Errorf("a program needs instances with at least one feature and at least 2 classes, not %v and %d",
			sig.Instance, sig.Classes)
	}
	p := &Program{Spec: spec, Signature: sig, Normalize: spec.Data.Normalize.V != "none"}
	if spec.Fitted() {
		p.Train, p.Infer = &graph.Graph{Name: "train"}, &graph.Graph{Name: "infer"}
		return p, nil
	}
	train, infer := newLowerer(p, true), newLowerer(p, false)
	for _, l := range []*lowerer{train, infer} {
		l.inputs()
		l.build()
		if err := l.finish(); err != nil {
			return nil, err
		}
	}
	p.Params, p.Masks = train.params, train.masks
	p.Train, p.Infer = train.graph, infer.graph
	if err := p.lint(train, infer); err != nil {
		return nil, err
	}
	if spec.Weights.Order.V == "after_step" {
		var err error
		if p.Train, p.WeightUpdate, err = splitWeights(p.Train); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// lowerer builds one of the two graphs of a program.
type lowerer struct {
	spec     *language.Spec
	prog     *Program
	training bool
	b        *graph.Builder
	errs     diag.List
	reported reported
	graph    *graph.Graph

	bagOf         *graph.Node
	env           map[string]*graph.Node        // values known by name to equations
	constants     map[string]float64            // extents, sizes and numbers, known by name to equations
	lateEquations map[string]*language.Equation // definitions of losses and weights.update, lowered where they are used
	functions     map[string]*language.UserFunction
	maskOfCall    map[string]*graph.Node // masks of random draws, by the calls that lead to them
	inlined       int                    // calls of functions of the spec so far
	params        []Param
	paramNodes    map[string]*graph.Node // parameter nodes by name
	masks         []Mask
	classWeights  *graph.Node    // the input, which the terms share; nil: no term has read it
	counts        map[string]int // blocks so far, per kind, for parameter names
	pooled        bool           // the blocks have reached one row per bag
	hasStatistics bool           // there are running statistics: the rows of a training batch depend on each other
	paramCount    float64        // numbers in the parameters so far
	pastModel     bool           // losses and weights.update are being lowered
}

// reported lists what has an error already. Nothing is reported twice.
type reported struct {
	names     map[string]bool   // values, whose users are not reported either
	functions map[string]bool   // of the spec
	mixers    map[diag.Pos]bool // places that mix bags
	size      bool              // the graph is too large
}

func newLowerer(p *Program, training bool) *lowerer {
	name := "infer"
	if training {
		name = "train"
	}
	return &lowerer{
		spec: p.Spec, prog: p, training: training, b: graph.NewBuilder(name),
		lateEquations: map[string]*language.Equation{}, functions: map[string]*language.UserFunction{},
		maskOfCall: map[string]*graph.Node{},
		env:        map[string]*graph.Node{}, paramNodes: map[string]*graph.Node{},
		constants: map[string]float64{}, counts: map[string]int{},
		reported: reported{map[string]bool{}, map[string]bool{}, map[diag.Pos]bool{}, false},
	}
}

func (l *lowerer) build() {
	l.blocks()
	l.equations()
	l.outputs()
	if l.training {
		l.losses()
	}
}

// found returns the errors of the spec with their positions.
func (l *lowerer) found() error {
	for i := range l.errs {
		l.errs[i] = l.spec.AtUserLine(l.errs[i])
	}
	return l.errs.Err()
}

// finish optimises and checks the graph.
func (l *lowerer) finish() error {
	if err := l.found(); err != nil {
		return err
	}
	if len(l.reported.names) > 0 {
		return fmt.Errorf("bug: %s has no value in a spec without errors", slices.Sorted(maps.Keys(l.reported.names))[0])
	}
	g, err := l.b.Graph()
	if err != nil {
		return err
	}
	if g, err = graph.Optimize(g); err != nil {
		return fmt.Errorf("bug: cleaning the %s graph: %w", g.Name, err)
	}
	l.graph = pruneInputs(g)
	// Engines have no input for a mask without effect, for example of an equation that nothing uses.
	l.masks = slices.DeleteFunc(l.masks, func(m Mask) bool { return l.graph.Input(m.Name) == nil })
	if err := graph.Verify(l.graph); err != nil {
		return fmt.Errorf("bug: the %s graph is not valid: %w", g.Name, err)
	}
	if l.training {
		return nil
	}
	return l.checkInference()
}

// splitWeights moves the new label weights from a training graph to a separate graph.
func splitWeights(g *graph.Graph) (train, weightUpdate *graph.Graph, err error) {
	train, weightUpdate = &graph.Graph{Name: g.Name, Nodes: g.Nodes}, &graph.Graph{Name: "weight_update", Nodes: g.Nodes}
	for _, o := range g.Outputs {
		part := train
		if o.Name == OutLabelWeights {
			part = weightUpdate
		}
		part.Outputs = append(part.Outputs, o)
	}
	for _, part := range []**graph.Graph{&train, &weightUpdate} {
		if *part, err = graph.Optimize(*part); err == nil {
			*part = pruneInputs(*part)
			err = graph.Verify(*part)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("bug: a graph with label weights after the step: %w", err)
		}
	}
	return train, weightUpdate, nil
}

// inputs declares the inputs. Inputs that no output needs are removed at the end.
func (l *lowerer) inputs() {
	b, k := l.b, graph.Dim(l.prog.Signature.Classes)
	shape := append(graph.Shape{graph.N}, static(l.prog.Signature.Instance)...)
	x := b.Input(InInstances, graph.Float, shape)
	l.bagOf = b.Input(InBagOf, graph.Int, graph.Shape{graph.N})
	l.env["S"] = b.Input(InCandidates, graph.Float, graph.Shape{graph.B, k})
	l.env["w"] = b.Input(InLabelWeights, graph.Float, graph.Shape{graph.B, k})
	l.env["lambda"] = b.Input(InLambda, graph.Float, graph.Shape{})
	l.epoch()
	if l.prog.Normalize && !l.training {
		row := append(graph.Shape{1}, shape[1:]...)
		b.Label("normalize")
		x = b.Div(b.Sub(x, b.Param(ParamMean, row)), b.Param(ParamStd, row))
	}
	l.env["X"], l.env["H"] = x, x
}

// define makes a value known by a name, which also labels its node.
func (l *lowerer) define(name string, n *graph.Node) {
	l.env[name] = n
	l.b.Name(n, name)
}

// markUnknown marks names as having no known value.
func (l *lowerer) markUnknown(names ...string) {
	for _, n := range names {
		l.reported.names[n] = true
		delete(l.env, n)
	}
}

// epoch defines t and T. Predictions use those of the final epoch, so that a value that decays over
// the epochs has its final value in the exported model.
func (l *lowerer) epoch() {
	if l.training {
		l.env["t"] = l.b.Input(InEpoch, graph.Float, graph.Shape{})
		l.env["T"] = l.b.Input(InEpochs, graph.Float, graph.Shape{})
		return
	}
	epochs := l.spec.Train.Epochs.V
	l.constants["t"] = float64(epochs - 1 + l.spec.Weights.FirstEpoch.V)
	l.constants["T"] = float64(epochs)
}

// param declares a parameter, or returns it if it is declared already.
func (l *lowerer) param(name string, init Init, shape ...int) *graph.Node {
	if n := l.paramNodes[name]; n != nil {
		return n
	}
	n := l.b.Param(name, static(shape))
	l.paramNodes[name] = n
	l.params = append(l.params, Param{Name: name, Shape: shape, Init: init})
	l.countParameter(n)
	return n
}

// pruneInputs removes unused inputs except instances and bag_of, so that all programs have these.
func pruneInputs(g *graph.Graph) *graph.Graph {
	live, kept := g.Live(), g.Nodes[:0:0]
	for i, n := range g.Nodes {
		if n.Op == graph.OpInput && !live[i] && n.Name != InInstances && n.Name != InBagOf {
			continue
		}
		n.ID = len(kept)
		kept = append(kept, n)
	}
	g.Nodes = kept
	return g
}

// maxParams is the maximum number of learned numbers of a model, because an ONNX file is a protocol
// buffer of at most 2 GiB.
const maxParams = 1<<29 - 1<<20

// maxOps is the maximum number of operations that a spec describes, before optimisation. Published
// models have some hundred operations. Each takes a thousand bytes or more in every stage, and
// gradients and sessions take many times that.
const maxOps = 20_000

// oversize reports, once, that the graph is too large at the position of a block or an equation.
func (l *lowerer) oversize(pos diag.Pos) bool {
	if l.b.Len() <= maxOps && l.inlined <= maxOps {
		return false
	}
	if !l.reported.size {
		l.reported.size = true
		l.errs.Add(diag.Errorf(pos, "the model has more than %d operations up to here", maxOps))
	}
	return true
}

// countParameter adds the number of elements of p to l.paramCount. It reports, once, that the model has more
// than maxParams numbers.
func (l *lowerer) countParameter(p *graph.Node) {
	before := l.paramCount
	if l.paramCount += p.Shape.Elements(1, 1); before <= maxParams && l.paramCount > maxParams {
		l.errs.Add(diag.Errorf(p.Pos, "the model has %.0f parameters up to here, with the %v of %s; the maximum is %d",
			l.paramCount, p.Shape, p.Name, maxParams).
			WithNote("a model file has at most 2 GiB"))
	}
}
