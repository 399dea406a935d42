// Attention among instances with extra keys, against a reference in plain Go.

package compile_test

import (
	"fmt"
	"math"
	"testing"
)

// With extra keys, the softmax of bag_attention is over the instances and the keys of the bag. The
// largest factor makes weights of the softmax without them 0.
func TestExtraKeysOfAttention(t *testing.T) {
	for _, factor := range []float64{0, 0.1, 1, 20} {
		for heads := 1; heads <= 2; heads++ {
			x := []float64{1, 2, 3, 6, -1, 5, 0, 0, 1, 2, -3, 4, 7, 0, 0, 1}
			for i := range x {
				x[i] *= factor
			}
			equation := fmt.Sprintf("bag_attention(X, -X, abs(X), %d, split(bag_mean(concat(X, costs - X)), two), "+
				"split(bag_max(concat(X, 0 * X)), two))", heads)
			got := valueOf(t, equation, x)
			for i, want := range extraKeysReference(x, heads) {
				if math.Abs(got[i]-want) > 1e-9*math.Max(1, math.Abs(want)) {
					t.Errorf("factor %v, %d heads: value %d is %v, expected %v", factor, heads, i, got[i], want)
				}
			}
		}
	}
}

// extraKeysReference computes the equation of TestExtraKeysOfAttention on bags of three instances and one.
func extraKeysReference(x []float64, heads int) (out []float64) {
	rows := [][]float64{x[:4], x[4:8], x[8:12], x[12:]}
	for i, q := range rows {
		bag := rows[:3]
		if i == 3 {
			bag = rows[3:]
		}
		keys, values := make([][]float64, len(bag)+2), make([][]float64, len(bag)+2)
		for c := range 4 {
			mean, largest := 0.0, math.Inf(-1)
			for j, row := range bag {
				keys[j], values[j] = append(keys[j], -row[c]), append(values[j], math.Abs(row[c]))
				mean, largest = mean+row[c]/float64(len(bag)), math.Max(largest, row[c])
			}
			n := len(bag)
			keys[n], keys[n+1] = append(keys[n], mean), append(keys[n+1], float64(c+1)-mean)
			values[n], values[n+1] = append(values[n], largest), append(values[n+1], 0)
		}
		out = append(out, headsOf(q, keys, values, heads)...)
	}
	return out
}

// headsOf returns the attention of one query.
func headsOf(q []float64, keys, values [][]float64, heads int) []float64 {
	out := make([]float64, len(q))
	width := len(q) / heads
	for start := 0; start < len(q); start += width {
		scores, top, sum := make([]float64, len(keys)), math.Inf(-1), 0.0
		for j, key := range keys {
			for c := start; c < start+width; c++ {
				scores[j] += q[c] * key[c] / math.Sqrt(float64(width))
			}
			top = math.Max(top, scores[j])
		}
		for _, s := range scores {
			sum += math.Exp(s - top)
		}
		for j, s := range scores {
			for c := start; c < start+width; c++ {
				out[c] += math.Exp(s-top) / sum * values[j][c]
			}
		}
	}
	return out
}
