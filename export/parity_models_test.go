// Models for the tests of parity: shipped, random and saturated ones, and the engines that predict with them.

package export_test

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/export"
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/contract"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/onnxpb"
	"github.com/miplc/miplc/internal/testkit/enginetest"
	"github.com/miplc/miplc/internal/testkit/modeltest"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/runtime"
	"github.com/miplc/miplc/runtime/onnxgo"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/engines"
)

// model is a compiled spec with values for all parameters and statistics.
type model struct {
	name    string
	program *compile.Program
	params  map[string][]float32
}

// shipped returns a shipped spec. Specs on features get the size of Birdsong-MIPL, specs on images
// get images of the given extent, or keep their size if extent is 0.
func shipped(t testing.TB, name string, extent int) *model {
	t.Helper()
	spec, err := language.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	sig := compile.Signature{Instance: []int{38}, Classes: 13}
	if shape := spec.Data.Shape.V; len(shape) > 0 {
		if extent > 0 {
			spec.Data.Shape.V = []int{shape[0], extent, extent}
		}
		sig = compile.Signature{Instance: spec.Data.Shape.V, Classes: 5}
	}
	return drawn(name, modeltest.Compiled(t, spec, sig), 1)
}

// random returns the random spec for a seed.
func random(t testing.TB, seed uint64) *model {
	return drawn(fmt.Sprintf("random%d", seed), modeltest.RandomProgram(t, seed), seed)
}

// drawn draws values for the parameters of a program.
func drawn(name string, p *compile.Program, seed uint64) *model {
	return &model{name: name, program: p, params: modeltest.Start(p, seed).Params}
}

// bags returns the bags of a measurement, distributed like the training data of the model.
func (m *model) bags(sizes []int, seed uint64) export.Comparison {
	return export.Comparison{Instance: m.program.Signature.Instance, Sizes: sizes, Seed: seed,
		Mean: m.params[compile.ParamMean], Std: m.params[compile.ParamStd]}
}

// interpret evaluates the inference graph in float64 and returns the value of every node.
func (m *model) interpret(x []float32, n int) (map[*graph.Node]*graph.Tensor, error) {
	p := m.program
	env := graph.Env{N: n, B: 1, Values: map[string]*graph.Tensor{
		compile.InInstances: graph.NewTensor(append([]int{n}, p.Signature.Instance...), ndarray.Convert[float64](x)...),
		compile.InBagOf:     graph.NewInts(make([]int, n)...),
	}}
	for _, q := range p.Infer.ByOp(graph.OpParam) {
		env.Values[q.Name] = graph.NewTensor(q.Shape.Concrete(n, 1), ndarray.Convert[float64](m.params[q.Name])...)
	}
	all, err := graph.EvalAll(p.Infer, env)
	values := map[*graph.Node]*graph.Tensor{}
	for i, v := range all {
		values[p.Infer.Nodes[i]] = v
	}
	return values, err
}

func (m *model) reference() *export.Reference {
	return export.NewReference(m.program, m.params)
}

func (m *model) gorgonia(t testing.TB) export.Predictor {
	t.Helper()
	e, err := engines.NewGorgonia(m.program)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	if err := e.SetState(&train.State{Params: m.params}); err != nil {
		t.Fatal(err)
	}
	return export.Predictor{Name: "gorgonia", Many: true, Predict: func(x []float32, sizes []int) ([]float32, []float32,
		error) {
		return e.Predict(x, export.BagOf(sizes), len(sizes))
	}}
}

