// The fitted model: predictions and its inference graph.

package miplgp

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/train"
)

// model predicts bags of raw features.
type model struct {
	*posterior
	shape []int // of an instance
	z     *data.Normalization
}

// tolerance is the allowed difference of float32 engines from Predict: the confidences are sums
// over all kept points.
const tolerance = 1e-4

func (m *model) Tolerance() float64 { return tolerance }

// Predict returns the class probabilities of the most confident instance, computed from mean and
// variance of the posterior (see posterior.confidences). The attention score of an instance is its
// confidence in its own most probable class, between 1/classes and 1.
func (m *model) Predict(instances []float32, n int) (probabilities, attention []float64, err error) {
	if n < 1 || len(instances) != n*m.points.Cols {
		return nil, nil, fmt.Errorf("a bag of %s of %s has %d values, not %d", diag.Count(n, "instance"),
			diag.Count(m.points.Cols, "feature"), n*m.points.Cols, len(instances))
	}
	mean, variance := m.moments(train.Normalized(instances, m.z))
	probabilities, attention = bag(m.confidences(m.ofClasses(mean), m.ofClasses(variance)), m.classes)
	return probabilities, attention, nil
}

// PredictBags implements train.Batcher. Sampled predictions use draws of the posterior, like the
// authors' program.
func (m *model) PredictBags(ctx context.Context, d *data.Dataset, bags []int, sampled bool) (list []train.Prediction,
	err error) {
	var instances []float32
	for _, b := range bags {
		x, err := d.Bag(b)
		if err != nil {
			return nil, err
		}
		instances = append(instances, x...)
	}
	mean, variance, err := m.computeMoments(ctx, instances)
	if err != nil {
		return nil, err
	}
	byMean, byDraws := m.confidences(mean, variance), []float64(nil)
	if sampled {
		byDraws = m.sampledConfidences(mean, variance)
	}
	at := 0
	for _, b := range bags {
		end := at + d.Size(b)*m.classes
		var p train.Prediction
		p.Probabilities, p.Attention = bag(byMean[at:end], m.classes)
		if sampled {
			p.Sampled, _ = bag(byDraws[at:end], m.classes)
		}
		list, at = append(list, p), end
	}
	return list, nil
}

// predictedRows is the number of instances that are predicted at once.
const predictedRows = 1024

// Outputs of the graph of the posterior's moments, [N, classes].
const (
	outMean     = "mean"
	outVariance = "variance"
)

// computeMoments returns mean and variance of the posterior of the classes at raw instances, [n,
// classes] each.
func (m *model) computeMoments(ctx context.Context, instances []float32) (mean, variance []float64, err error) {
	defer graph.Catch(&err, "predicting")
	w := &writer{Builder: graph.NewBuilder("moments"), m: m, params: map[string][]float32{}}
	a, b := w.moments(w.kernel(train.Instances(w.Builder, m.shape, m.z, w.params)))
	w.Output(outMean, a)
	w.Output(outVariance, b)
	g := graph.Must(w.Builder.Graph())
	space := newWorkspace(m.kernels)
	for _, p := range g.ByOp(graph.OpParam) {
		space.Put(p.Name, w.params[p.Name], p.Shape.Concrete(0, 0)...)
	}
	shape := append([]int{predictedRows}, m.shape...)
	block := make([]float32, ndarray.Size(shape))
	for len(instances) > 0 {
		n := copy(block, instances) // the rest of the last block is unused
		rows := n / m.points.Cols
		space.Put(compile.InInstances, block, shape...)
		space.Run(g, predictedRows, nil)
		byMean, byVariance := space.Get(outMean), space.Get(outVariance)
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		mean = append(mean, ndarray.Convert[float64](byMean[:rows*m.classes])...)
		variance = append(variance, ndarray.Convert[float64](byVariance[:rows*m.classes])...)
		instances = instances[n:]
	}
	return mean, variance, nil
}

// Names of the parameters in the inference graph.
const (
	paramShift  = "instances.shift"
	paramPoints = "points.kept"  // [d, u] in units of lengthscale / sqrt(5)
	paramNorms  = "points.norms" // [1, u], the squared norms of the points
	paramAlpha  = "mean.alpha"   // [u, k]
	paramBeta   = "mean.beta"    // [v, k]
	paramMean   = "mean.constant"
	paramWhite  = "variance.white"  // [v, v]
	paramReduce = "variance.reduce" // with the number of the class: [v, v]
)

