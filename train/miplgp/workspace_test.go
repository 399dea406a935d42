// Workspaces of all devices compute alike.

package miplgp

import (
	"slices"
	"testing"

	"github.com/miplc/miplc/compile/graph"
	"github.com/miplc/miplc/train"
)

// The devices of all engines implement train.GraphRunner as documented.
func TestDevices(t *testing.T) {
	for name, d := range devices(t) {
		for what, check := range map[string]func(*testing.T, func() train.GraphRunner){
			"a value takes the place of its input": inPlace, "names stand for others": named,
			"workspaces share nothing": separateWorkspaces, "a value that is missing is an error": missing,
		} {
			t.Run(name+"/"+what, func(t *testing.T) { check(t, d) })
		}
	}
}

func workspaceOf(t *testing.T, d func() train.GraphRunner) *train.Workspace {
	w := train.NewWorkspace(d())
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

func holds(t *testing.T, w *train.Workspace, name string, want ...float32) {
	t.Helper()
	if got := w.Get(name); w.Err() != nil || !slices.Equal(got, want) {
		t.Errorf("%s is %v, %v; want %v", name, got, w.Err(), want)
	}
}

func inPlace(t *testing.T, d func() train.GraphRunner) {
	w, g, own := workspaceOf(t, d), doubled(t), []float32{1, 2, 3, 4}
	w.Put("factor", []float32{10, 1}, 2, 1)
	w.Put("x", own, 2, 2)
	w.Run(g, 2, nil)
	holds(t, w, "x", 2, 4, 6, 8)
	holds(t, w, "sums", 12, 34)
	w.Run(g, 2, nil)
	w.Run(g, 2, nil)
	holds(t, w, "x", 8, 16, 24, 32)
	holds(t, w, "sums", 48, 136)
	w.Put("x", own, 2, 2)
	own[0] = 100 // Put copies the values
	holds(t, w, "x", 1, 2, 3, 4)
	w.Run(g, 2, nil)
	holds(t, w, "sums", 12, 34)
}

func named(t *testing.T, d func() train.GraphRunner) {
	w, g := workspaceOf(t, d), doubled(t)
	w.Put("factor", []float32{10, 1}, 2, 1)
	w.Put("a", []float32{1, 2}, 1, 2)
	w.Put("b", []float32{1, 2, 3, 4, 5, 6}, 3, 2)
	w.Run(g, 1, map[string]string{"x": "a", "sums": "a.sums"})
	w.Run(g, 3, map[string]string{"x": "b"})
	holds(t, w, "a", 2, 4)
	holds(t, w, "b", 2, 4, 6, 8, 10, 12)
	holds(t, w, "a.sums", 12)
	holds(t, w, "sums", 12, 34, 56)
}

func separateWorkspaces(t *testing.T, d func() train.GraphRunner) {
	one, other := workspaceOf(t, d), workspaceOf(t, d)
	one.Put("x", []float32{1, 2}, 1, 2)
	other.Put("x", []float32{3, 4}, 1, 2)
	holds(t, one, "x", 1, 2)
	other.Put("y", []float32{5}, 1, 1)
	if v := one.Get("y"); one.Err() == nil {
		t.Errorf("a value of another workspace: %v", v)
	}
}

func missing(t *testing.T, d func() train.GraphRunner) {
	for what, use := range map[string]func(w *train.Workspace){
		"a graph without its parameter":   func(w *train.Workspace) { w.Run(doubled(t), 1, nil) },
		"a value that was never computed": func(w *train.Workspace) { w.Get("sums") },
		"three numbers instead of four":   func(w *train.Workspace) { w.Put("y", []float32{1, 2, 3}, 2, 2) },
	} {
		w := workspaceOf(t, d)
		w.Put("x", []float32{1, 2}, 1, 2)
		if use(w); w.Err() == nil {
			t.Errorf("%s is accepted", what)
		}
		first := w.Err()
		if w.Run(doubled(t), 1, nil); w.Get("x") != nil || w.Err() != first {
			t.Errorf("%s: the workspace computes after its error, which is now %v", what, w.Err())
		}
	}
}
