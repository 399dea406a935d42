// WebGPU without a GPU.

package enginetest

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/miplc/miplc/internal/libraries"
	"github.com/miplc/miplc/internal/onnxruntime"
	"github.com/miplc/miplc/internal/testkit/testsupport"
)

// WebGPU returns the environment of a process that runs the WebGPU provider on SwiftShader. It
// installs the pinned provider if it is missing.
func WebGPU(t testing.TB) []string {
	t.Helper()
	environment := testsupport.SwiftShader(t)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	if _, err := onnxruntime.InstallProvider(ctx, onnxruntime.WebGPU,
		libraries.InstallOptions{Progress: os.Stderr}); err != nil {
		t.Fatalf("this test needs the WebGPU provider: %v", err)
	}
	return environment
}
