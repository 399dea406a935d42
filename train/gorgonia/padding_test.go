package gorgonia

import (
	"math"
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/train"
)

func TestCapacity(t *testing.T) {
	for _, c := range []struct{ n, bags, want int }{
		{1, 1, 1}, {37, 1, 37}, {64, 1, 64}, {65, 1, 72}, {1000, 1, 1024},
		{1, 2, 8}, {16, 16, 16}, {120, 16, 120}, {592, 16, 640}, {660, 16, 704},
	} {
		if got := capacity(c.n, c.bags); got != c.want {
			t.Errorf("capacity(%d, %d) = %d, want %d", c.n, c.bags, got, c.want)
		}
	}
	for n := 1; n < 5000; n++ {
		if got := capacity(n, 2); got < n || float64(got) > float64(n)*1.125+8 {
			t.Fatalf("capacity(%d, 2) = %d", n, got)
		}
	}
}

func TestShippedProgramsCanBePadded(t *testing.T) {
	for _, name := range language.TrainedNames() {
		e, err := New(compiled(t, name), nil)
		if err != nil {
			t.Fatal(err)
		}
		if !e.training.paddable || !e.infer.paddable {
			t.Errorf("%s cannot be padded", name)
		}
	}
}

func compiled(t *testing.T, name string) *compile.Program {
	t.Helper()
	spec, err := language.Load(name, language.Options{})
	if err != nil {
		t.Fatal(err)
	}
	sig := compile.Signature{Instance: []int{6}, Classes: 5}
	if len(spec.Data.Shape.V) > 0 {
		sig.Instance = spec.Data.Shape.V
	}
	p, err := compile.Compile(spec, sig)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Steps with and without padding give the same results up to rounding.
func TestPaddingChangesNoStep(t *testing.T) {
	p := compiled(t, "demipl")
	params := train.InitParams(p, 3)
	var engines [2]*Engine
	for i := range engines {
		var err error
		if engines[i], err = New(p, params); err != nil {
			t.Fatal(err)
		}
		defer engines[i].Close()
	}
	engines[1].training.paddable = false
	b := &train.Batch{Bags: 3, BagOf: []int{0, 0, 1, 2, 2, 2, 2}, Lambda: 0.5, Epoch: 1, Epochs: 4, LR: 0.1}
	for i := range 7 * 6 {
		b.Instances = append(b.Instances, float32(math.Sin(float64(i))))
	}
	for range 3 {
		b.Candidates = append(b.Candidates, 1, 1, 0, 0, 1)
		b.Weights = append(b.Weights, 0.5, 0.3, 0, 0, 0.2)
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
	if len(engines[0].training.recent) != 1 || engines[0].training.recent[0].instances != 8 {
		t.Fatalf("the padded engine has machines of %v", engines[0].training.recent)
	}
}

// The engine keeps the machines used last, not all.
func TestMachinesAreBounded(t *testing.T) {
	p := compiled(t, "demipl")
	e, err := New(p, train.InitParams(p, 3))
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	e.infer.limit = 4
	for n := 1; n <= 9; n++ {
		for _, size := range []int{n, 1} { // bags of one instance stay in use
			if _, _, err := e.Predict(make([]float32, 6*size), make([]int, size), 1); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(e.infer.bySize) != 4 || len(e.infer.recent) != 4 || e.infer.bySize[size{1, 1}] == nil || e.infer.bySize[size{2, 1}] != nil {
		t.Fatalf("kept %v", e.infer.recent)
	}
}

// A loss that is not finite comes back as it is and moves no parameter.
func TestNonFiniteLossUpdatesNothing(t *testing.T) {
	p := compiled(t, "demipl")
	e, err := New(p, train.InitParams(p, 3))
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	before, _ := e.State()
	b := &train.Batch{Bags: 1, BagOf: []int{0, 0}, Instances: make([]float32, 12), LR: 0.1, Epochs: 2, Epoch: 1,
		Candidates: []float32{1, 1, 0, 0, 0}, Weights: []float32{0.5, 0.5, 0, 0, 0}}
	b.Instances[3] = float32(math.NaN())
	r, err := e.Step(b)
	if err != nil {
		t.Fatal(err)
	}
	if !math.IsNaN(r.Loss) || !math.IsNaN(r.Terms["disambiguation"]) {
		t.Fatalf("loss %v of terms %v", r.Loss, r.Terms)
	}
	after, _ := e.State()
	for name, v := range before.Params {
		for i := range v {
			if after.Params[name][i] != v[i] {
				t.Fatalf("%s has moved", name)
			}
		}
	}
}

func TestBadBatches(t *testing.T) {
	p := compiled(t, "demipl")
	e, err := New(p, train.InitParams(p, 3))
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
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
