package plaggd

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/learners"
)

// model predicts f(x) = b + sum_i (k(x, x_i) - c) a_i. The columns of a sum to
// 0, so that the constant c changes nothing but the rounding: with c the mean of
// the kernel the terms are small. The vectors are centred for the same reason.
type model struct {
	set           Settings
	shape         []int // of an instance
	dim, classes  int
	normalization *data.Normalization
	vectors       *mat.Dense // of the training bags [m, d]
	centre        []float64  // their mean [d]
	centred       *mat.Dense // vectors less centre

	width, level float64
	coefficients *mat.Dense // a [m, k]
	bias         []float64  // b [k]
}

func newModel(set Settings, p *learners.Problem) *model {
	m := &model{set: set, shape: p.Data.Shape, dim: p.Data.Dim(), classes: p.Data.Classes, normalization: p.Normalization}
	m.vectors = vectorsOf(set.Vector, p)
	n, d := m.vectors.Dims()
	m.centre = make([]float64, d)
	for i := range n {
		floats.Add(m.centre, m.vectors.RawRowView(i))
	}
	floats.Scale(1/float64(n), m.centre)
	m.centred = mat.DenseCopyOf(m.vectors)
	for i := range n {
		floats.Sub(m.centred.RawRowView(i), m.centre)
	}
	return m
}

// keep takes over the result of the regression.
func (m *model) keep(r *ridge, s *solution) {
	m.width, m.level = r.width, r.level
	m.coefficients, m.bias = s.coefficients, s.bias
	m.vectors = nil // the centred ones are enough
}

// Tolerance is the one of all models.
func (m *model) Tolerance() float64 { return 0 }

// Predict gives max(f, 0) / sum(max(f, 0)): the outputs sum to 1 over the
// classes, but may be negative. The label is that of the largest output.
func (m *model) Predict(instances []float32, n int) (probabilities, attention []float64, err error) {
	if n < 1 || len(instances) != n*m.dim {
		return nil, nil, fmt.Errorf("a bag of %d instances of %d features has %d numbers, not %d", n, m.dim, n*m.dim, len(instances))
	}
	x := make([]float64, m.set.Vector.width(m.dim))
	m.set.Vector.of(learners.Normalized(instances, m.normalization), m.dim, x)
	floats.Sub(x, m.centre)
	f := append([]float64(nil), m.bias...)
	rows, _ := m.centred.Dims()
	for i := range rows {
		d := floats.Distance(x, m.centred.RawRowView(i), 2) / m.width
		floats.AddScaled(f, math.Exp(-d*d/2)-m.level, m.coefficients.RawRowView(i))
	}
	for c := range f {
		f[c] = math.Max(f[c], 0)
	}
	floats.Scale(1/floats.Sum(f), f)
	attention = make([]float64, n)
	for i := range attention {
		attention[i] = 1 / float64(n)
	}
	return f, attention, nil
}

// Names of the parameters in the inference graph.
const (
	ParamCentre       = "vectors.centre"
	ParamVectors      = "vectors.kept"  // [d, m], centred, in units of sqrt(2) sigma
	ParamNorms        = "vectors.norms" // [1, m], their squared lengths
	ParamCoefficients = "regression.coefficients"
	ParamBias         = "regression.bias"
)

// Graph gives the prediction as a graph.
func (m *model) Graph() (*graph.Graph, map[string][]float32, error) {
	b, params := graph.NewBuilder("infer"), map[string][]float32{}
	x, bagOf := learners.Inputs(b, m.shape, m.normalization, params)
	if len(m.shape) != 1 {
		x = b.Reshape(x, graph.Shape{graph.N, graph.Dim(m.dim)})
	}
	z := b.Sub(m.pool(b, x, bagOf), m.param(b, params, ParamCentre, m.centre, 1, len(m.centre)))
	unit := 1 / (math.Sqrt2 * m.width)
	z = b.Mul(z, b.Scalar(unit))
	rows, d := m.centred.Dims()
	kept, norms := mat.NewDense(d, rows, nil), make([]float64, rows)
	kept.Apply(func(i, j int, _ float64) float64 { return unit * m.centred.At(j, i) }, kept)
	for j := range norms {
		norms[j] = math.Pow(unit*floats.Norm(m.centred.RawRowView(j), 2), 2)
	}
	cross := b.MatMul(z, m.param(b, params, ParamVectors, kept.RawMatrix().Data, d, rows))
	squares := b.Add(b.Sum(b.Mul(z, z), true, 1), m.param(b, params, ParamNorms, norms, 1, rows))
	distances := b.Relu(b.Sub(squares, b.Mul(cross, b.Scalar(2)))) // [B, m], at least 0 in spite of rounding
	kernel := b.Sub(b.Exp(b.Neg(distances)), b.Scalar(m.level))
	f := b.MatMul(kernel, m.param(b, params, ParamCoefficients, m.coefficients.RawMatrix().Data, rows, m.classes))
	f = b.Relu(b.Add(f, m.param(b, params, ParamBias, m.bias, 1, m.classes)))
	b.Output(compile.OutProbabilities, b.Div(f, b.Sum(f, true, 1)))
	b.Output(compile.OutAttention, learners.EqualAttention(b, bagOf))
	g, err := b.Graph()
	return g, params, err
}

// pool turns instances [N, dim] into the vectors of their bags [B, d].
func (m *model) pool(b *graph.Builder, x, bagOf *graph.Node) *graph.Node {
	if m.set.Vector == MaxMin {
		return b.Concat(1, b.SegmentMax(x, bagOf), b.Neg(b.SegmentMax(b.Neg(x), bagOf)))
	}
	return b.Div(b.SegmentSum(x, bagOf), b.SegmentSum(b.Fill(1, graph.Shape{graph.N, 1}), bagOf))
}

// param declares a parameter of rank 2 and keeps its values.
func (m *model) param(b *graph.Builder, params map[string][]float32, name string, values []float64, rows, columns int) *graph.Node {
	out := make([]float32, len(values))
	for i, v := range values {
		out[i] = float32(v)
	}
	params[name] = out
	return b.Param(name, graph.Shape{graph.Dim(rows), graph.Dim(columns)})
}
