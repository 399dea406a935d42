// Tests of the devices that only predict.

package cli

import (
	"testing"

	"github.com/miplc/miplc/internal/testkit/enginetest"
)

// The small model that tests a device predicts on the CPU, and a provider that the library lacks is an error.
func TestTryPrediction(t *testing.T) {
	library := enginetest.Library(t)
	if took, err := tryPrediction(t.Context(), library, ""); err != nil || took <= 0 {
		t.Errorf("on the CPU: %v, %v", took, err)
	}
	if d := tryProvider(t.Context(), library, "cuda"); d.Usable || d.Detail == "" {
		t.Errorf("a library without CUDA: %+v", d)
	}
}
