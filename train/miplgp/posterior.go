// The posterior of a bag, and confidences from it.

package miplgp

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/miplc/miplc/compile/native"
	"github.com/miplc/miplc/internal/ndarray"
)

// posterior is a fitted MIPLGP. For an instance x and class c, let k be the kernel values between x
// and the kept points [u], and phi those of the first v points, multiplied by white' if white is
// not nil [v]:
//
//	mean     = constant mean of c + k alpha[:, c] + phi beta[:, c]
//	variance = k(x, x) - phi reduce[c] phi'
//
// white is the inverse of the Cholesky factor of the kernel between the points. It keeps the
// numbers moderate, so that float32 suffices.
type posterior struct {
	kernels native.Options // of the prediction of many bags
	classes int
	h       hyper
	shift   []float32 // [d], subtracted from every instance
	points  matrix    // [u, d], shifted
	alpha   []float32 // [u, classes+1] or nil
	beta    []float32 // [v, classes+1] or nil
	v       int
	white   []float32   // [v, v] or nil
	reduce  [][]float32 // by class, [v, v]; symmetric
	samples int
	seed    uint64
}

// wide returns a float64 copy of a float32 matrix.
func wide(data []float32, r, c int) *mat.Dense {
	return mat.NewDense(r, c, ndarray.Convert[float64](data))
}

// moments returns the posterior mean and variance of the latent function of every class, the class of negatives last:
// [n, classes+1] each.
func (q *posterior) moments(x []float64) (mean, variance []float64) {
	outputs, k := q.classes+1, q.kernel(x)
	n, _ := k.Dims()
	phi := mat.DenseCopyOf(k.Slice(0, n, 0, q.v))
	if q.white != nil {
		phi.Mul(k.Slice(0, n, 0, q.v), wide(q.white, q.v, q.v).T())
	}
	sum, part := mat.NewDense(n, outputs, slices.Repeat(q.h.mean, n)), mat.NewDense(n, outputs, nil)
	if q.alpha != nil {
		part.Mul(k, wide(q.alpha, q.points.Rows, outputs))
		sum.Add(sum, part)
	}
	if q.beta != nil {
		part.Mul(phi, wide(q.beta, q.v, outputs))
		sum.Add(sum, part)
	}
	variance = make([]float64, n*outputs)
	for c := range outputs {
		var product mat.Dense
		product.Mul(phi, wide(q.reduce[c], q.v, q.v))
		for i := range n {
			explained := floats.Dot(product.RawRowView(i), phi.RawRowView(i))
			variance[i*outputs+c] = math.Max(0, q.h.scale-explained)
		}
	}
	return sum.RawMatrix().Data, variance
}

// kernel returns the kernel between instances and all points.
func (q *posterior) kernel(x []float64) *mat.Dense {
	dim := q.points.Cols
	n := len(x) / dim
	shifted, points, k := mat.NewDense(n, dim, slices.Clone(x)), wide(q.points.Data, q.points.Rows, dim), new(mat.Dense)
	shift, norms := ndarray.Convert[float64](q.shift), make([]float64, q.points.Rows)
	for u := range norms {
		norms[u] = floats.Dot(points.RawRowView(u), points.RawRowView(u))
	}
	for i := range n {
		floats.Sub(shifted.RawRowView(i), shift)
	}
	k.Mul(shifted, points.T())
	for i := range n {
		row, norm := k.RawRowView(i), floats.Dot(shifted.RawRowView(i), shifted.RawRowView(i))
		for u, cross := range row {
			v, _ := matern(math.Max(0, norm+norms[u]-2*cross), q.h.length)
			row[u] = q.h.scale * v
		}
	}
	return k
}

// probitFactor is the constant pi/8 in MacKay's approximation of the expectation of a logistic
// function of a normal variable.
const probitFactor = math.Pi / 8

// confidences returns the expected probabilities of the classes at instances, [n, classes],
// computed from mean and variance of the posterior at each instance: the softmax of mean / sqrt(1 +
// pi/8 variance).
func (q *posterior) confidences(mean, variance []float64) []float64 {
	p, z := make([]float64, len(mean)), make([]float64, q.classes)
	for i := 0; i < len(p); i += q.classes {
		for c := range z {
			z[c] = mean[i+c] / math.Sqrt(1+probitFactor*variance[i+c])
		}
		softmax(p[i:i+q.classes], z)
	}
	return p
}

// sampledConfidences estimates the same expectations as means over draws of the posterior, like the
// authors' program. An expectation at one instance depends only on the distribution there, so
// instances are not drawn jointly: a draw is one standard normal number per class, used for all
// instances.
func (q *posterior) sampledConfidences(mean, variance []float64) []float64 {
	rng := ndarray.NewStream(q.seed, "miplgp samples")
	draws := make([]float64, q.samples*q.classes)
	for i := range draws {
		draws[i] = rng.NormFloat64()
	}
	p := make([]float64, len(mean))
	rows(len(p)/q.classes, func(lo, hi int) {
		z, one := make([]float64, q.classes), make([]float64, q.classes)
		for i := lo * q.classes; i < hi*q.classes; i += q.classes {
			sum := p[i : i+q.classes]
			for s := range q.samples {
				for c := range z {
					z[c] = mean[i+c] + math.Sqrt(variance[i+c])*draws[s*q.classes+c]
				}
				softmax(one, z)
				for c, v := range one {
					sum[c] += v / float64(q.samples)
				}
			}
		}
	})
	return p
}

func softmax(out, z []float64) {
	top, sum := slices.Max(z), 0.0
	for c, v := range z {
		out[c] = math.Exp(v - top)
		sum += out[c]
	}
	for c := range out {
		out[c] /= sum
	}
}

// bag returns the row of the most confident instance, or the mean of the rows with equal
// confidence, and the confidence of every instance in its best class.
func bag(confidences []float64, classes int) (probabilities, attention []float64) {
	n := len(confidences) / classes
	attention = make([]float64, n)
	for i := range n {
		attention[i] = slices.Max(confidences[i*classes : (i+1)*classes])
	}
	top, chosen := slices.Max(attention), 0.0
	probabilities = make([]float64, classes)
	for i, a := range attention {
		if a == top {
			floats.Add(probabilities, confidences[i*classes:(i+1)*classes])
			chosen++
		}
	}
	floats.Scale(1/chosen, probabilities)
	return probabilities, attention
}
