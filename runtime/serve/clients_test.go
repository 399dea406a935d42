// The Python clients of Triton and KServe receive the predictions of the model.

package serve

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/miplc/miplc/internal/testkit/testsupport"
)

// Clients of other projects receive the predictions of the model.
func TestForeignClients(t *testing.T) {
	for library, pin := range map[string]string{"tritonclient": "tritonclient[grpc,http]==2.73.0",
		"kserve": "kserve==0.21.0"} {
		t.Run(library, func(t *testing.T) {
			python := testsupport.Python(t, "numpy", pin)
			s := start(t)
			var cases []map[string]any
			for _, n := range []int{1, 2, 40, 1000} {
				b := randomBag(n, 3)
				p, err := s.direct["bag"].Predict(t.Context(), b)
				if err != nil {
					t.Fatal(err)
				}
				cases = append(cases, map[string]any{"instances": nested(b), "probabilities": p.Probabilities,
					"attention": p.Attention})
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
