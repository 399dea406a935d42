// Steps of all programs in every engine.

package engines_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/internal/testkit/enginetest"
	"github.com/miplc/miplc/internal/testkit/modeltest"
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

// optimizers are settings of the parameter updates, which all engines compute in the same way.
var optimizers = [][]string{
	{"train.clip=0.2"},
	{"train.clip=0.2", "train.momentum=0", "train.weight_decay=0.1"},
	{"train.optimizer=adam", "train.lr=0.01", "train.weight_decay=0.01"},
	{"train.optimizer=adamw", "train.lr=0.01", "train.weight_decay=0.1", "train.beta1=0.8", "train.clip=0.5"},
	{"train.optimizer=rmsprop", "train.lr=0.003"},
	{"train.accumulate=3", "train.optimizer=adam", "train.lr=0.01", "train.clip=0.2"},
	{"train.accumulate=2", "train.class_weights=balanced"},
	{"train.accumulate=2", "train.clip=0.2", "train.batch=2", normalized, "loss=[disambiguation]"},
	{"train.optimizer=rmsprop", "train.lr=0.003", "train.momentum=0.9", "train.weight_decay=0.01", "train.alpha=0.9"},
}

// normalized has batch normalisations of instances and of bags.
const normalized = "model.blocks=[dense: 8, batch_norm, relu, pool: mean, dense: 6, batch_norm: 0.3, classifier]"

// position returns the position of step, counted from 0, among the updates of a program.
func position(p *compile.Program, step int) compile.Position {
	n := max(1, p.Spec.Train.Accumulate.V)
	return compile.Position{Update: step/n + 1, Steps: n, Pending: step%n < n-1}
}

// Sizes of the bags of batches.
var (
	singleBags  = [][]int{{9}, {1}, {5}, {12}}
	fewBags     = [][]int{{4, 1, 3}, {2, 5, 1}, {3}}
	sixteenBags = [][]int{{3, 1, 4, 1, 5, 2, 6, 5, 3, 5, 1, 2, 7, 1, 3, 2},
		{2, 7, 1, 4, 2, 1, 1, 6, 3, 2, 4, 3, 1, 2, 5, 1}}
)

// stepCase is a program, and steps of it with one batch after the other.
type stepCase struct {
	name    string
	program *compile.Program
	count   int
	seed    uint64
	sizes   [][]int
}

// stepCases lists what TestSteps compares: all shipped specs and random ones for four steps over three batches. With
// more steps a value eventually falls within rounding of the kink of a relu, maximum or clamp, where engines
// legitimately diverge. Both readings, with one bag and with sixteen, and all update rules are followed for twenty
// steps; on images fewer, because the interpreter is slow.
func stepCases(t *testing.T) (list []stepCase) {
	add := func(name string, p *compile.Program, count int, seed uint64, sizes [][]int) {
		list = append(list, stepCase{name, p, count, seed, sizes})
	}
	readings := func(of string, long int, paper, program func() *compile.Program) {
		add("paper, one bag, "+of, paper(), 20, 1, singleBags)
		add("paper, sixteen bags, "+of, paper(), long, 16, sixteenBags)
		add("program, one bag, "+of, program(), 20, 1, singleBags)
		add("program, sixteen bags, "+of, program(), long, 16, sixteenBags)
	}
	shipped := func(name string, set ...string) func() *compile.Program {
		return func() *compile.Program { return modeltest.Shipped(t, name, set...) }
	}
	parsed := func(name, text string) func() *compile.Program {
		return func() *compile.Program { return modeltest.Parsed(t, name, text) }
	}
	readings("features", 20, parsed("paper", paperFeatures), parsed("program", programFeatures))
	for i, set := range optimizers {
		name := fmt.Sprint("quickstart ", set)
		if light && enginetest.OnPlugin() { // XLA compiles slowly
			add(name, shipped("quickstart", set...)(), 3, uint64(i), [][]int{{4}})
			continue
		}
		add(name, shipped("quickstart", set...)(), 20, uint64(i), [][]int{{4}, {2}, {5}})
		add(name+", three bags", shipped("quickstart", set...)(), 20, uint64(i), fewBags)
	}
	for _, name := range language.TrainedNames() {
		if p := shipped(name)(); !light || !isImage(p) {
			add(name, p, 4, 1, fewBags)
		}
	}
	for seed := range randomSpecs() {
		add(fmt.Sprintf("random%d", seed), modeltest.RandomProgram(t, seed), 4, seed, fewBags)
	}
	if light {
		return list
	}
	readings("CNN", 4, shipped("demipl-image"), shipped("demipl-program"))
	// computed bag by bag, with one update
	add("images with clipped gradients", shipped("demipl-image", "train.clip=0.2")(), 3, 1, [][]int{{2, 1, 3}})
	spec, err := language.Load("demipl-program")
	if err != nil {
		t.Fatal(err)
	}
	large := modeltest.Compiled(t, spec, compile.Signature{Instance: spec.Data.Shape.V, Classes: 5})
	add("program, images of 28 by 28", large, 10, 1, [][]int{{2}, {3}})
	return list
}

// Every engine agrees with the interpreter: losses, predictions, label weights and parameters.
func TestSteps(t *testing.T) {
	t.Parallel()
	list, w := compared(t), map[string]map[string]float64{}
	for _, c := range stepCases(t) {
		isNorm := func(b language.Block) bool { return b.Kind.V == "batch_norm" }
		if c.count == 4 && slices.ContainsFunc(c.program.Spec.Model.Blocks, isNorm) {
			// Batch normalisation of bags divides by their deviation, in each of four layers. That of few bags
			// is small for some features, which increases rounding.
			c.sizes = [][]int{slices.Repeat([]int{4, 1, 3}, 8), slices.Repeat([]int{2, 5, 1}, 8), {3}}
		}
		c.program.Spec.Train.Batch.V = len(c.sizes[0])
		compareTrajectories(t, c.name, c.program, list, w, 1e-5, c.count, c.seed, c.sizes)
	}
	logWorst(t, w)
}
