// The largest memory of small graphs, by hand.

package graph

import "testing"

func TestPeak(t *testing.T) {
	b := NewBuilder("t")
	x := b.Input("x", Float, Shape{N, 3})           // 3 n throughout
	w := b.Param("w", Shape{3, 5})                  // 15 throughout
	h := b.MatMul(x, w)                             // 5 n until its tanh
	y := b.Tanh(h)                                  // 5 n until the sum
	z := b.Add(y, b.Fill(1, Shape{N, 5}))           // 5 n
	s := b.Sum(b.Reshape(z, Shape{N, 5}), false, 0) // 5
	b.Output("s", s)
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{2, 7} {
		if got, want := g.Peak(n, 1), float64(3*n+15+5*n+5*n); got != want {
			t.Errorf("%d instances: %g, want %g", n, got, want)
		}
	}
	const million = 1 << 20
	if got := (Shape{million, million, million, million}).Elements(1, 1); got != 1<<80 {
		t.Errorf("elements beyond an int: %g", got)
	}
}
