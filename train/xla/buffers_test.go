// A failed call loses no buffer.

package xla

import (
	"slices"
	"testing"

	"github.com/gomlx/compute"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/compile/xla"
	"github.com/miplc/miplc/internal/testkit/enginetest"
	"github.com/miplc/miplc/internal/testkit/modeltest"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/xla/pjrt"
)

// held is a buffer that records whether it was freed.
type held struct {
	compute.Buffer
	freed *bool
}

func (h held) Finalize() error { *h.freed = true; return nil }

// If the inputs of a program do not fit on the device, closing the executor frees those that are
// already there, so that smaller groups can be tried.
func TestAFailedCallLosesNoBuffer(t *testing.T) {
	b := NewDevice(&pjrt.OpenDevice{Backend: enginetest.Backend(t)}, pjrt.Go)
	defer b.Close()
	p, err := (&Trainer{Device: b}).plan([]*train.Trial{modeltest.Quickstart(t, 20, 2, 1)})
	if err != nil {
		t.Fatal(err)
	}
	epoch, _, err := b.programs(p, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	for _, lacking := range epoch.Inputs {
		device, freed := buffers{}, make([]bool, len(epoch.Inputs))
		for i, port := range epoch.Inputs {
			if port.Name != lacking.Name {
				device[port.Name] = held{freed: &freed[i]}
			}
		}
		if _, err := device.call(b, epoch, nil); err == nil {
			t.Fatalf("the program runs without %s", lacking.Name)
		}
		device.free()
		for i, port := range epoch.Inputs {
			if freed[i] != (port.Name != lacking.Name) {
				t.Errorf("%s is freed: %t, after %s did not fit", port.Name, freed[i], lacking.Name)
			}
		}
	}
	params := slices.IndexFunc(epoch.Inputs, func(p xla.Port) bool { return p.Name == compile.InParams })
	if params < 0 || !epoch.UsesUp(params) {
		t.Error("the program does not donate the parameters, so this test checks nothing")
	}
}
