// The labelling step: confidences of the candidates.

package plaggd

import (
	"context"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
)

// labelling is the quadratic program of the confidences: the minimum of
//
//	|P - S P|^2 + pull |P - target|^2
//
// over matrices P [m, k] whose rows are 0 outside the candidates, at least 0 and sum to 1.
type labelling struct {
	graph      *graphOf
	candidates [][]int
	target     *mat.Dense // [m, k]; nil if pull is 0
	pull       float64
}

// Limits of the solver. It stops when duality shows that the objective is within tightGap of its
// minimum, relative to its value or to 1 if that is larger. The first problem, which has no pull,
// may have many minima and converges slowly; if the iterations run out, looseGap is accepted.
const (
	tightGap      = 1e-10
	looseGap      = 1e-4
	maxIterations = 5000
)

// solve moves p, a feasible matrix, to the minimum with accelerated projected gradient steps (Beck
// and Teboulle 2009), restarted whenever the momentum points uphill (O'Donoghue and Candès 2015).
// The projection is computed row by row.
func (q *labelling) solve(ctx context.Context, p *mat.Dense) error {
	step := 1 / (2*q.graph.norm2() + 2*q.pull)
	m, k := p.Dims()
	ahead, gradient, work, next := mat.DenseCopyOf(p), mat.NewDense(m, k, nil), mat.NewDense(m, k, nil), mat.NewDense(m, k,
		nil)
	t, gap := 1.0, math.Inf(1)
	for i := range maxIterations {
		if err := ctx.Err(); err != nil {
			return err
		}
		if i%10 == 0 {
			if gap = q.gap(p, gradient, work); gap <= tightGap {
				return nil
			}
		}
		q.gradient(ahead, gradient, work)
		next.Apply(func(i, j int, v float64) float64 { return v - step*gradient.At(i, j) }, ahead)
		q.project(next)
		uphill := 0.0
		for j, v := range next.RawMatrix().Data {
			uphill += (ahead.RawMatrix().Data[j] - v) * (v - p.RawMatrix().Data[j])
		}
		faster := (1 + math.Sqrt(1+4*t*t)) / 2
		momentum := (t - 1) / faster
		if t = faster; uphill > 0 {
			t, momentum = 1, 0
		}
		for j, v := range next.RawMatrix().Data {
			ahead.RawMatrix().Data[j] = v + momentum*(v-p.RawMatrix().Data[j])
		}
		p.Copy(next)
	}
	if gap > looseGap {
		return fmt.Errorf("pl-aggd: the labelling confidences are still %.1g of the objective from the minimum "+
			"after %d steps", gap, maxIterations)
	}
	return nil
}

// gradient sets out to the gradient of the objective at p.
func (q *labelling) gradient(p, out, work *mat.Dense) {
	q.graph.residual(p, work)
	q.graph.back(work, out)
	out.Scale(2, out)
	if q.pull == 0 {
		return
	}
	for i, v := range p.RawMatrix().Data {
		out.RawMatrix().Data[i] += 2 * q.pull * (v - q.target.RawMatrix().Data[i])
	}
}

// value returns the objective at p.
func (q *labelling) value(p *mat.Dense) float64 {
	v := q.graph.unevenness(p)
	if q.pull > 0 {
		v += q.pull * distance2(p, q.target)
	}
	return v
}

// gap returns an upper bound of the distance of the objective at p from its minimum, relative to
// the objective or 1: the sum over rows of the gain from moving all confidence to the best
// candidate if the objective were linear.
func (q *labelling) gap(p, gradient, work *mat.Dense) float64 {
	q.gradient(p, gradient, work)
	sum := 0.0
	for i, set := range q.candidates {
		g, row := gradient.RawRowView(i), p.RawRowView(i)
		best := math.Inf(1)
		for _, c := range set {
			best = math.Min(best, g[c])
		}
		for _, c := range set {
			sum += row[c] * (g[c] - best)
		}
	}
	return sum / math.Max(1, q.value(p))
}

// project replaces every row by the nearest feasible one.
func (q *labelling) project(p *mat.Dense) {
	var values []float64
	for i, set := range q.candidates {
		row := p.RawRowView(i)
		values = values[:0]
		for _, c := range set {
			values = append(values, row[c])
		}
		shift := toSimplex(values)
		clear(row)
		for j, c := range set {
			row[c] = math.Max(0, values[j]-shift)
		}
	}
}

// toSimplex returns the number to subtract from all values so that they sum to 1 after negative
// ones are set to 0.
func toSimplex(values []float64) float64 {
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	slices.Reverse(sorted)
	sum, shift := 0.0, 0.0
	for i, v := range sorted {
		sum += v
		if s := (sum - 1) / float64(i+1); v > s {
			shift = s
		}
	}
	return shift
}
