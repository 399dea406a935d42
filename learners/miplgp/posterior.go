package miplgp

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"

	"github.com/miplc/miplc/internal/stream"
	"github.com/miplc/miplc/internal/width"
	"github.com/miplc/miplc/learners"
)

// posterior is a fitted MIPLGP. For an instance x and class c, with k the kernel
// values between x and the kept points [u] and phi those of the first v points,
// times white' where there is one [v],
//
//	mean     = constant mean of c + k alpha[:, c] + phi beta[:, c]
//	variance = k(x, x) - phi reduce[c] phi'
//
// white is the inverse of the Cholesky factor of the kernel between the points.
// It keeps the numbers of moderate size, so that float32 is enough.
type posterior struct {
	*multiplier
	device  learners.Device // that predicts many bags
	classes int
	h       hyper
	shift   []float32 // [d] taken from every instance first
	points  matrix    // [u, d], shifted
	alpha   []float32 // [u, classes+1] or nil
	beta    []float32 // [v, classes+1] or nil
	v       int
	white   []float32   // [v, v] or nil
	reduce  [][]float32 // by class, [v, v]; symmetric
	samples int
	seed    uint64

	once sync.Once
	wide wideParts
}

// wideParts are float64 copies for moments.
type wideParts struct {
	alpha, beta, white blas64.General
	norms              []float64 // squared lengths of the points
}

func (q *posterior) widen() {
	outputs, w := q.classes+1, &q.wide
	for _, norm := range squaredNorms(q.points) {
		w.norms = append(w.norms, float64(norm))
	}
	if q.alpha != nil {
		w.alpha = wide(q.alpha, q.points.Rows, outputs)
	}
	if q.beta != nil {
		w.beta = wide(q.beta, q.v, outputs)
	}
	if q.white != nil {
		w.white = wide(q.white, q.v, q.v)
	}
}

// wide is a float64 copy of a float32 matrix.
func wide(data []float32, r, c int) blas64.General {
	return blas64.General{Rows: r, Cols: c, Stride: c, Data: width.To[float64](data)}
}

func newWide(r, c int) blas64.General {
	return blas64.General{Rows: r, Cols: c, Stride: c, Data: make([]float64, r*c)}
}

// moments gives the posterior mean and variance of the latent function of every
// class, the class of negatives last: [n, classes+1] each.
func (q *posterior) moments(x []float64) (mean, variance []float64, err error) {
	dim, outputs := q.points.Cols, q.classes+1
	if len(x)%dim != 0 || len(x) == 0 {
		return nil, nil, fmt.Errorf("miplgp: %d numbers are no instances of %d features", len(x), dim)
	}
	q.once.Do(q.widen)
	n := len(x) / dim
	mean, variance = make([]float64, n*outputs), make([]float64, n*outputs)
	rows(n, func(lo, hi int) {
		q.momentsInto(x[lo*dim:hi*dim], mean[lo*outputs:hi*outputs], variance[lo*outputs:hi*outputs])
	})
	return mean, variance, q.err()
}

func (q *posterior) momentsInto(x, mean, variance []float64) {
	outputs, w := q.classes+1, &q.wide
	k := q.kernel(x)
	n := k.Rows
	m := blas64.General{Rows: n, Cols: outputs, Stride: outputs, Data: mean}
	for i := range mean {
		mean[i] = q.h.mean[i%outputs]
	}
	if q.alpha != nil {
		blas64.Gemm(blas.NoTrans, blas.NoTrans, 1, k, w.alpha, 1, m)
	}
	phi := k
	phi.Cols = q.v
	if q.white != nil {
		phi = newWide(n, q.v)
		near := k
		near.Cols = q.v
		blas64.Gemm(blas.NoTrans, blas.Trans, 1, near, w.white, 0, phi)
	}
	if q.beta != nil {
		blas64.Gemm(blas.NoTrans, blas.NoTrans, 1, phi, w.beta, 1, m)
	}
	// Most of the work is here and in the kernel; phi and reduce are moderate, so
	// float32 will do.
	few, product := newMatrix(n, q.v), newMatrix(n, q.v)
	for i := range n {
		for j := range q.v {
			few.Data[i*q.v+j] = float32(phi.Data[i*phi.Stride+j])
		}
	}
	for c := range outputs {
		reduce := matrix{Rows: q.v, Cols: q.v, Stride: q.v, Data: q.reduce[c]}
		q.mul(false, false, few, reduce, product)
		for i := range n {
			explained := 0.0
			for j, v := range product.Data[i*q.v : (i+1)*q.v] {
				explained += float64(v) * phi.Data[i*phi.Stride+j]
			}
			variance[i*outputs+c] = math.Max(0, q.h.scale-explained)
		}
	}
}

// kernel gives the kernel between instances and all points.
func (q *posterior) kernel(x []float64) blas64.General {
	dim := q.points.Cols
	n := len(x) / dim
	shifted := newMatrix(n, dim)
	for i, v := range x {
		shifted.Data[i] = float32(v - float64(q.shift[i%dim]))
	}
	norms, cross := squaredNorms(shifted), newMatrix(n, q.points.Rows)
	q.mul(false, true, shifted, q.points, cross)
	k := newWide(n, q.points.Rows)
	for i := range n {
		for u, norm := range q.wide.norms {
			squared := float64(norms[i]) + norm - 2*float64(cross.Data[i*cross.Cols+u])
			v, _ := matern(math.Max(0, squared), q.h.length)
			k.Data[i*k.Stride+u] = q.h.scale * v
		}
	}
	return k
}

// probitFactor is pi/8 of MacKay's approximation of the expectation of a
// logistic function of a normal variable.
const probitFactor = math.Pi / 8

// confidences are the expected probabilities of the classes at instances,
// [n, classes], from mean and variance of the posterior there alone: the softmax of
// mean / sqrt(1 + pi/8 variance).
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

// sampledConfidences are the same expectations as means over draws of the
// posterior, as the authors' program takes them. Since an expectation at one
// instance depends on the distribution there alone, instances are not drawn
// jointly: every draw has one standard normal number a class, used at all
// instances.
func (q *posterior) sampledConfidences(mean, variance []float64) []float64 {
	rng := stream.New(q.seed, "miplgp samples")
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
	top, sum := math.Inf(-1), 0.0
	for _, v := range z {
		top = math.Max(top, v)
	}
	for c, v := range z {
		out[c] = math.Exp(v - top)
		sum += out[c]
	}
	for c := range out {
		out[c] /= sum
	}
}

// bag picks the row of the most confident instance, or the mean of those of equal
// confidence, and gives the confidence of every instance in its own best class.
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
