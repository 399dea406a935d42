// The parameters of every shipped spec can be read back from its model file.

package export_test

import (
	"slices"
	"testing"

	"github.com/miplc/miplc/export"
	"github.com/miplc/miplc/internal/testkit/enginetest"
	"github.com/miplc/miplc/language"
)

// The parameters of every shipped spec can be read back from its model file.
func TestParameters(t *testing.T) {
	for _, name := range language.TrainedNames() {
		for _, signature := range []string{"bag", "batch"} {
			if signature == "batch" && name != "demipl" {
				continue // the other signature has the same parameters
			}
			p := program(t, name, "", "export.signature="+signature)
			want, _ := enginetest.Drawn(p.Infer, 11, nil)
			m, err := export.Model(p, want, metadata(p))
			if err != nil {
				t.Fatal(err)
			}
			got, missing, err := export.Parameters(m, p)
			if err != nil || len(missing) > 0 {
				t.Errorf("%s, %s: %v, missing %v", name, signature, err, missing)
			}
			for name, v := range got {
				if !slices.Equal(v, want[name]) {
					t.Errorf("%s, %s: parameter %s differs", p.Spec.Name.V, signature, name)
				}
			}
			if onlyLoss := map[string]int{"promipl": 16, "acmil": 10, "agopmipl": 2, "fastmipl": 4, "uamipl": 4, "clam-mb": 4,
				"clam-sb": 4}[name]; len(got) != len(p.Params)-onlyLoss {
				t.Errorf("%s, %s: %d of %d parameters, %d are only in the loss", name, signature, len(got), len(p.Params), onlyLoss)
			}
		}
	}
}
