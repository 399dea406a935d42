// The vectors of bags, and the fitted model: predictions and its inference graph.

package plaggd

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/train"
)

// width returns the length of the vector of a bag whose instances have dim features.
func (v Vector) width(dim int) int {
	if v == MaxMin {
		return 2 * dim
	}
	return dim
}

// of computes the vector of a bag from its instances [n, dim], row-major.
func (v Vector) of(instances []float64, dim int, out []float64) {
	if v == MaxMin {
		copy(out, instances[:dim])
		copy(out[dim:], instances[:dim])
	} else {
		clear(out)
	}
	for at := 0; at < len(instances); at += dim {
		for j, x := range instances[at : at+dim] {
			if v == MaxMin {
				out[j], out[dim+j] = math.Max(out[j], x), math.Min(out[dim+j], x)
			} else {
				out[j] += x
			}
		}
	}
	if v == Mean {
		floats.Scale(float64(dim)/float64(len(instances)), out)
	}
}

// vectorsOf returns the vectors of the training bags, [m, width].
func vectorsOf(v Vector, p *train.Problem) (*mat.Dense, error) {
	dim := p.Data.Dim()
	x := mat.NewDense(len(p.Train), v.width(dim), nil)
	for i, bag := range p.Train {
		raw, err := p.Data.Bag(bag)
		if err != nil {
			return nil, err
		}
		v.of(train.Normalized(raw, p.Normalization), dim, x.RawRowView(i))
	}
	return x, nil
}

// unitRows scales every row to length 1. Rows of zeros do not change.
func unitRows(x *mat.Dense) *mat.Dense {
	out := mat.DenseCopyOf(x)
	m, _ := out.Dims()
	for i := range m {
		row := out.RawRowView(i)
		if norm := floats.Norm(row, 2); norm > 0 {
			floats.Scale(1/norm, row)
		}
	}
	return out
}

// model predicts f(x) = b + sum_i k(x, x_i) a_i.
type model struct {
	set           Settings
	shape         []int // of an instance
	dim, classes  int
	normalization *data.Normalization
	vectors       *mat.Dense // of the training bags [m, d]
	center        []float64  // [d], their median in each feature, which is robust against outliers
	centered      *mat.Dense // vectors minus centre

	width        float64
	coefficients *mat.Dense // a [m, k]
	bias         []float64  // b [k]
}

func newModel(set Settings, p *train.Problem) (*model, error) {
	m := &model{set: set, shape: p.Data.Shape, dim: p.Data.Dim(), classes: p.Data.Classes, normalization: p.Normalization}
	var err error
	if m.vectors, err = vectorsOf(set.Vector, p); err != nil {
		return nil, err
	}
	n, d := m.vectors.Dims()
	m.center = make([]float64, d)
	for j := range d {
		column := mat.Col(nil, j, m.vectors)
		slices.Sort(column)
		m.center[j] = column[n/2]
	}
	m.centered = mat.DenseCopyOf(m.vectors)
	for i := range n {
		floats.Sub(m.centered.RawRowView(i), m.center)
	}
	return m, nil
}

// keep stores the result of the regression.
func (m *model) keep(r *ridge, s *solution) {
	m.width, m.coefficients, m.bias = r.width, s.coefficients, s.bias
	m.vectors = nil // the centred ones are enough
}

// Tolerance returns 0, the default tolerance.
func (m *model) Tolerance() float64 { return 0 }

// Predict returns max(f, 0) / sum(max(f, 0)), because f sums to 1 over the classes but may have
// negative elements. The label is that of the largest output.
func (m *model) Predict(instances []float32, n int) (probabilities, attention []float64, err error) {
	if n < 1 || len(instances) != n*m.dim {
		return nil, nil, fmt.Errorf("a bag of %s of %s has %d values, not %d", diag.Count(n, "instance"),
			diag.Count(m.dim, "feature"), n*m.dim, len(instances))
	}
	x := make([]float64, m.set.Vector.width(m.dim))
	m.set.Vector.of(train.Normalized(instances, m.normalization), m.dim, x)
	floats.Sub(x, m.center)
	f := append([]float64(nil), m.bias...)
	rows, _ := m.centered.Dims()
	for i := range rows {
		d := floats.Distance(x, m.centered.RawRowView(i), 2) / m.width
		floats.AddScaled(f, math.Exp(-d*d/2), m.coefficients.RawRowView(i))
	}
	for c := range f {
		f[c] = math.Max(f[c], 0)
	}
	floats.Scale(1/floats.Sum(f), f)
	return f, slices.Repeat([]float64{1 / float64(n)}, n), nil
}

// Names of the parameters in the inference graph. Names of the kept vectors and their coefficients
// end with the number of their block, from 1.
const (
	paramCenter       = "vectors.centre"
	paramVectors      = "vectors.kept."            // [d, rows of the block]
	paramExcess       = "vectors.excess."          // [1, rows of the block]
	paramCoefficients = "regression.coefficients." // [rows of the block, k]
	paramTotal        = "regression.total"         // [1, k]
	paramBias         = "regression.bias"          // [1, k]
)

// Limits of the exponents in Graph.
const (
	maxAbsorbed = 10 // of the squared length of a kept vector, in the coefficients
	maxNear     = 60 // of the squared length of a bag's vector
)

