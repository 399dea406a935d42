//go:build cgo

package ort_test

import (
	"testing"

	"github.com/miplc/miplc/learners/devicetest"
	"github.com/miplc/miplc/runtime/ortlib/ortest"
	"github.com/miplc/miplc/train/ort"
)

func TestDevice(t *testing.T) {
	d, err := ort.NewDevice(ort.Options{Library: ortest.Library(t)})
	if err != nil {
		t.Fatal(err)
	}
	devicetest.Run(t, d)
}
