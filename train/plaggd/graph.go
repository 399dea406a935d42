// The graph of nearest neighbours.

package plaggd

import (
	"context"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/miplc/miplc/internal/resources"
)

// graphOf is the weighted neighbour graph of the training vectors. Row i of S has weights only for
// neighbours[i]; they are at least 0 and sum to 1.
type graphOf struct {
	points    *mat.Dense  // X' [m, d]
	neighbors [][]int     // [m][k]
	grams     [][]float64 // [m][k*k] inner products of the differences of point i to its neighbours
	weights   [][]float64 // [m][k]
}

func newGraph(ctx context.Context, points *mat.Dense, k int) (*graphOf, error) {
	m, _ := points.Dims()
	g := &graphOf{points: points, neighbors: make([][]int, m), grams: make([][]float64, m), weights: make([][]float64, m)}
	resources.Each(m, 0, func(i int) {
		if ctx.Err() == nil {
			g.neighbors[i] = nearest(points, i, min(k, m-1))
		}
	})
	for i, list := range g.neighbors {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		n := len(list)
		g.grams[i], g.weights[i] = make([]float64, n*n), make([]float64, n)
		g.addGram(g.grams[i], points, i, 1)
	}
	return g, nil
}

// nearest lists the k nearest other rows of row i of x by Euclidean distance, nearest first, ties by index.
func nearest(x *mat.Dense, i, k int) []int {
	m, _ := x.Dims()
	distances, order := make([]float64, m), make([]int, m)
	for j := range distances {
		distances[j] = floats.Distance(x.RawRowView(i), x.RawRowView(j), 2)
	}
	distances[i] = math.Inf(1)
	floats.ArgsortStable(distances, order)
	return slices.Clone(order[:k])
}

// addGram adds factor times the inner products of the differences of row i of x to its neighbours
// to gram.
func (g *graphOf) addGram(gram []float64, x *mat.Dense, i int, factor float64) {
	n := len(g.neighbors[i])
	_, d := x.Dims()
	differences := make([]float64, n*d)
	for a, j := range g.neighbors[i] {
		floats.SubTo(differences[a*d:(a+1)*d], x.RawRowView(i), x.RawRowView(j))
	}
	for a := range n {
		for b := range a + 1 {
			v := factor * floats.Dot(differences[a*d:(a+1)*d], differences[b*d:(b+1)*d])
			gram[a*n+b] += v
			if a != b {
				gram[b*n+a] += v
			}
		}
	}
}

// solve sets the weights to the minimum of lambda |X' - S X'|^2 + mu |P - S P|^2. p may be nil if
// mu is 0.
func (g *graphOf) solve(ctx context.Context, lambda, mu float64, p *mat.Dense) error {
	for i, x := range g.grams {
		if err := ctx.Err(); err != nil {
			return err
		}
		gram := make([]float64, len(x))
		floats.AddScaled(gram, lambda, x)
		if mu > 0 {
			g.addGram(gram, p, i, mu)
		}
		nearestInHull(gram, g.weights[i])
	}
	return nil
}

// residual sets out to P - S P.
func (g *graphOf) residual(p, out *mat.Dense) {
	for i, list := range g.neighbors {
		row := out.RawRowView(i)
		copy(row, p.RawRowView(i))
		for a, j := range list {
			if w := g.weights[i][a]; w != 0 {
				floats.AddScaled(row, -w, p.RawRowView(j))
			}
		}
	}
}

// back sets out to (I - S)^T R.
func (g *graphOf) back(r, out *mat.Dense) {
	out.Copy(r)
	for i, list := range g.neighbors {
		row := r.RawRowView(i)
		for a, j := range list {
			if w := g.weights[i][a]; w != 0 {
				floats.AddScaled(out.RawRowView(j), -w, row)
			}
		}
	}
}

// unevenness returns |P - S P|^2.
func (g *graphOf) unevenness(p *mat.Dense) float64 {
	var r mat.Dense
	r.CloneFrom(p)
	g.residual(p, &r)
	data := r.RawMatrix().Data
	return floats.Dot(data, data)
}

// norm2 returns an upper bound of the largest squared singular value of I - S: the product of its
// largest column sum and largest row sum of absolute values.
func (g *graphOf) norm2() float64 {
	columns := make([]float64, len(g.neighbors))
	for i, list := range g.neighbors {
		columns[i]++
		for a, j := range list {
			columns[j] += g.weights[i][a]
		}
	}
	return 2 * floats.Max(columns)
}
