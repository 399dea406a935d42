package runtime_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/miplc/miplc/runtime/ortlib/ortest"
)

// The examples open models as a user does, so the library has to be there
// before the first of them runs.
func TestMain(m *testing.M) {
	if _, err := ortest.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
