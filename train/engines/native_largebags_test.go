// The memory of steps of large bags.

package engines

import (
	"slices"
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/compile/native"
	"github.com/miplc/miplc/compile/native/kernel"
	"github.com/miplc/miplc/internal/testkit/modeltest"
	"github.com/miplc/miplc/language"
)

// gated compiles gated attention over blocks.
func gated(t *testing.T, features int, blocks string) *compile.Program {
	t.Helper()
	spec, err := language.Load("gated-abmil", "model.blocks=["+blocks+"]", "model.sizes.m=32")
	if err != nil {
		t.Fatal(err)
	}
	p, err := compile.Compile(spec, compile.Signature{Instance: []int{features}, Classes: 3})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A wide dropout layer after a ReLU needs hardly any memory in the plan.
func TestMemoryOfDropout(t *testing.T) {
	const n = 20000
	without := arena(t, gated(t, 1024, "{dense: 256}, relu"), n)
	with := arena(t, gated(t, 1024, "{dense: 256}, relu, {dropout: 0.25}"), n)
	if with > without+1<<20 {
		t.Errorf("a step takes %d MB with dropout, %d MB without", with>>20, without>>20)
	}
}

// A step with many bags needs about the memory of one with the same instances in few bags, also for
// maxima in each bag and 50 columns.
func TestMemoryOfManyBags(t *testing.T) {
	p := modeltest.Shipped(t, "fastmipl")
	few, many := arena(t, p, slices.Repeat([]int{200}, 4)...), arena(t, p, slices.Repeat([]int{2}, 400)...)
	if many > 2*few {
		t.Errorf("a step with 400 bags takes %d MB, one with the same instances in 4 bags %d MB", many>>20, few>>20)
	}
}

// arena returns the bytes of the values of a step on bags of the given sizes.
func arena(t *testing.T, p *compile.Program, sizes ...int) int {
	t.Helper()
	e := NewNative(p, native.Options{Kernels: kernel.Best(), Threads: 1}).(*nativeEngine)
	defer e.Close()
	instances := 0
	for _, n := range sizes {
		instances += n
	}
	plan, err := e.plan(planSize{form{oneBag: len(sizes) == 1}, instances, len(sizes)})
	if err != nil {
		t.Fatal(err)
	}
	return plan.ArenaBytes()
}
