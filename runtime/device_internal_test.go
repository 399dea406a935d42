//go:build cgo

// A device that computes wrongly is rejected when a model is opened, and runs on a device can be stopped.

package runtime

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"testing"

	"github.com/miplc/miplc/internal/contract"
	"github.com/miplc/miplc/internal/onnxpb"
	"github.com/miplc/miplc/internal/onnxruntime"
	"github.com/miplc/miplc/internal/testkit/enginetest"
	"github.com/miplc/miplc/internal/testkit/testsupport"
)

// A CPU session of a model with changed parameters plays the part of a device that computes
// wrong numbers.
func TestWrongDeviceIsRefused(t *testing.T) {
	for _, name := range []string{"demipl-3x4.onnx", "batch-3x4.onnx", "image-12x12.onnx"} {
		f := fileOn(t, name, onnxruntime.CPU)
		right := openSession(t, f)
		device := *f
		device.Options.Provider = "webgpu"
		if err := right.checkDevice(&device); err != nil {
			t.Errorf("%s: a correct device is rejected: %v", name, err)
		}
		for what, scale := range map[string]float32{"3% off": 1.03, "not a number": float32(math.NaN())} {
			wrong := *f
			wrong.Data = scaled(t, f.Data, scale)
			var refused *onnxruntime.WrongDeviceError
			if err := openSession(t, &wrong).checkDevice(&device); !errors.As(err, &refused) {
				t.Errorf("%s: a device whose numbers are %s gives %v", name, what, err)
			} else {
				t.Log(err)
			}
		}
	}
}

// A context that ends stops a run of onnxruntime. A try may be too late, because the run is short.
func TestContextStopsOnnxruntime(t *testing.T) {
	s := openSession(t, fileOn(t, "demipl-3x4.onnx", onnxruntime.CPU))
	const n = 20_000
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p := Prediction{Probabilities: make([]float32, 4), Attention: make([]float32, n)}
	for range 200 {
		if s.Run(ctx, []Bag{{Instances: make([]float32, 3*n), N: n}}, []Prediction{p}) != nil {
			return
		}
	}
	t.Error("200 runs with a context that has ended were not stopped")
}

// A device session that does not bind its inputs again keeps computing with the first inputs.
func TestStaleInputsAreRefused(t *testing.T) {
	if !testsupport.InProcess(t, enginetest.WebGPU) {
		return
	}
	for _, name := range []string{"demipl-3x4.onnx", "batch-3x4.onnx"} {
		f := fileOn(t, name, onnxruntime.WebGPU)
		s := openSession(t, f)
		if err := s.checkDevice(f); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		s.rebinds = false
		var refused *onnxruntime.WrongDeviceError
		if err := s.checkDevice(f); !errors.As(err, &refused) {
			t.Errorf("%s: a session that does not bind its inputs again gives %v", name, err)
		}
	}
}

func fileOn(t *testing.T, name, provider string) *File {
	t.Helper()
	if _, err := onnxruntime.Start(enginetest.Library(t)); err != nil {
		t.Fatal(err)
	}
	path := "testdata/" + name
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, meta, err := contract.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	return &File{Data: content, Meta: meta, Options: onnxruntime.SessionOptions{Threads: 1, Provider: provider}}
}

func openSession(t *testing.T, f *File) *ortSession {
	t.Helper()
	s, err := newORT(f)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// scaled returns the model with all parameters multiplied by a number.
func scaled(t *testing.T, content []byte, by float32) []byte {
	t.Helper()
	model, err := onnxpb.ReadBytes(content)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range model.Graph.Initializer {
		scaleFloats(p, by)
	}
	content, err = onnxpb.Marshal(model)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func scaleFloats(p *onnxpb.TensorProto, by float32) {
	if p.GetDataType() != int32(onnxpb.TensorProto_FLOAT) {
		return
	}
	for i := range p.FloatData {
		p.FloatData[i] *= by
	}
	for at := 0; at+4 <= len(p.RawData); at += 4 {
		v := math.Float32frombits(binary.LittleEndian.Uint32(p.RawData[at:]))
		binary.LittleEndian.PutUint32(p.RawData[at:], math.Float32bits(by*v))
	}
}
