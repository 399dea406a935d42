package serve

import (
	"cmp"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Clients that others wrote get the answers that the model gives.
func TestForeignClients(t *testing.T) {
	python := cmp.Or(os.Getenv("MIPLC_PYTHON"), "python3")
	for library, pin := range map[string]string{"tritonclient": "'tritonclient[all]==2.73.0'", "kserve": "kserve"} {
		t.Run(library, func(t *testing.T) {
			if out, err := exec.Command(python, "-c", "import numpy, "+library).CombinedOutput(); err != nil {
				t.Skipf("%s with numpy and %s is needed (pip install %s; MIPLC_PYTHON names another Python): %v\n%s", python, library, pin, err, out)
			}
			s := start(t)
			var cases []map[string]any
			for _, n := range []int{1, 2, 40, 1000} {
				b := randomBag(n, 3)
				p, err := s.direct["bag"].Predict(t.Context(), b)
				if err != nil {
					t.Fatal(err)
				}
				cases = append(cases, map[string]any{"instances": nested(b), "probabilities": p.Probabilities, "attention": p.Attention})
			}
			cmd := exec.Command(python, "testdata/clients.py", library, s.web, s.rpc)
			cmd.Stdin = strings.NewReader(asJSON(cases))
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			t.Logf("%s", out)
			if strings.Count(string(out), "largest difference 0.0e+00") != 3 {
				t.Errorf("the answers differ from the model's")
			}
		})
	}
}
