//go:build !cgo

// Builds without cgo check models in the engines that they have, and reject models that need onnxruntime.

package runs

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/miplc/miplc/internal/diag"
)

// A build without cgo checks models in the engines that it has, and rejects models that need
// onnxruntime before training.
func TestWithoutCgo(t *testing.T) {
	s, err := one(context.Background(), load(t, "quickstart", "train.epochs=2"), Task{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"interpreter", "gorgonia", "onnx-go"}; !slices.Equal(s.Parity.Engines, want) || !s.Parity.OK ||
		s.TestAccuracy == nil {
		t.Errorf("checked in %v, want %v; accuracy %v", s.Parity.Engines, want, s.TestAccuracy)
	}
	wrong := (*diag.InvalidError)(nil)
	if _, err := one(context.Background(), load(t, "quickstart", "export.signature=batch"),
		Task{Dir: t.TempDir()}); !errors.As(err, &wrong) {
		t.Errorf("signature batch: error %v", err)
	}
}
