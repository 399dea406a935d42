package miplgp

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"

	"github.com/miplc/miplc/stream"
)

// Posterior is a fitted MIPLGP. For an instance x and class c, with kernel
// values k(x, u) against the kept points u,
//
//	mean     = constant mean of c + sum over u of k(x, u) alpha[u, c]
//	variance = k(x, x) - k(x, V) R[c] k(V, x)
//
// where V are the first points, as many as R has rows.
type Posterior struct {
	classes  int
	h        hyper
	shift    []float32   // [d] taken from every instance first
	points   matrix      // [u, d], shifted
	alpha    []float32   // [u, outputs]
	weighted int         // v, the points that carry the variance
	reduce   [][]float32 // R by class, [v, v]; symmetric
	samples  int
	seed     uint64
}

func newPosterior(h hyper, shift []float32, points matrix, classes int) *Posterior {
	return &Posterior{
		classes: classes, h: h, shift: shift, points: points,
		alpha: make([]float32, points.Rows*(classes+1)), reduce: make([][]float32, classes+1),
	}
}

// set fills in one class.
func (q *Posterior) set(c int, alpha []float64, reduce mat.Symmetric) {
	for u, v := range alpha {
		q.alpha[u*(q.classes+1)+c] = float32(v)
	}
	r := make([]float32, q.weighted*q.weighted)
	for i := range q.weighted {
		for j := range q.weighted {
			r[i*q.weighted+j] = float32(reduce.At(i, j))
		}
	}
	q.reduce[c] = r
}

// Moments gives the posterior mean and variance of the latent function of every
// class, the class of negatives last: [n, classes+1] each, in float64.
func (q *Posterior) Moments(x []float64) (mean, variance []float64, err error) {
	dim, outputs := q.points.Cols, q.classes+1
	if len(x)%dim != 0 || len(x) == 0 {
		return nil, nil, fmt.Errorf("miplgp: %d numbers are no instances of %d features", len(x), dim)
	}
	n := len(x) / dim
	mean, variance = make([]float64, n*outputs), make([]float64, n*outputs)
	points := wide(q.points.Data, q.points.Rows, dim)
	alpha := wide(q.alpha, q.points.Rows, outputs)
	norms := make([]float64, points.Rows)
	for u := range norms {
		row := points.Data[u*dim : (u+1)*dim]
		norms[u] = blas64.Dot(blas64.Vector{N: dim, Inc: 1, Data: row}, blas64.Vector{N: dim, Inc: 1, Data: row})
	}
	reduce := make([]blas64.General, outputs)
	for c := range reduce {
		reduce[c] = wide(q.reduce[c], q.weighted, q.weighted)
	}
	rows(n, func(lo, hi int) {
		k := q.kernel(x[lo*dim:hi*dim], points, norms)
		m := blas64.General{Rows: hi - lo, Cols: outputs, Stride: outputs, Data: mean[lo*outputs : hi*outputs]}
		blas64.Gemm(blas.NoTrans, blas.NoTrans, 1, k, alpha, 0, m)
		near := k
		near.Cols = q.weighted
		product := blas64.General{Rows: hi - lo, Cols: q.weighted, Stride: q.weighted, Data: make([]float64, (hi-lo)*q.weighted)}
		for c := range outputs {
			blas64.Gemm(blas.NoTrans, blas.NoTrans, 1, near, reduce[c], 0, product)
			for i := range hi - lo {
				m.Data[i*outputs+c] += q.h.mean[c]
				sum := 0.0
				for j, v := range product.Data[i*q.weighted : (i+1)*q.weighted] {
					sum += v * near.Data[i*near.Stride+j]
				}
				variance[(lo+i)*outputs+c] = math.Max(0, q.h.scale-sum)
			}
		}
	})
	return mean, variance, nil
}

