// Programs and batches that the tests of this package share.

package engines_test

import (
	"flag"
	"os"
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/testkit/enginetest"
)

// light omits most random specs and the images in the slow tests, for go test -short and for the
// race detector, with which they take minutes.
var light bool

func TestMain(m *testing.M) {
	flag.Parse()
	light = light || testing.Short()
	os.Exit(m.Run())
}

// randomSpecs returns the number of random specs that the tests of this package draw.
func randomSpecs() uint64 {
	switch {
	case light && enginetest.OnPlugin(): // XLA compiles slowly
		return 8
	case light:
		return 20
	}
	return 60
}

func isImage(p *compile.Program) bool { return len(p.Signature.Instance) == 3 }

func evaluate(t testing.TB, g *graph.Graph, env graph.Env) map[string]*graph.Tensor {
	t.Helper()
	out, err := graph.Eval(g, env)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
