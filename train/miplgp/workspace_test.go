// Workspaces of all devices compute alike.

package miplgp

import (
	"slices"
	"testing"

	"github.com/miplc/miplc/compile/graph"
	"github.com/miplc/miplc/train"
)

// The devices of all engines implement learners.Device as documented.
func TestDevices(t *testing.T) {
	for name, d := range devices(t) {
		for what, check := range map[string]func(*testing.T, train.Device){
			"a value takes the place of its input": inPlace, "names stand for others": named,
			"workspaces share nothing": separateWorkspaces, "a value that is missing is an error": missing,
		} {
			t.Run(name+"/"+what, func(t *testing.T) { check(t, d) })
		}
	}
}

func workspaceOf(t *testing.T, d train.Device) train.Workspace {
	w := d.Workspace()
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// doubled returns x = 2 x and the sum of the rows of x multiplied by a parameter, for matrices of n
// rows.
func doubled(t *testing.T) *graph.Graph {
	t.Helper()
	b := graph.NewBuilder("doubled")
	x := b.Input("x", graph.Float, graph.Shape{graph.N, 2})
	b.Output("x", b.Mul(x, b.Scalar(2)))
	b.Output("sums", b.MatMul(x, b.Param("factor", graph.Shape{2, 1})))
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func put(t *testing.T, w train.Workspace, name string, values []float32, shape ...int) {
	t.Helper()
	if err := w.Put(name, values, shape...); err != nil {
		t.Fatal(err)
	}
}

func run(t *testing.T, w train.Workspace, g *graph.Graph, n int, names map[string]string) {
	t.Helper()
	if err := w.Run(g, n, names); err != nil {
		t.Fatal(err)
	}
}

func holds(t *testing.T, w train.Workspace, name string, want ...float32) {
	t.Helper()
	if got, err := w.Get(name); err != nil || !slices.Equal(got, want) {
		t.Errorf("%s is %v, %v; want %v", name, got, err, want)
	}
}

func inPlace(t *testing.T, d train.Device) {
	w, g, own := workspaceOf(t, d), doubled(t), []float32{1, 2, 3, 4}
	put(t, w, "factor", []float32{10, 1}, 2, 1)
	put(t, w, "x", own, 2, 2)
	run(t, w, g, 2, nil)
	holds(t, w, "x", 2, 4, 6, 8)
	holds(t, w, "sums", 12, 34)
	run(t, w, g, 2, nil)
	run(t, w, g, 2, nil)
	holds(t, w, "x", 8, 16, 24, 32)
	holds(t, w, "sums", 48, 136)
	put(t, w, "x", own, 2, 2)
	own[0] = 100 // Put copies the values
	holds(t, w, "x", 1, 2, 3, 4)
	run(t, w, g, 2, nil)
	holds(t, w, "sums", 12, 34)
}

func named(t *testing.T, d train.Device) {
	w, g := workspaceOf(t, d), doubled(t)
	put(t, w, "factor", []float32{10, 1}, 2, 1)
	put(t, w, "a", []float32{1, 2}, 1, 2)
	put(t, w, "b", []float32{1, 2, 3, 4, 5, 6}, 3, 2)
	run(t, w, g, 1, map[string]string{"x": "a", "sums": "a.sums"})
	run(t, w, g, 3, map[string]string{"x": "b"})
	holds(t, w, "a", 2, 4)
	holds(t, w, "b", 2, 4, 6, 8, 10, 12)
	holds(t, w, "a.sums", 12)
	holds(t, w, "sums", 12, 34, 56)
}

func separateWorkspaces(t *testing.T, d train.Device) {
	one, other := workspaceOf(t, d), workspaceOf(t, d)
	put(t, one, "x", []float32{1, 2}, 1, 2)
	put(t, other, "x", []float32{3, 4}, 1, 2)
	holds(t, one, "x", 1, 2)
	put(t, other, "y", []float32{5}, 1, 1)
	if v, err := one.Get("y"); err == nil {
		t.Errorf("a value of another workspace: %v", v)
	}
}

func missing(t *testing.T, d train.Device) {
	w := workspaceOf(t, d)
	put(t, w, "x", []float32{1, 2}, 1, 2)
	if err := w.Run(doubled(t), 1, nil); err == nil {
		t.Error("a graph without its parameter ran")
	}
	if _, err := w.Get("sums"); err == nil {
		t.Error("a value that was never computed exists")
	}
	if err := w.Put("y", []float32{1, 2, 3}, 2, 2); err == nil {
		t.Error("three numbers are accepted for four")
	}
}
