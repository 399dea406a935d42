// Package xlatest gives tests an executor for XLA programs: compute's pure Go
// one, or, where the environment variable MIPLC_JAX_PYTHON names a Python that
// has jax, XLA itself on the CPU. No PJRT plugin for CPUs is at hand as a
// library, so the second hands each program to jax as StableHLO text.
package xlatest

import (
	"os"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/gobackend"
)

// EnvPython names the environment variable with the Python that has jax.
const EnvPython = "MIPLC_JAX_PYTHON"

// Backend gives the executor.
func Backend(t testing.TB) compute.Backend {
	t.Helper()
	// The other modes run operations at once and can block each other.
	b, err := gobackend.New("ops_sequential")
	if err != nil {
		t.Fatal(err)
	}
	if python := os.Getenv(EnvPython); python != "" {
		return throughJAX(t, b, python)
	}
	return b
}