// Graph returns the prediction as a graph. It omits the class of negatives, which does not affect
// the probabilities.
func (m *model) Graph() (*graph.Graph, map[string][]float32, error) {
	w := &writer{Builder: graph.NewBuilder("infer"), m: m, params: map[string][]float32{}}
	x, bagOf := train.BatchInputs(w.Builder, m.shape, m.z, w.params)
	mean, variance := w.moments(w.kernel(x))
	w.Label("confidence")
	root := w.Sqrt(w.Add(w.Mul(variance, w.Scalar(probitFactor)), w.Scalar(1)))
	p := w.Softmax(w.Div(mean, root))
	confidence := w.Max(p, true, 1)
	w.Label("p")
	top := w.SegmentGather(w.SegmentMax(confidence, bagOf), bagOf)
	chosen := w.Sub(w.Scalar(1), w.Greater(top, confidence))
	probabilities := w.Div(w.SegmentSum(w.Mul(p, chosen), bagOf), w.SegmentSum(chosen, bagOf))
	w.Output(compile.OutProbabilities, probabilities)
	w.Output(compile.OutAttention, confidence)
	g, err := w.Builder.Graph()
	return g, w.params, err
}

type writer struct {
	*graph.Builder
	m      *model
	params map[string][]float32
}

func (w *writer) param(name string, rows, columns int, values []float32) *graph.Node {
	w.params[name] = values
	return w.Param(name, graph.Shape{graph.Dim(rows), graph.Dim(columns)})
}

// kernel returns the kernel [N, u] with variance 1. The scale is part of the matrices that are
// multiplied with it.
func (w *writer) kernel(x *graph.Node) *graph.Node {
	m := w.m
	w.Label("kernel")
	dim, points := m.points.Cols, m.points.Rows
	if len(m.shape) != 1 {
		x = w.Reshape(x, graph.Shape{graph.N, graph.Dim(dim)})
	}
	unit := math.Sqrt(5) / m.h.length
	kept, norms := make([]float32, dim*points), make([]float32, points)
	for u := range points {
		sum := 0.0
		for j := range dim {
			v := unit * float64(m.points.Data[u*dim+j])
			kept[j*points+u] = float32(v)
			sum += v * v
		}
		norms[u] = float32(sum)
	}
	z := w.Mul(w.Sub(x, w.param(paramShift, 1, dim, m.shift)), w.Scalar(unit))
	cross := w.MatMul(z, w.param(paramPoints, dim, points, kept))
	squares := w.Add(w.Sum(w.Mul(z, z), true, 1), w.param(paramNorms, 1, points, norms))
	squared := w.Relu(w.Sub(squares, w.Mul(cross, w.Scalar(2)))) // rounding could make it negative
	return matern52(w.Builder, w.Sqrt(squared), squared)
}

// moments returns mean and variance of the classes [N, k] from the kernel.
func (w *writer) moments(k *graph.Node) (mean, variance *graph.Node) {
	m := w.m
	w.Label("moments")
	scale, classes, points := m.h.scale, m.classes, m.points.Rows
	phi := k
	if m.v < points {
		phi = w.Slice(k, 1, 0, m.v)
	}
	// Without white, reduce is multiplied with two kernels, so its factor is the squared scale.
	factor := scale * scale
	if m.white != nil {
		white := make([]float32, m.v*m.v)
		for i := range m.v {
			for j := range m.v {
				white[j*m.v+i] = float32(scale * float64(m.white[i*m.v+j]))
			}
		}
		phi = w.MatMul(phi, w.param(paramWhite, m.v, m.v, white))
		factor = 1
	}
	constant := make([]float32, classes)
	for c := range constant {
		constant[c] = float32(m.h.mean[c])
	}
	mean = w.param(paramMean, 1, classes, constant)
	if m.alpha != nil {
		mean = w.Add(w.MatMul(k, w.param(paramAlpha, points, classes, m.withoutNegatives(m.alpha, scale))), mean)
	}
	if m.beta != nil {
		mean = w.Add(w.MatMul(phi, w.param(paramBeta, m.v, classes, m.withoutNegatives(m.beta, 1))), mean)
	}
	var explained []*graph.Node
	for c := range classes {
		reduce := make([]float32, m.v*m.v)
		for i, v := range m.reduce[c] {
			reduce[i] = float32(factor * float64(v))
		}
		product := w.MatMul(phi, w.param(fmt.Sprint(paramReduce, c), m.v, m.v, reduce))
		explained = append(explained, w.Sum(w.Mul(product, phi), true, 1))
	}
	all := explained[0]
	if classes > 1 {
		all = w.Concat(1, explained...)
	}
	return mean, w.Relu(w.Sub(w.Scalar(scale), all))
}

// withoutNegatives drops the class of negatives and multiplies by factor.
func (q *posterior) withoutNegatives(values []float32, factor float64) []float32 {
	out := q.ofClasses(ndarray.Convert[float64](values))
	floats.Scale(factor, out)
	return ndarray.Convert[float32](out)
}

// ofClasses drops the last column of [rows, classes+1].
func (q *posterior) ofClasses(values []float64) []float64 {
	var out []float64
	for ; len(values) > 0; values = values[q.classes+1:] {
		out = append(out, values[:q.classes]...)
	}
	return out
}
