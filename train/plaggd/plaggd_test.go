// The learner learns, and every round lowers its loss.

package plaggd

import (
	"context"
	"errors"
	"math"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/generate"
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/resources"
	"github.com/miplc/miplc/train"
)

// settings returns the settings of the authors.
func settings() Settings {
	return Settings{Vector: Mean, Neighbors: 10, Gamma: 0.05, Lambda: 1, Mu: 1, Iterations: 10}
}

func prototypes(t *testing.T) *train.Problem {
	t.Helper()
	return drawn(t, 6, 0.5)
}

func drawn(t *testing.T, features int, positives float64) *train.Problem {
	t.Helper()
	set, err := generate.Prototypes(generate.PrototypeOptions{Bags: 90, Classes: 4, Features: features, Candidates: 1,
		Positives: positives, MinSize: 2, MaxSize: 6, Noise: 0.5, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	split, err := data.RandomSplit(set.Bags(), set.TrueLists(), data.SplitSettings{Train: 0.7, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	normalization, _ := data.NewNormalization(set, split.Train)
	return &train.Problem{Data: set, Train: split.Train, Normalization: normalization}
}

func mustFit(t *testing.T, s Settings, p *train.Problem, observe func(train.Iteration)) train.FittedModel {
	t.Helper()
	m, err := Fit(context.Background(), s, p, observe)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Every round lowers the joint objective, and confidences stay feasible.
func TestEveryRoundLowersTheLoss(t *testing.T) {
	p := prototypes(t)
	last, rounds := math.Inf(1), 0
	mustFit(t, settings(), p, func(i train.Iteration) {
		if i.Number != rounds || !(i.Loss <= last+1e-9) || i.Loss < 0 {
			t.Errorf("iteration %d: loss %.12g after %.12g", i.Number, i.Loss, last)
		}
		last, rounds = i.Loss, rounds+1
		k := p.Data.Classes
		for row, bag := range p.Train {
			sum := 0.0
			for c, v := range i.Confidences[row*k : (row+1)*k] {
				if v < 0 || v > 0 && p.Data.CandidateMask(bag)[c] == 0 {
					t.Fatalf("iteration %d: confidences of bag %d are %v", i.Number, bag, i.Confidences[row*k:(row+1)*k])
				}
				sum += v
			}
			if math.Abs(sum-1) > 1e-12 {
				t.Fatalf("iteration %d: confidences of bag %d sum to %g", i.Number, bag, sum)
			}
		}
	})
	if rounds != 11 {
		t.Errorf("%d calls of the observer, want the start and 10 rounds", rounds)
	}
}

// On bags that are easy to separate, the accuracy is far above the chance level of one in four.
func TestLearns(t *testing.T) {
	p := drawn(t, 20, 1)
	var test []int
	for bag := range p.Data.Bags() {
		if !slices.Contains(p.Train, bag) {
			test = append(test, bag)
		}
	}
	for _, v := range []Vector{Mean, MaxMin} {
		s := settings()
		s.Vector = v
		if share := accuracy(t, mustFit(t, s, p, nil), p.Data, test); share < 0.8 {
			t.Errorf("%s: accuracy %.3f on bags of well separated prototypes", v, share)
		}
	}
}

// The graph in the float64 interpreter predicts like the model, up to its float32 parameters. Bags of
// a batch do not influence each other.
func TestGraphEqualsModel(t *testing.T) {
	plain := prototypes(t)
	plain.Normalization = nil
	images := prototypes(t)
	var err error
	if images.Data, err = images.Data.Reshape([]int{1, 2, 3}); err != nil {
		t.Fatal(err)
	}
	for name, p := range map[string]*train.Problem{"normalised": prototypes(t), "plain": plain, "images": images} {
		for _, v := range []Vector{Mean, MaxMin} {
			s := settings()
			s.Vector = v
			m := mustFit(t, s, p, nil)
			g, params, err := m.Graph()
			if err != nil {
				t.Fatalf("%s %s: %v", name, v, err)
			}
			for _, o := range g.Outputs {
				if n := o.Node.Mixers(); len(n) > 0 {
					t.Errorf("%s depends on more than one bag: %v", o.Name, n[0].Op)
				}
			}
			if err := graph.Verify(g); err != nil {
				t.Fatal(err)
			}
			comparePredictions(t, name+" "+string(v), m, g, params, p.Data, 1e-6)
		}
	}
}

func comparePredictions(t *testing.T, name string, m train.FittedModel, g *graph.Graph, params map[string][]float32,
	set *data.Dataset, tolerance float64) {
	t.Helper()
	env := graph.Env{N: set.Offsets[20], B: 20, Values: map[string]*graph.Tensor{}}
	bagOf := make([]int, env.N)
	for bag := range 20 {
		for i := set.Offsets[bag]; i < set.Offsets[bag+1]; i++ {
			bagOf[i] = bag
		}
	}
	env.Values[compile.InBagOf] = &graph.Tensor{Shape: []int{env.N}, Ints: bagOf}
	wide := func(v []float32) []float64 { return train.Normalized(v, nil) }
	env.Values[compile.InInstances] = graph.NewTensor(append([]int{env.N}, set.Shape...),
		wide(set.Instances[:env.N*set.Dim()])...)
	for _, n := range g.ByOp(graph.OpParam) {
		env.Values[n.Name] = graph.NewTensor(n.Shape.Concrete(0, 0), wide(params[n.Name])...)
	}
	out, err := graph.Eval(g, env)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	for bag := range 20 {
		p, a, err := m.Predict(bagValues(set, bag), set.Size(bag))
		if err != nil {
			t.Fatal(err)
		}
		for c, v := range p {
			if got := out[compile.OutProbabilities].Data[bag*set.Classes+c]; math.Abs(got-v) > tolerance || math.IsNaN(got) {
				t.Errorf("%s: probability %d of bag %d is %g in the graph, %g natively", name, c, bag, got, v)
			}
		}
		if got := out[compile.OutAttention].Data[set.Offsets[bag]]; math.Abs(got-a[0]) > 1e-12 {
			t.Errorf("%s: attention %g in the graph, %g natively", name, got, a[0])
		}
	}
}

func TestSameBits(t *testing.T) {
	p := prototypes(t)
	_, first, err := mustFit(t, settings(), p, nil).Graph()
	if err != nil {
		t.Fatal(err)
	}
	_, second, err := mustFit(t, settings(), p, nil).Graph()
	if err != nil {
		t.Fatal(err)
	}
	for name, values := range first {
		if !slices.Equal(values, second[name]) {
			t.Errorf("%s differs between two fits of the same problem", name)
		}
	}
}

func TestRefuses(t *testing.T) {
	ctx := context.Background()
	p := prototypes(t)
	p.Train = p.Train[:1]
	if _, err := Fit(ctx, settings(), p, nil); err == nil || !strings.Contains(err.Error(), "at least 2 training bags") {
		t.Errorf("one bag: %v", err)
	}
	p = prototypes(t)
	p.Train = p.Train[:3] // fewer bags than neighbours
	if _, err := Fit(ctx, settings(), p, nil); err != nil {
		t.Errorf("three bags: %v", err)
	}
	same := *p.Data
	same.Instances = make([]float32, len(same.Instances))
	p.Data = &same
	if _, err := Fit(ctx, settings(), p, nil); err == nil || !strings.Contains(err.Error(), "same vector") {
		t.Errorf("equal bags: %v", err)
	}
	m := mustFit(t, settings(), prototypes(t), nil)
	if _, _, err := m.Predict(make([]float32, 7), 1); err == nil {
		t.Error("a bag of the wrong size is accepted")
	}
}

// The inner products of many neighbours need more memory than the kernel.
func TestMemoryOfNeighbors(t *testing.T) {
	before := debug.SetMemoryLimit(256 << 20)
	defer debug.SetMemoryLimit(before)
	d := &data.Dataset{Shape: []int{1}, Classes: 2, Offsets: []int{0}}
	for i := range 400 {
		d.Instances, d.Offsets = append(d.Instances, float32(i)), append(d.Offsets, i+1)
		d.Candidates = append(d.Candidates, uint8(1-i%2), uint8(i%2))
	}
	s := settings()
	s.Neighbors = 10_000
	_, err := Fit(context.Background(), s, &train.Problem{Data: d, Train: d.AllBags()}, nil)
	if _, large := errors.AsType[*resources.MemoryError](err); !large ||
		!strings.Contains(err.Error(), "use fewer neighbours") {
		t.Errorf("400 bags with all others as neighbours: %v", err)
	}
}

// A fit that is cancelled at any time returns the error of its context.
func TestCancel(t *testing.T) {
	for _, at := range []int{-1, 0, 3} {
		ctx, cancel := context.WithCancel(context.Background())
		if at < 0 {
			cancel()
		}
		_, err := Fit(ctx, settings(), prototypes(t), func(i train.Iteration) {
			if i.Number == at {
				cancel()
			}
		})
		cancel()
		if !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled at %d: %v", at, err)
		}
	}
}

// Ties are broken by the smaller index. A point is never its own neighbour, even if it has
// duplicates.
func TestNearest(t *testing.T) {
	x := mat.NewDense(5, 1, []float64{0, 0, 1, 3, 0})
	want := [][]int{{1, 4}, {0, 4}, {0, 1}, {2, 0}, {0, 1}}
	for i := range want {
		if list := nearest(x, i, 2); !slices.Equal(list, want[i]) {
			t.Errorf("neighbours of %d: %v, want %v", i, list, want[i])
		}
	}
	g, err := newGraph(context.Background(), x, 10)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(g.neighbors[0]); n != 4 {
		t.Errorf("%d neighbours of 5 points", n)
	}
}

// Vectors far from all others do not overflow, and their prediction is defined.
func TestFarVectors(t *testing.T) {
	p := prototypes(t)
	p.Normalization = nil
	set := *p.Data
	set.Instances = slices.Clone(set.Instances)
	p.Data = &set
	shift := []float32{10, 1e4, 1e12} // one training bag, then bags that are not training bags
	for bag := range 20 {
		if trains := slices.Contains(p.Train, bag); len(shift) > 0 && trains == (shift[0] == 10) {
			for i := range bagValues(&set, bag) {
				bagValues(&set, bag)[i] += shift[0]
			}
			shift = shift[1:]
		}
	}
	if len(shift) > 0 {
		t.Fatal("too few bags among the compared ones")
	}
	s := settings()
	s.Width = 2
	m := mustFit(t, s, p, nil)
	g, params, err := m.Graph()
	if err != nil {
		t.Fatal(err)
	}
	comparePredictions(t, "far", m, g, params, &set, 1e-4)
}

// bagValues returns the instances of a bag in memory.
func bagValues(d *data.Dataset, i int) []float32 {
	x, _ := d.Bag(i)
	return x
}
