//go:build !(linux && cgo && (amd64 || arm64))

package xlatest

import (
	"testing"

	"github.com/gomlx/compute"
)

func throughJAX(t testing.TB, _ compute.Backend, _ string) compute.Backend {
	t.Fatalf("%s needs Linux and cgo", EnvPython)
	return nil
}
