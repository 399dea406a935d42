// The learner learns, and its graph predicts what it predicts.

package miplgp

import (
	"context"
	"errors"
	"math"
	"runtime/debug"
	"slices"
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/generate"
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/resources"
	"github.com/miplc/miplc/train"
)

// prototypes returns a small problem that can be learned. Bags 0 to 99 are training bags.
func prototypes(t *testing.T) *train.Problem {
	t.Helper()
	set, err := generate.Prototypes(generate.PrototypeOptions{
		Bags: 150, Classes: 5, Features: 6, Candidates: 1, Positives: 0.4, MinSize: 3, MaxSize: 5, Noise: 0.3, Seed: 3,
	})
	if err != nil {
		t.Fatal(err)
	}
	p := &train.Problem{Data: set, Seed: 5}
	for bag := range 150 {
		if !held(bag) {
			p.Train = append(p.Train, bag)
		}
	}
	p.Normalization, _ = data.NewNormalization(set, p.Train)
	return p
}

// instances returns the unnormalised instances of generated bags.
func instances(t testing.TB, o generate.PrototypeOptions) *problem {
	t.Helper()
	set, err := generate.Prototypes(o)
	if err != nil {
		t.Fatal(err)
	}
	in, err := problemOf(&train.Problem{Data: set, Train: set.AllBags()})
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// quick returns settings that are sufficient for prototypes.
func quick(solver string) Settings {
	s := defaults()
	s.Solver, s.Iterations, s.Inducing, s.Probes, s.Rank = solver, 10, 60, 4, 30
	return s
}

func mustFit(t *testing.T, s Settings, p *train.Problem, observe func(train.Iteration)) *model {
	t.Helper()
	m, err := Fit(t.Context(), s, p, observe)
	if err != nil {
		t.Fatal(err)
	}
	return m.(*model)
}

func TestLearns(t *testing.T) {
	subset := quick(solverInducing)
	subset.Subset = 100
	for name, s := range map[string]Settings{
		"exact": quick(solverExact), "cg": quick(solverCG), "inducing": quick(solverInducing), "subset": subset,
	} {
		t.Run(name, func(t *testing.T) {
			p := prototypes(t)
			var numbers []int
			var losses []float64
			m := mustFit(t, s, p, func(i train.Iteration) {
				numbers, losses = append(numbers, i.Number), append(losses, i.Loss)
				if (i.Confidences == nil) != (s.Subset > 0) {
					t.Errorf("iteration %d has %d confidences", i.Number, len(i.Confidences))
				}
				checkConfidences(t, p, i.Confidences)
			})
			if len(numbers) != 11 || numbers[0] != 0 || numbers[10] != 10 || losses[10] >= losses[0] {
				t.Errorf("iterations %v with losses %v", numbers, losses)
			}
			byMean, byDraws := accuracies(t, m, p.Data)
			if byMean < 0.75 || byDraws < 0.75 {
				t.Errorf("mean and variance predict %.2f of the test bags correctly, draws %.2f", byMean, byDraws)
			}
		})
	}
}

func checkConfidences(t *testing.T, p *train.Problem, confidences []float64) {
	k := p.Data.Classes
	for row := range len(confidences) / k {
		sum := 0.0
		for c, v := range confidences[row*k : (row+1)*k] {
			if sum += v; v < 0 || v > 0 && p.Data.CandidateMask(p.Train[row])[c] == 0 {
				t.Errorf("bag %d has confidence %g in class %d", row, v, c)
			}
		}
		if math.Abs(sum-1) > 1e-9 {
			t.Errorf("confidences of bag %d sum to %g", row, sum)
		}
	}
}

// held reports whether a bag of prototypes is a test bag: every third one, so that all classes are in
// both parts.
func held(bag int) bool { return bag%3 == 2 }

// accuracies returns the accuracies on the test bags of prototypes.
func accuracies(t *testing.T, m *model, set *data.Dataset) (byMean, byDraws float64) {
	var bags []int
	for bag := range set.Bags() {
		if held(bag) {
			bags = append(bags, bag)
		}
	}
	list, err := m.PredictBags(t.Context(), set, bags, true)
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range list {
		for to, probabilities := range map[*float64][]float64{&byMean: p.Probabilities, &byDraws: p.Sampled} {
			if slices.Index(probabilities, slices.Max(probabilities)) == set.Labels[bags[i]] {
				*to += 1. / 50
			}
		}
	}
	return byMean, byDraws
}

// Predictions of many bags on the device agree with those of single bags in float64.
func TestPredictBags(t *testing.T) {
	p := prototypes(t)
	m := mustFit(t, quick(solverCG), p, nil)
	bags := []int{7, 149, 0}
	list, err := m.PredictBags(t.Context(), p.Data, bags, false)
	if err != nil {
		t.Fatal(err)
	}
	for i, bag := range bags {
		probabilities, attention, err := m.Predict(bagValues(p.Data, bag), p.Data.Size(bag))
		if err != nil || list[i].Sampled != nil {
			t.Fatal(err, list[i])
		}
		near(t, "probabilities", list[i].Probabilities, probabilities, tolerance)
		near(t, "attention", list[i].Attention, attention, tolerance)
	}
}

// The graph in the float64 interpreter predicts like the model, up to rounding of its parameters to
// float32.
func TestGraphEqualsModel(t *testing.T) {
	for _, solver := range []string{solverExact, solverCG, solverInducing} {
		p := prototypes(t)
		m := mustFit(t, quick(solver), p, nil)
		g, params, err := m.Graph()
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range g.Outputs {
			if n := o.Node.Mixers(); len(n) > 0 {
				t.Errorf("%s depends on more than one bag: %v", o.Name, n[0].Op)
			}
		}
		if err := graph.Verify(g); err != nil {
			t.Fatal(err)
		}
		set := p.Data
		env := graph.Env{N: set.Offsets[150], B: 150, Values: map[string]*graph.Tensor{}}
		bagOf := make([]int, env.N)
		for bag := range 150 {
			for i := set.Offsets[bag]; i < set.Offsets[bag+1]; i++ {
				bagOf[i] = bag
			}
		}
		env.Values[compile.InBagOf] = &graph.Tensor{Shape: []int{env.N}, Ints: bagOf}
		env.Values[compile.InInstances] = graph.NewTensor([]int{env.N, 6}, train.Normalized(set.Instances, nil)...)
		for _, n := range g.ByOp(graph.OpParam) {
			env.Values[n.Name] = graph.NewTensor(n.Shape.Concrete(0, 0), train.Normalized(params[n.Name], nil)...)
		}
		out, err := graph.Eval(g, env)
		if err != nil {
			t.Fatal(err)
		}
		for bag := range 150 {
			probabilities, attention, err := m.Predict(bagValues(set, bag), set.Size(bag))
			if err != nil {
				t.Fatal(err)
			}
			near(t, solver+" probabilities", out[compile.OutProbabilities].Data[bag*5:bag*5+5], probabilities, 1e-5)
			near(t, solver+" attention", out[compile.OutAttention].Data[set.Offsets[bag]:set.Offsets[bag+1]], attention, 1e-5)
		}
	}
}

func TestSameBits(t *testing.T) {
	for _, solver := range []string{solverExact, solverCG, solverInducing} {
		s := quick(solver)
		s.Iterations = 3
		first, second := mustFit(t, s, prototypes(t), nil), mustFit(t, s, prototypes(t), nil)
		if !slices.Equal(first.alpha, second.alpha) || !slices.Equal(first.beta, second.beta) ||
			!slices.Equal(first.reduce[0], second.reduce[0]) {
			t.Errorf("%s: two fits of the same problem differ", solver)
		}
	}
}

// The approximation by mean and variance stays close to draws of the posterior.
func TestMeanAgainstSamples(t *testing.T) {
	p := prototypes(t)
	s := quick(solverExact)
	s.Samples = 4000
	m := mustFit(t, s, p, nil)
	worst := 0.0
	for bag := 100; bag < 150; bag++ {
		x := train.Normalized(bagValues(p.Data, bag), p.Normalization)
		mean, variance := m.moments(x)
		mean, variance = m.ofClasses(mean), m.ofClasses(variance)
		bySamples := m.sampledConfidences(mean, variance)
		for i, v := range m.confidences(mean, variance) {
			worst = math.Max(worst, math.Abs(v-bySamples[i]))
		}
	}
	if worst > 0.05 || worst == 0 {
		t.Errorf("confidences differ by up to %g", worst)
	}
}

// Analytic gradients agree with central differences of the same objective, for candidate sets of one
// size, whose noise has two values per class.
func TestGradientsAgainstDifferences(t *testing.T) {
	_, p, _ := loadFixture(t)
	for i := range p.Candidates {
		p.Candidates[i] = 1
		if i%p.Classes == i/p.Classes%p.Classes {
			p.Candidates[i] = 0
		}
	}
	tg := newTargets(p, 1e-4)
	for name, o := range map[string]objective{"exact": newExact(p), "inducing": newInducingAt(t.Context(), p,
		[]int{0, 4, 9, 13, 20})} {
		at := raw{0.4, 0.9, -1, -0.5, -2, 0.3, 0.1, -0.7, 0.5, -1.2}
		loss := func(r raw) float64 {
			e, err := o.evaluate(t.Context(), r.hyper(), tg)
			if err != nil {
				t.Fatal(err)
			}
			return e.loss
		}
		e, err := o.evaluate(t.Context(), at.hyper(), tg)
		if err != nil {
			t.Fatal(err)
		}
		step := 1e-2 // the features of inducing points are float32
		want := make([]float64, len(at))
		for i := range at {
			moved := func(by float64) float64 {
				r := slices.Clone(at)
				r[i] += by * step
				return loss(r)
			}
			want[i] = (8*(moved(1)-moved(-1)) - moved(2) + moved(-2)) / 12 / step
		}
		near(t, name, at.chain(e.grad), want, 2e-5)
	}
}

func TestRefuses(t *testing.T) {
	p := prototypes(t)
	p.Data, p.Train = &data.Dataset{Name: "one", Shape: []int{1}, Classes: 2, Instances: []float32{1},
		Offsets: []int{0, 1}, Candidates: []uint8{1, 1}, Labels: []int{0}}, []int{0}
	p.Normalization = nil
	if _, err := Fit(t.Context(), defaults(), p, nil); err == nil ||
		err.Error() != "miplgp: fitting needs at least 2 instances, the training bags have 1" {
		t.Errorf("one instance: %v", err)
	}
	m := mustFit(t, quick(solverInducing), prototypes(t), nil)
	for _, n := range []int{0, 2, -1} {
		if _, _, err := m.Predict(make([]float32, 7), n); err == nil {
			t.Errorf("7 numbers are accepted as %d instances of 6 features", n)
		}
	}
}

// Equal instances do not make a fit fail.
func TestEqualInstances(t *testing.T) {
	for _, solver := range []string{solverExact, solverCG, solverInducing} {
		p := prototypes(t)
		same := *p.Data
		same.Instances = make([]float32, len(same.Instances))
		p.Data, p.Normalization = &same, nil
		s := quick(solver)
		s.Iterations = 2
		m := mustFit(t, s, p, nil)
		probabilities, _, err := m.Predict(bagValues(&same, 0), same.Size(0))
		if err != nil || math.IsNaN(probabilities[0]) {
			t.Errorf("%s: %v, %v", solver, probabilities, err)
		}
	}
}

// A fit that is cancelled at any time returns the error of its context.
func TestCancel(t *testing.T) {
	for _, solver := range []string{solverExact, solverCG, solverInducing} {
		for _, at := range []int{-1, 0, 10} {
			ctx, cancel := context.WithCancel(t.Context())
			if at < 0 {
				cancel()
			}
			_, err := Fit(ctx, quick(solver), prototypes(t), func(i train.Iteration) {
				if i.Number == at {
					cancel()
				}
			})
			cancel()
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%s cancelled at %d: %v", solver, at, err)
			}
		}
	}
}

func TestSolverBySize(t *testing.T) {
	s := defaults()
	for n, want := range map[int]string{10: solverExact, 1500: solverExact, 1501: solverCG, 20000: solverCG,
		20001: solverInducing} {
		if got := s.solver(n); got != want {
			t.Errorf("%d instances: %s, want %s", n, got, want)
		}
	}
}

// Every solver checks its memory before it allocates it, inducing points too.
func TestMemoryOfSolvers(t *testing.T) {
	before := debug.SetMemoryLimit(100 << 20)
	defer debug.SetMemoryLimit(before)
	in := &problem{Dim: 1, Classes: 2, X: make([]float32, 4000), BagOf: make([]int, 4000)}
	for _, solver := range []string{solverExact, solverCG, solverInducing} {
		s := quick(solver)
		s.Inducing = 4000
		_, err := newObjective(context.Background(), in, s)
		if _, large := errors.AsType[*resources.MemoryError](err); !large {
			t.Errorf("%s: %v", solver, err)
		}
	}
}

// bagValues returns the instances of a bag in memory.
func bagValues(d *data.Dataset, i int) []float32 {
	x, _ := d.Bag(i)
	return x
}
