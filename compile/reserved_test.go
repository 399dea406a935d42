// No parameter has the name of an input or output.

package compile_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/language"
)

// withParameter returns a model with a parameter of the given name that uses all inputs a
// training graph can have.
func withParameter(t *testing.T, name string) *language.Spec {
	t.Helper()
	spec, err := language.Parse("test.yaml", []byte("name: t\nmodel:\n  params:\n    "+name+": {shape: [d, k]}\n  let: "+
		"{p: \"softmax(matmul(bag_mean(X), "+name+"))\"}\n"+
		"weights: {update: \"S * w * exp(-t / T)\"}\nloss:\n  - equation: {name: e, value: \"-sum(w * log(p) * lambda * t "+
		"/ T)\"}\n"))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return spec
}

// No parameter can have the name of an input or output of a program's graphs, because engines,
// files and steps identify values by name.
func TestNoParameterIsNamedAsAnInputOrOutput(t *testing.T) {
	sig := compile.Signature{Instance: []int{3}, Classes: 4}
	p, err := compile.Compile(withParameter(t, "C"), sig)
	if err != nil {
		t.Fatal(err)
	}
	graphs := []*graph.Graph{p.Train, p.Infer}
	adam, rmsprop := *p.Spec, *p.Spec
	adam.Train.Optimizer.V, rmsprop.Train.Optimizer.V = "adam", "rmsprop"
	adam.Train.Accumulate.V = 2
	for _, spec := range []*language.Spec{&adam, &rmsprop} {
		q := *p
		q.Spec = spec
		g, err := compile.Update(&q)
		if err != nil {
			t.Fatal(err)
		}
		graphs = append(graphs, g)
	}
	for _, build := range []func(*compile.Program) (*graph.Graph, error){compile.Step, compile.StepOneBag, compile.Predict,
		compile.Update} {
		g, err := build(p)
		if err != nil {
			t.Fatal(err)
		}
		graphs = append(graphs, g)
	}
	names := map[string]bool{}
	for _, g := range graphs {
		for _, n := range g.ByOp(graph.OpInput) {
			names[n.Name] = true
		}
		for _, o := range g.Outputs {
			names[o.Name] = true
		}
	}
	if len(names) < 19 {
		t.Errorf("the graphs have only the names %v", names)
	}
	identifier := regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.]*$`) // as the text of XLA's programs needs it
	for name := range names {
		if !identifier.MatchString(name) {
			t.Errorf("%q is no identifier", name)
		}
		if strings.Contains(name, ".") || name == compile.InLambda {
			continue // not a valid name in a spec
		}
		want := fmt.Sprintf("test.yaml:4:5: the graphs of a model have an input or output %s", name)
		if err := compile.Check(withParameter(t, name), sig); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("parameter %s: %v, want %q", name, err, want)
		}
	}
}
