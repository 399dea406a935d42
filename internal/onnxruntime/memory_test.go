//go:build cgo && linux

// Memory of a device is released.

package onnxruntime_test

import (
	"testing"

	ort "github.com/yalue/onnxruntime_go"

	"github.com/miplc/miplc/internal/onnxruntime"
	"github.com/miplc/miplc/internal/testkit/enginetest"
	"github.com/miplc/miplc/internal/testkit/testsupport"
)

// Tensors that were destroyed need no memory, neither of the process nor of the device, which here is SwiftShader in the
// same process.
func TestDestroyedTensorsNeedNoMemory(t *testing.T) {
	if !testsupport.InProcess(t, enginetest.WebGPU) {
		return
	}
	if _, err := onnxruntime.Start(enginetest.Library(t)); err != nil {
		t.Fatal(err)
	}
	memory, err := onnxruntime.SessionOptions{Provider: onnxruntime.WebGPU}.Memory()
	if err != nil || memory == nil {
		t.Fatal(memory, err)
	}
	use := func(tensors int) {
		for range tensors {
			tensor, err := memory.NewTensor(ort.NewShape(1 << 20))
			if err != nil {
				t.Fatal(err)
			}
			for i := range tensor.GetData() {
				tensor.GetData()[i] = float32(i)
			}
			if err := tensor.Upload(); err != nil {
				t.Fatal(err)
			}
			if err := tensor.Destroy(); err != nil {
				t.Fatal(err)
			}
		}
	}
	use(10) // the provider keeps some buffers for later tensors
	before := testsupport.Resident(t)
	use(50)
	if grown := (testsupport.Resident(t) - before) >> 20; grown > 60 {
		t.Errorf("50 tensors of 4 MiB, each destroyed, need %d MiB", grown)
	}
}