// Graph returns the prediction as a graph that keeps its accuracy in float32. The coefficients a_i
// are large, because gamma is small, and nearly cancel each other, so a direct sum would lose half
// of the digits. With vectors z and t_i minus the centre, in units of sqrt(2) sigma, the kernel is
//
//	exp(-|z - t_i|^2) = exp(-|z|^2) exp(2 z t_i) exp(-|t_i|^2)
//
// The first factor is common to all terms, so its error does not matter. The last is multiplied
// into the coefficients. 2 z t_i is small, so the graph sums the middle factor minus 1, in blocks
// whose sums are added in pairs. Exponents for vectors far from the centre are limited against
// overflow: they are lowered by the excess of |z|^2 over maxNear and of |t_i|^2 over maxAbsorbed.
// The accuracy is lower near a kept vector that is itself an outlier: at r units from the centre,
// float32 resolves its kernel to about r^2 1e-7.
func (m *model) Graph() (*graph.Graph, map[string][]float32, error) {
	b, params := graph.NewBuilder("infer"), map[string][]float32{}
	x, bagOf := train.BatchInputs(b, m.shape, m.normalization, params)
	if len(m.shape) != 1 {
		x = b.Reshape(x, graph.Shape{graph.N, graph.Dim(m.dim)})
	}
	b.Label("z")
	z := b.Sub(m.pool(b, x, bagOf), param(b, params, paramCenter, m.center, 1, len(m.center)))
	z = b.Mul(z, b.Scalar(m.unit()))
	b.Label("kernel")
	length := b.Sum(b.Mul(z, z), true, 1)
	far := b.Relu(b.Sub(length, b.Scalar(maxNear)))
	one := b.Exp(b.Neg(far))
	sum, total := m.sum(b, params, z, far, one)
	sum = b.Add(sum, b.Mul(one, param(b, params, paramTotal, total, 1, m.classes)))
	near := b.Exp(b.Neg(b.Minimum(length, b.Scalar(maxNear))))
	f := b.Add(b.Mul(near, sum), param(b, params, paramBias, m.bias, 1, m.classes))
	b.Label("p")
	f = b.Relu(f)
	b.Output(compile.OutProbabilities, b.Div(f, b.Sum(f, true, 1)))
	b.Label("a")
	// 1/n for each of n instances
	b.Output(compile.OutAttention, b.SegmentSoftmax(b.Fill(0, graph.Shape{graph.N, 1}), bagOf))
	g, err := b.Graph()
	return g, params, err
}

// unit returns the factor from distances to units of sqrt(2) sigma.
func (m *model) unit() float64 { return 1 / (math.Sqrt2 * m.width) }

// sum returns sum_i (exp(2 z t_i - excess_i - far) - one) c_i, [B, k], with coefficients c_i = a_i
// exp(-(|t_i|^2 - excess_i)), and the total of the c_i.
func (m *model) sum(b *graph.Builder, params map[string][]float32, z, far, one *graph.Node) (*graph.Node, []float64) {
	rows, d := m.centered.Dims()
	size := int(math.Ceil(math.Sqrt(float64(rows))))
	total := make([]float64, m.classes)
	var sums []*graph.Node
	for from := 0; from < rows; from += size {
		n := min(size, rows-from)
		kept, excess, coefficients := mat.NewDense(d, n, nil), make([]float64, n), mat.NewDense(n, m.classes, nil)
		for j := range n {
			t := append([]float64(nil), m.centered.RawRowView(from+j)...)
			floats.Scale(m.unit(), t)
			length := floats.Dot(t, t)
			excess[j] = math.Max(0, length-maxAbsorbed)
			floats.AddScaled(coefficients.RawRowView(j), math.Exp(excess[j]-length), m.coefficients.RawRowView(from+j))
			floats.Add(total, coefficients.RawRowView(j))
			floats.Scale(2, t)
			kept.SetCol(j, t)
		}
		number := fmt.Sprint(from/size + 1)
		exponent := b.Sub(b.MatMul(z, param(b, params, paramVectors+number, kept.RawMatrix().Data, d, n)), far)
		if floats.Max(excess) > 0 {
			exponent = b.Sub(exponent, param(b, params, paramExcess+number, excess, 1, n))
		}
		c := param(b, params, paramCoefficients+number, coefficients.RawMatrix().Data, n, m.classes)
		sums = append(sums, b.MatMul(b.Sub(b.Exp(exponent), one), c))
	}
	return inPairs(b, sums), total
}

// inPairs adds nodes of one shape in a tree, so that each passes through few additions.
func inPairs(b *graph.Builder, list []*graph.Node) *graph.Node {
	if len(list) == 1 {
		return list[0]
	}
	half := len(list) / 2
	return b.Add(inPairs(b, list[:half]), inPairs(b, list[half:]))
}

// pool turns instances [N, dim] into the vectors of their bags [B, d].
func (m *model) pool(b *graph.Builder, x, bagOf *graph.Node) *graph.Node {
	if m.set.Vector == MaxMin {
		return b.Concat(1, b.SegmentMax(x, bagOf), b.Neg(b.SegmentMax(b.Neg(x), bagOf)))
	}
	return b.Div(b.SegmentSum(x, bagOf), b.SegmentSum(b.Fill(1, graph.Shape{graph.N, 1}), bagOf))
}

// param declares a parameter with two axes and stores its values in params.
func param(b *graph.Builder, params map[string][]float32, name string, values []float64, rows,
	columns int) *graph.Node {
	params[name] = ndarray.Convert[float32](values)
	return b.Param(name, graph.Shape{graph.Dim(rows), graph.Dim(columns)})
}