// kernel gives the kernel between instances and all points.
func (q *Posterior) kernel(x []float64, points blas64.General, norms []float64) blas64.General {
	dim := points.Cols
	n := len(x) / dim
	shifted := blas64.General{Rows: n, Cols: dim, Stride: dim, Data: make([]float64, len(x))}
	for i, v := range x {
		shifted.Data[i] = v - float64(q.shift[i%dim])
	}
	k := blas64.General{Rows: n, Cols: points.Rows, Stride: points.Rows, Data: make([]float64, n*points.Rows)}
	blas64.Gemm(blas.NoTrans, blas.Trans, -2, shifted, points, 0, k)
	for i := range n {
		row := shifted.Data[i*dim : (i+1)*dim]
		own := blas64.Dot(blas64.Vector{N: dim, Inc: 1, Data: row}, blas64.Vector{N: dim, Inc: 1, Data: row})
		for u := range points.Rows {
			v, _ := matern(math.Max(0, k.Data[i*k.Stride+u]+own+norms[u]), q.h.length)
			k.Data[i*k.Stride+u] = q.h.scale * v
		}
	}
	return k
}

// wide is a float64 copy of a float32 matrix.
func wide(data []float32, r, c int) blas64.General {
	g := blas64.General{Rows: r, Cols: c, Stride: c, Data: make([]float64, r*c)}
	for i, v := range data {
		g.Data[i] = float64(v)
	}
	return g
}

// probitFactor is pi/8 of MacKay's approximation of the expectation of a
// logistic function of a normal variable.
const probitFactor = math.Pi / 8

// Confidences are the expected probabilities of the classes of every instance,
// [n, classes], the class of negatives left out. They are computed from mean
// and variance alone: the softmax of mean / sqrt(1 + pi/8 variance).
func (q *Posterior) Confidences(x []float64) ([]float64, error) {
	mean, variance, err := q.Moments(x)
	if err != nil {
		return nil, err
	}
	n, outputs := len(mean)/(q.classes+1), q.classes+1
	p := make([]float64, n*q.classes)
	z := make([]float64, q.classes)
	for i := range n {
		for c := range z {
			z[c] = mean[i*outputs+c] / math.Sqrt(1+probitFactor*variance[i*outputs+c])
		}
		softmax(p[i*q.classes:(i+1)*q.classes], z)
	}
	return p, nil
}

// SampledConfidences are the same expectations as means over draws of the
// posterior, as the authors' program takes them. Since an expectation at one
// instance depends on the distribution there alone, instances are not drawn
// jointly: every draw has one standard normal number a class, used at all
// instances.
func (q *Posterior) SampledConfidences(x []float64) ([]float64, error) {
	mean, variance, err := q.Moments(x)
	if err != nil {
		return nil, err
	}
	n, outputs := len(mean)/(q.classes+1), q.classes+1
	rng := stream.New(q.seed, "miplgp samples")
	draws := make([]float64, q.samples*q.classes)
	for i := range draws {
		draws[i] = rng.NormFloat64()
	}
	p := make([]float64, n*q.classes)
	rows(n, func(lo, hi int) {
		z, one := make([]float64, q.classes), make([]float64, q.classes)
		for i := lo; i < hi; i++ {
			sum := p[i*q.classes : (i+1)*q.classes]
			for s := range q.samples {
				for c := range z {
					z[c] = mean[i*outputs+c] + math.Sqrt(variance[i*outputs+c])*draws[s*q.classes+c]
				}
				softmax(one, z)
				for c, v := range one {
					sum[c] += v / float64(q.samples)
				}
			}
		}
	})
	return p, nil
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

// bag picks the row of the most confident instance, the first on ties, and
// gives the confidence of every instance in its own best class.
func bag(confidences []float64, classes int) (probabilities, attention []float64) {
	n := len(confidences) / classes
	attention = make([]float64, n)
	best := 0
	for i := range n {
		for _, v := range confidences[i*classes : (i+1)*classes] {
			attention[i] = math.Max(attention[i], v)
		}
		if attention[i] > attention[best] {
			best = i
		}
	}
	return append([]float64(nil), confidences[best*classes:(best+1)*classes]...), attention
}

// Hyper gives the learned hyper-parameters: variance and lengthscale of the
// kernel, and by class, that of negatives last, the constant mean and the noise
// variance beside that of the targets.
func (q *Posterior) Hyper() (scale, length float64, mean, noise []float64) {
	return q.h.scale, q.h.length, append([]float64(nil), q.h.mean...), append([]float64(nil), q.h.noise...)
}
