// Twenty steps, and steps of all specs, in every engine.

package crosscheck_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/internal/testkit/traintest"
	"github.com/miplc/miplc/language"
)

// These specs are the authors' program (shared gates, a small network as scorer, bounded sigmoid,
// weights of the previous epoch) and the paper's reading, on features, with a dense layer and dropout
// in front.
const (
	paperFeatures = `
name: paper
extends: demipl
data: {set: "generated:prototypes", generated: {features: 20, classes: 5}}
model:
  blocks: [{dense: 16}, {dropout: 0.5}, relu, attention, {pool: attention}, classifier]
train: {lr: 0.05}
`
	programFeatures = `
name: program
extends: demipl
data: {set: "generated:prototypes", generated: {features: 20, classes: 5}}
model:
  blocks:
    - dense: 16
    - dropout: 0.5
    - relu
    - attention: {gates: shared, scorer: mlp, hidden: 32}
    - pool: attention
    - classifier: bounded_sigmoid
weights: {order: after_loss, first_epoch: 0}
train: {lr: 0.05}
`
)

// Losses agree with the interpreter's within 1e-5 over twenty steps with dropout, in both
// readings, on features and with the CNN of the shipped specs, with one bag and sixteen bags per
// step; on images, with sixteen bags, over four.
func TestTwentySteps(t *testing.T) {
	t.Parallel()
	list, w := engines(t), map[string]map[string]float64{}
	for _, c := range []struct {
		name    string
		program func() *compile.Program
	}{
		{"paper, features", func() *compile.Program { return traintest.Parsed(t, "paper", paperFeatures) }},
		{"program, features", func() *compile.Program { return traintest.Parsed(t, "program", programFeatures) }},
		{"paper, CNN", func() *compile.Program { return traintest.Shipped(t, "demipl-image") }},
		{"program, CNN", func() *compile.Program { return traintest.Shipped(t, "demipl-program") }},
	} {
		for _, sizes := range [][][]int{
			{{9}, {1}, {5}, {12}},
			{{3, 1, 4, 1, 5, 2, 6, 5, 3, 5, 1, 2, 7, 1, 3, 2}, {2, 7, 1, 4, 2, 1, 1, 6, 3, 2, 4, 3, 1, 2, 5, 1}},
		} {
			p, bags := c.program(), len(sizes[0])
			steps := 20
			if isImage(p) { // a step on many images is slow in the interpreter
				steps = 20 / min(bags, 5)
			}
			if light && isImage(p) {
				continue
			}
			p.Spec.Train.Batch.V = bags
			compareTrajectories(t, fmt.Sprintf("%s, %d bags", c.name, bags), p, list, w, 1e-5, steps, uint64(bags), sizes)
		}
	}
	if light {
		logWorst(t, w)
		return
	}
	spec, err := language.Load("demipl-program")
	if err != nil {
		t.Fatal(err)
	}
	p := traintest.Compiled(t, spec, compile.Signature{Instance: spec.Data.Shape.V, Classes: 5})
	compareTrajectories(t, "program, images of 28 by 28", p, list, w, 1e-5, 10, 1, [][]int{{2}, {3}})
	logWorst(t, w)
}

// All shipped specs and random ones agree for four steps over three batches. With more steps a value
// eventually falls within rounding of the kink of a relu, maximum or clamp, where engines
// legitimately diverge.
func TestStepsOfAllSpecs(t *testing.T) {
	t.Parallel()
	list, w := engines(t), map[string]map[string]float64{}
	run := func(name string, p *compile.Program, seed uint64) {
		sizes := [][]int{{4, 1, 3}, {2, 5, 1}, {3}}
		if slices.ContainsFunc(p.Spec.Model.Blocks, func(b language.Block) bool { return b.Kind.V == "batch_norm" }) {
			// Batch normalisation of bags divides by their deviation, in each of four layers. That of few bags
			// is small for some features, which increases rounding.
			sizes = [][]int{slices.Repeat([]int{4, 1, 3}, 8), slices.Repeat([]int{2, 5, 1}, 8), {3}}
		}
		p.Spec.Train.Batch.V = len(sizes[0])
		compareTrajectories(t, name, p, list, w, 1e-5, 4, seed, sizes)
	}
	for _, name := range language.TrainedNames() {
		if p := traintest.Shipped(t, name); !light || !isImage(p) {
			run(name, p, 1)
		}
	}
	for seed := range randomSpecs() {
		run(fmt.Sprintf("random%d", seed), traintest.Random(t, seed), seed)
	}
	logWorst(t, w)
}
