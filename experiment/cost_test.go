// The estimated time of a training is close enough to the measured one to balance shards.

package experiment

import (
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/train"
)

// The estimated time of a training is within a factor of 3 of the measured processor time: learners on
// SIVAL6-MIPL (252 training bags with 32 instances of 30 features) on one core of an AMD EPYC. Their
// times differ by a factor of 100, with the batch, the number of ops and the number of parameters.
func TestNominal(t *testing.T) {
	const bags, size = 252, 32
	split := &data.Split{Train: make([]int, bags)}
	set := &data.Dataset{Offsets: []int{0}}
	for i := range bags {
		set.Offsets = append(set.Offsets, (i+1)*size)
	}
	for _, c := range []struct {
		spec    string
		set     []string
		seconds float64
	}{
		{"demipl", nil, 2},
		{"clam-sb", nil, 12},
		{"dsmil", nil, 17},
		{"acmil", nil, 31},
		{"transmil", nil, 50},
		{"agopmipl", []string{"model.numbers.round=80", "train.epochs=240"}, 50},
		{"promipl", nil, 90},
		{"fastmipl", []string{"train.batch=2000"}, 130},
		{"uamipl", []string{"train.batch=2000"}, 130},
		{"miplgp", nil, 90},
	} {
		spec, err := language.Load(c.spec, c.set...)
		if err != nil {
			t.Fatal(err)
		}
		p, err := compile.Compile(spec, compile.Signature{Instance: []int{30}, Classes: 6})
		if err != nil {
			t.Fatal(err)
		}
		got := estimateFromSize(&train.Trial{Program: p, Data: set, Split: split})
		t.Logf("%s: %.1f s, measured %v s", c.spec, got, c.seconds)
		if got < c.seconds/3 || got > 3*c.seconds {
			t.Errorf("%s: %.1f s, measured %v s", c.spec, got, c.seconds)
		}
	}
}
