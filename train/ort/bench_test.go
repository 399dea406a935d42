//go:build cgo

package ort_test

import (
	"testing"

	"github.com/miplc/miplc/train/enginebench"
)

func BenchmarkStep(b *testing.B) { enginebench.Steps(b, newEngine(b)) }
