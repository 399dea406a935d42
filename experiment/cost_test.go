package experiment

import (
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/language"
)

// The kernels of a convolution are used once per pixel, the weights of a layer once per instance.
func TestMultiplications(t *testing.T) {
	spec, err := language.Load("demipl-image")
	if err != nil {
		t.Fatal(err)
	}
	p, err := compile.Compile(spec, compile.Signature{Instance: []int{1, 28, 28}, Classes: 5})
	if err != nil {
		t.Fatal(err)
	}
	const (
		convolutions = 24*24*20*25 + 8*8*50*20*25
		dense        = 800 * 500
		attention    = 2*500*5 + 5 // two gates and the scorer, as wide as there are classes
	)
	if got := multiplications(p.Infer); got != convolutions+dense+attention {
		t.Errorf("%v multiplications per instance, want %d", got, convolutions+dense+attention)
	}
}