// file exports the model with a signature.
func (m *model) file(t testing.TB, signature string) []byte {
	t.Helper()
	meta := contract.Metadata{Version: "test", Engine: "none", Parity: map[string]float64{}}
	for i := range m.program.Signature.Classes {
		meta.Classes = append(meta.Classes, fmt.Sprint(i))
	}
	spec := *m.program.Spec
	spec.Export.Signature.V = signature
	p := *m.program
	p.Spec = &spec
	pb, err := export.Model(&p, m.params, meta)
	if err != nil {
		t.Fatalf("%s: %v", m.name, err)
	}
	data, err := onnxpb.Marshal(pb)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// backend opens a model in a back end.
func backend(t testing.TB, name string, data []byte, opts ...runtime.Option) (export.Predictor, runtime.Info) {
	t.Helper()
	m, err := runtime.OpenBytes(data, opts...)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	t.Cleanup(func() { m.Close() })
	return export.Predictor{Name: name, Predict: func(x []float32, sizes []int) ([]float32, []float32, error) {
		p, err := m.Predict(context.Background(), runtime.Bag{Instances: x, N: sizes[0]})
		return p.Probabilities, slices.Concat(p.Attention, slices.Concat(p.ClassAttention...)), err
	}}, m.Info()
}

// amongOthers predicts each bag in one run of the batch signature together with two more bags, made
// of its first and of its last instances.
func amongOthers(t testing.TB, data []byte) export.Predictor {
	t.Helper()
	m, err := runtime.OpenBytes(data)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return export.Predictor{Name: "batch signature", Predict: func(x []float32, sizes []int) ([]float32, []float32,
		error) {
		n := sizes[0]
		d, last := len(x)/n, min(n, 3)
		all, err := m.PredictBatch(context.Background(), []runtime.Bag{
			{Instances: x[:d], N: 1}, {Instances: x, N: n}, {Instances: x[(n-last)*d:], N: last}}, nil)
		if err != nil {
			return nil, nil, err
		}
		return all[1].Probabilities, all[1].Attention, nil
	}}
}

// engines returns all engines that can predict with the model. The batch signature of onnxruntime
// counts as another engine: it uses another file and predicts other bags in the same run.
func (m *model) engines(t testing.TB) []export.Predictor {
	t.Helper()
	enginetest.Library(t)
	list := []export.Predictor{m.reference().Engine("interpreter"), m.gorgonia(t)}
	file := m.file(t, export.SignatureBag)
	ort, info := backend(t, "onnxruntime", file)
	list = append(list, ort)
	if slices.Contains(info.Backends, contract.BackendONNXGo) {
		pure, _ := backend(t, "onnx-go", file, runtime.WithBackend(onnxgo.Backend()))
		list = append(list, pure)
	}
	return append(list, amongOthers(t, m.file(t, export.SignatureBatch)))
}

// worst records the largest difference of each pair of engines.
type worst struct {
	pairs map[string]float64
	where map[string]string
	order []string
}

func (w *worst) add(name string, r *export.Agreement) {
	if w.pairs == nil {
		w.pairs, w.where = map[string]float64{}, map[string]string{}
	}
	for _, p := range r.Pairs {
		key := p.A + "/" + p.B
		if _, ok := w.pairs[key]; !ok {
			w.order = append(w.order, key)
		}
		if p.MaxAbsDiff >= w.pairs[key] {
			w.pairs[key], w.where[key] = p.MaxAbsDiff, fmt.Sprintf("%s, bag of %d", name, p.WorstBag)
		}
	}
}

func (w *worst) log(t testing.TB) {
	for _, key := range w.order {
		t.Logf("%-32s %.2g (%s)", key, w.pairs[key], w.where[key])
	}
}

// hold measures the agreement and fails if engines disagree.
func hold(t testing.TB, m *model, engines []export.Predictor, o export.Comparison) *export.Agreement {
	t.Helper()
	r, err := export.Compare(engines, o)
	if err != nil {
		t.Fatalf("%s: %v", m.name, err)
	}
	if err := r.Err(); err != nil {
		t.Errorf("%s: %v", m.name, err)
	}
	return r
}

// scoreOf returns the node of the attention scores s, before the sigmoid or softmax. It returns nil
// if the attention is computed in another way.
func scoreOf(g *graph.Graph) *graph.Node {
	n := g.Output(compile.OutAttention)
	if n.Op == graph.OpExp { // exp(-softplus(-s))
		for _, op := range []graph.Op{graph.OpExp, graph.OpNeg, graph.OpSoftplus, graph.OpNeg} {
			if n.Op != op {
				return nil
			}
			n = n.In[0]
		}
		return n
	}
	if n.Op == graph.OpSigmoid || n.Op == graph.OpSegmentSoftmax && n.In[0].Op != graph.OpFill {
		return n.In[0]
	}
	return nil
}

// linear returns the names of the parameters that s is proportional to.
func linear(s *graph.Node) []string {
	switch s.Op {
	case graph.OpParam:
		return []string{s.Name}
	case graph.OpAdd:
		return append(linear(s.In[0]), linear(s.In[1])...)
	case graph.OpMatMul:
		return linear(s.In[1])
	case graph.OpReshape, graph.OpExpand, graph.OpDiv:
		return linear(s.In[0])
	}
	return nil
}

// span returns the minimum and maximum of a node on the bags of o.
func (m *model) span(t testing.TB, s *graph.Node, o export.Comparison) (lo, hi float64) {
	t.Helper()
	lo, hi = math.Inf(1), math.Inf(-1)
	for j, n := range o.Sizes {
		values, err := m.interpret(o.Instances(j), n)
		if err != nil {
			t.Fatal(err)
		}
		lo, hi = min(lo, slices.Min(values[s].Data)), max(hi, slices.Max(values[s].Data))
	}
	return lo, hi
}

// statistics returns the statistics of the normalisation, if there is one.
func (m *model) statistics() map[string][]float32 {
	s := map[string][]float32{}
	if m.program.Normalize {
		s[compile.ParamMean], s[compile.ParamStd] = m.params[compile.ParamMean], m.params[compile.ParamStd]
	}
	return s
}

// grown returns the model with all learned parameters multiplied by a number.
func (m *model) grown(by float32) *model {
	g := &model{name: m.name, program: m.program, params: map[string][]float32{}}
	for name, v := range m.params {
		g.params[name] = slices.Clone(v)
		if name != compile.ParamMean && name != compile.ParamStd {
			for i := range g.params[name] {
				g.params[name][i] *= by
			}
		}
	}
	return g
}

// stretched scales the parameters of the scores so that the score of largest magnitude becomes
// reach. It returns nil if all scores are zero.
func (m *model) stretched(t testing.TB, s *graph.Node, o export.Comparison, reach float64) *model {
	t.Helper()
	lo, hi := m.span(t, s, o)
	extreme := hi
	if -lo > hi {
		extreme = lo
	}
	if extreme == 0 {
		return nil
	}
	g, names := m.grown(1), linear(s)
	slices.Sort(names)
	for _, name := range slices.Compact(names) { // a parameter may be in several terms
		for i := range g.params[name] {
			g.params[name][i] *= float32(reach / extreme)
		}
	}
	return g
}

// rounding returns how far float32 rounding alone changes the predictions of the bags of o.
func (m *model) rounding(t testing.TB, o export.Comparison) float64 {
	t.Helper()
	worst := 0.0
	for j, n := range o.Sizes {
		p, a, err := m.reference().Rounding(o.Instances(j), n)
		if err != nil {
			t.Fatal(err)
		}
		worst = max(worst, p, a)
	}
	return worst
}

// saturated returns a model whose scores have the given magnitude and sign on the bags of o, by
// scaling the parameters of the scores. If the scores are small, or differ little between
// instances, the factor is so large that the rounding of the features affects the prediction.
// saturated therefore draws parameters several times, keeps the draw with the smallest effect and
// returns that effect as rounding. The model is nil if there are no scores, if all are zero, or if
// no parameter scales them (MIPLMA standardises them).
func (m *model) saturated(t testing.TB, o export.Comparison, reach float64) (best *model, rounding float64) {
	t.Helper()
	s := scoreOf(m.program.Infer)
	if s == nil || len(linear(s)) == 0 {
		return nil, 0
	}
	rounding = math.Inf(1)
	for attempt := uint64(0); attempt < 6 && !(rounding < 1e-6); attempt++ {
		g := m
		if attempt > 0 {
			g = drawn(m.name, m.program, o.Seed+1000*attempt)
			maps.Copy(g.params, m.statistics())
		}
		if g = g.grown(1+3*float32(attempt%2)).stretched(t, s, o, reach); g == nil {
			continue
		}
		if r := g.rounding(t, o); r < rounding {
			best, rounding = g, r
		}
	}
	if best == nil {
		return nil, 0
	}
	lo, hi := best.span(t, s, o)
	if reach > 0 && hi < 50 || reach < 0 && lo > -50 || max(hi, -lo) > 60.001 {
		t.Fatalf("%s: scores between %g and %g", m.name, lo, hi)
	}
	best.name = fmt.Sprintf("%s, scores to %+g", m.name, reach)
	return best, rounding
}
