// The memory of programs.

package xla

import (
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/language"
)

// The estimated memory of a trial is close to what XLA 0.11.2 reports for programs of two and eight
// trials (--xla_dump_to), without the dataset.
func TestBytes(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		spec       string
		signature  compile.Signature
		epoch      Layout
		reported   float64 // MiB per trial
		evaluation int     // steps
	}{
		{"demipl-program", compile.Signature{Instance: []int{1, 28, 28}, Classes: 5}, Layout{Steps: 28, Batch: 1, N: 48,
			Bags: 40, Rows: 1668}, (73.8 - 5) / 2 * mib, 40},
		{"demipl", compile.Signature{Instance: []int{38}, Classes: 13}, Layout{Steps: 1024, Batch: 1, N: 48, Bags: 1300,
			Rows: 48064}, (8.97 - 6.97 + 10.12 - 6.97) / 8 * mib, 1536},
	} {
		spec, err := language.Load(c.spec)
		if err != nil {
			t.Fatal(err)
		}
		p, err := compile.Compile(spec, c.signature)
		if err != nil {
			t.Fatal(err)
		}
		m, err := NewGraphs(p)
		if err != nil {
			t.Fatal(err)
		}
		evaluation := c.epoch
		evaluation.Steps = c.evaluation
		trial, _ := m.Bytes(c.epoch, evaluation)
		if trial < 0.8*c.reported || trial > 1.5*c.reported {
			t.Errorf("%s: %.1f MiB, XLA uses %.1f", c.spec, trial/mib, c.reported/mib)
		}
	}
}
