// Workspaces compute graphs on named values.

package miplgp

import (
	"slices"
	"strings"
	"testing"

	"github.com/miplc/miplc/compile/native"
	"github.com/miplc/miplc/compile/native/kernel"
	"github.com/miplc/miplc/graph"
)

func oneThread() *workspace { return newWorkspace(native.Options{Kernels: kernel.Best(), Threads: 1}) }

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

func holds(t *testing.T, w *workspace, name string, want ...float32) {
	t.Helper()
	if got := w.Get(name); !slices.Equal(got, want) {
		t.Errorf("%s is %v; want %v", name, got, want)
	}
}

// An output takes the place of its input.
func TestWorkspaceReplacesValues(t *testing.T) {
	w, g, own := oneThread(), doubled(t), []float32{1, 2, 3, 4}
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

func TestWorkspaceNames(t *testing.T) {
	w, g := oneThread(), doubled(t)
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

// A value that is missing is an error.
func TestWorkspaceErrors(t *testing.T) {
	for want, use := range map[string]func(w *workspace){
		"reads factor, which has no value": func(w *workspace) { w.Run(doubled(t), 1, nil) },
		"no value sums was made":           func(w *workspace) { w.Get("sums") },
		"y has 3 values":                   func(w *workspace) { w.Put("y", []float32{1, 2, 3}, 2, 2) },
	} {
		w := oneThread()
		w.Put("x", []float32{1, 2}, 1, 2)
		err := func() (err error) {
			defer graph.Catch(&err, "test")
			use(w)
			return nil
		}()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
}
