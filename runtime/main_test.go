// The tests and examples of this package need onnxruntime, which is installed before they run.

package runtime_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/miplc/miplc/internal/testkit/enginetest"
)

// The examples open models as users do, so TestMain installs the library before they run.
func TestMain(m *testing.M) {
	if _, err := enginetest.FindLibrary(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
