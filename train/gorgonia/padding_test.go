// Padding changes no step.

package gorgonia

import (
	"math"
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/internal/testkit/traintest"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/train"
)

func TestSize(t *testing.T) {
	m := &machines{paddable: true}
	for _, c := range []struct{ n, bags, want int }{
		{1, 1, 1}, {37, 1, 37}, {64, 1, 64}, {65, 1, 72}, {1000, 1, 1024},
		{1, 2, 8}, {16, 16, 16}, {120, 16, 120}, {592, 16, 640}, {660, 16, 704},
	} {
		if got := m.size(c.n, c.bags); got != (size{c.want, c.bags}) {
			t.Errorf("%d instances in %d bags use a machine for %v, want %d", c.n, c.bags, got, c.want)
		}
	}
	for n := 1; n < 5000; n++ {
		if got := m.size(n, 2).instances; got < n || float64(got) > float64(n)*1.125+8 {
			t.Fatalf("%d instances use a machine for %d", n, got)
		}
	}
}

func TestShippedProgramsCanBePadded(t *testing.T) {
	for _, name := range language.TrainedNames() {
		e, err := New(traintest.Shipped(t, name))
		if err != nil {
			t.Fatal(err)
		}
		if !e.training.paddable || !e.infer.paddable {
			t.Errorf("%s cannot be padded", name)
		}
	}
}

// started returns an engine with the untrained state of a program.
func started(t *testing.T, p *compile.Program) *Engine {
	t.Helper()
	e, err := New(p)
	if err == nil {
		err = e.SetState(train.UntrainedState(p, 3))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

// Steps with and without padding give the same results up to rounding.
func TestPaddingChangesNoStep(t *testing.T) {
	p := traintest.Shipped(t, "demipl")
	engines := [2]*Engine{started(t, p), started(t, p)}
	engines[1].training.paddable = false
	b := &train.Batch{Bags: 3, BagOf: []int{0, 0, 1, 2, 2, 2, 2}, Lambda: 0.5, Epoch: 1, Epochs: 4, LR: 0.1}
	for i := range 7 * 7 {
		b.Instances = append(b.Instances, float32(math.Sin(float64(i))))
	}
	for range 3 {
		b.Candidates = append(b.Candidates, 1, 1, 0, 0, 1)
		b.LabelWeights = append(b.LabelWeights, 0.5, 0.3, 0, 0, 0.2)
	}
	for step := range 20 {
		with, err := engines[0].Step(b)
		if err != nil {
			t.Fatal(err)
		}
		without, err := engines[1].Step(b)
		if err != nil {
			t.Fatal(err)
		}
		if d := math.Abs(with.Loss - without.Loss); !(d < 1e-6) {
			t.Fatalf("step %d: loss %v with padding, %v without", step, with.Loss, without.Loss)
		}
		if len(with.Attention) != len(without.Attention) {
			t.Fatalf("%d attention scores with padding, %d without", len(with.Attention), len(without.Attention))
		}
	}
	for i, want := range []size{{8, 3}, {7, 3}} {
		if _, ok := engines[i].training.bySize.Take(want); !ok {
			t.Errorf("engine %d has no machine of %+v", i, want)
		}
	}
}

// The engine keeps only the most recently used machines.
func TestMachinesAreBounded(t *testing.T) {
	p := traintest.Shipped(t, "demipl")
	e := started(t, p)
	e.infer.bySize.MaxCount = 4
	for n := 1; n <= 9; n++ {
		for _, size := range []int{n, 1} { // bags of one instance stay in use
			if _, _, err := e.Predict(make([]float32, 7*size), make([]int, size), 1); err != nil {
				t.Fatal(err)
			}
		}
	}
	for n := range 10 {
		want := n == 1 || n >= 7
		if _, ok := e.infer.bySize.Take(size{n, 1}); ok != want {
			t.Errorf("the machine for %d instances is kept: %t, want %t", n, ok, want)
		}
	}
}

func TestBadBatches(t *testing.T) {
	p := traintest.Shipped(t, "demipl")
	e := started(t, p)
	for _, c := range []struct {
		bagOf []int
		bags  int
	}{{[]int{0, 2}, 2}, {[]int{0, 0}, 2}, {[]int{1, 1}, 2}, {[]int{0, 1, 0}, 2}, {[]int{0, -1}, 1}, {nil, 0}, {nil, 1}} {
		if _, _, err := e.Predict(make([]float32, 6*len(c.bagOf)), c.bagOf, c.bags); err == nil {
			t.Errorf("bag_of %v of %d bags is accepted", c.bagOf, c.bags)
		}
	}
	if _, _, err := e.Predict(make([]float32, 5), []int{0}, 1); err == nil {
		t.Error("5 features are accepted where 6 are wanted")
	}
}
