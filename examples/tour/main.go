// Command tour follows one small spec through the stages of miplc: spec, graph, value,
// gradient, training step. Each stage prints what it made. docs/tour.md quotes it.
//
//	go run ./examples/tour
package main

import (
	"fmt"
	"io"
	"log"
	"maps"
	"math"
	"os"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/language"
)

// text is a model of two-dimensional instances and two classes. It has one loss term, so
// that its graph fits on a screen.
const text = `
name: tour
model:
  blocks:
    - attention
    - pool: attention
    - classifier
loss:
  - disambiguation
`

func main() {
	if err := tour(os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func tour(w io.Writer) error {
	program, err := compileSpec(w)
	if err != nil {
		return err
	}
	env := batch(program)
	env, err = evaluate(w, program, env)
	if err != nil {
		return err
	}
	gradients, err := differentiate(w, program, env)
	if err != nil {
		return err
	}
	if err := checkGradient(w, program, env, gradients); err != nil {
		return err
	}
	return step(w, program, env, gradients)
}

// compileSpec reads the spec and compiles it for instances of 2 numbers and 2 classes.
func compileSpec(w io.Writer) (*compile.Program, error) {
	spec, err := language.Parse("tour.yaml", []byte(text))
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(w, "== spec: %d blocks, learning rate %g\n", len(spec.Model.Blocks), spec.Train.LR.V)
	program, err := compile.Compile(spec, compile.Signature{Instance: []int{2}, Classes: 2})
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(w, "\n== parameters: %d numbers\n", program.FlatSize())
	for _, p := range program.Params {
		fmt.Fprintf(w, "%s %v\n", p.Name, p.Shape)
	}
	fmt.Fprintf(w, "\n== training graph\n%s", program.Train.Text())
	return program, nil
}

// batch binds the inputs of the training graph: two bags with three and two instances, and
// parameters that a real training would draw at random.
func batch(program *compile.Program) graph.Env {
	values := map[string]*graph.Tensor{
		compile.InInstances:    graph.NewTensor([]int{5, 2}, 1, 0, 0, 0.1, 0.2, 0, 0, 1, 0.1, 0.1),
		compile.InBagOf:        graph.NewInts(0, 0, 0, 1, 1),                 // the bag of each instance
		compile.InCandidates:   graph.NewTensor([]int{2, 2}, 1, 0, 1, 1),     // bag 0: {0}, bag 1: {0, 1}
		compile.InLabelWeights: graph.NewTensor([]int{2, 2}, 1, 0, 0.5, 0.5), // the label weights so far
		compile.InLambda:       graph.NewTensor(nil, 0.9),                    // the share that the old weights keep
	}
	for _, p := range program.Params {
		t := graph.NewTensor(p.Shape)
		for i := range t.Data {
			t.Data[i] = math.Sin(float64(i + len(p.Name))) // any fixed numbers will do
		}
		values[p.Name] = t
	}
	return graph.Env{N: 5, B: 2, Values: values}
}

// evaluate runs the training graph with the interpreter, node by node, in float64. It
// returns the batch with the new label weights, which stay as they are from here on
// (lambda = 1): the gradient treats them as constants.
func evaluate(w io.Writer, program *compile.Program, env graph.Env) (graph.Env, error) {
	out, err := graph.Eval(program.Train, env)
	if err != nil {
		return env, err
	}
	fmt.Fprintln(w, "\n== values")
	for _, name := range []string{compile.OutAttention, compile.OutProbabilities, compile.OutLabelWeights,
		compile.OutLoss} {
		fmt.Fprintf(w, "%s %v %.4f\n", name, out[name].Shape, out[name].Data)
	}
	env.Values[compile.InLabelWeights], env.Values[compile.InLambda] = out[compile.OutLabelWeights], graph.NewTensor(nil,
		1)
	return env, nil
}

// differentiate builds the gradient of the loss by every parameter. It is a graph again,
// so the same interpreter runs it.
func differentiate(w io.Writer, program *compile.Program, env graph.Env) (map[string]*graph.Tensor, error) {
	var names []string
	for _, p := range program.Params {
		names = append(names, p.Name)
	}
	g, err := graph.Gradient(program.Train, compile.OutLoss, names)
	if err != nil {
		return nil, err
	}
	out, err := graph.Eval(g, env)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(w, "\n== gradient: %d nodes instead of %d\n", len(g.Nodes), len(program.Train.Nodes))
	gradients := map[string]*graph.Tensor{}
	for _, name := range names {
		gradients[name] = out[graph.GradPrefix+name]
		fmt.Fprintf(w, "%s %.4f\n", name, gradients[name].Data)
	}
	return gradients, nil
}

// checkGradient compares one element of the gradient with a finite difference of the loss.
func checkGradient(w io.Writer, program *compile.Program, env graph.Env, gradients map[string]*graph.Tensor) error {
	const h = 1e-6
	first := program.Params[0].Name
	up, err := loss(program, move(env, first, 0, h))
	if err != nil {
		return err
	}
	down, err := loss(program, move(env, first, 0, -h))
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "\n== check: %s[0] has gradient %.6f, finite difference %.6f\n", first, gradients[first].Data[0],
		(up-down)/(2*h))
	return nil
}

// step moves every parameter against its gradient, once: gradient descent.
func step(w io.Writer, program *compile.Program, env graph.Env, gradients map[string]*graph.Tensor) error {
	before, err := loss(program, env)
	if err != nil {
		return err
	}
	rate := program.Spec.Train.LR.V
	for name, gradient := range gradients {
		for i, slope := range gradient.Data {
			env = move(env, name, i, -rate*slope)
		}
	}
	after, err := loss(program, env)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "\n== step: loss %.6f before, %.6f after\n", before, after)
	return nil
}

// loss returns the loss of the batch.
func loss(program *compile.Program, env graph.Env) (float64, error) {
	out, err := graph.Eval(program.Train, env)
	if err != nil {
		return 0, err
	}
	return out[compile.OutLoss].Data[0], nil
}

// move returns a copy of the values in which one number has changed.
func move(env graph.Env, name string, i int, by float64) graph.Env {
	t := env.Values[name]
	changed := graph.NewTensor(t.Shape, append([]float64(nil), t.Data...)...)
	changed.Data[i] += by
	env.Values = maps.Clone(env.Values)
	env.Values[name] = changed
	return env
}
