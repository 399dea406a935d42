// Nearest neighbours.

package plaggd

import (
	"context"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/miplc/miplc/internal/workers"
)

// nearest lists the k nearest other rows of every row of x by Euclidean distance, nearest first,
// ties by index; all other rows if there are fewer.
func nearest(ctx context.Context, x *mat.Dense, k int) ([][]int, error) {
	m, _ := x.Dims()
	lists := make([][]int, m)
	workers.Each(m, 0, func(i int) {
		if ctx.Err() == nil {
			lists[i] = nearestTo(x, i, min(k, m-1))
		}
	})
	return lists, ctx.Err()
}

// nearestTo keeps the k nearest rows sorted while it walks over all.
func nearestTo(x *mat.Dense, i, k int) []int {
	m, _ := x.Dims()
	distances := make([]float64, m)
	list := make([]int, 0, k+1)
	row := x.RawRowView(i)
	for j := range distances {
		if j == i {
			continue
		}
		distances[j] = floats.Distance(row, x.RawRowView(j), 2)
		at := len(list)
		for at > 0 && distances[j] < distances[list[at-1]] {
			at--
		}
		list = slices.Insert(list, at, j)
		list = list[:min(k, len(list))]
	}
	return list
}
