//go:build cgo

package ort

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	onnx "github.com/yalue/onnxruntime_go"

	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/runtime/ortenv"
)

// sessionOptions sets threads and execution provider. Threads that wait do not
// spin: on a machine that does anything else, a spinning thread keeps the one it
// waits for from its core, and a step on images takes up to twice as long.
func sessionOptions(o Options) (*onnx.SessionOptions, error) {
	opts, err := onnx.NewSessionOptions()
	if err != nil {
		return nil, err
	}
	err = errors.Join(
		opts.SetIntraOpNumThreads(o.Threads),
		opts.SetInterOpNumThreads(1),
		opts.AddSessionConfigEntry("session.intra_op.allow_spinning", "0"),
		opts.SetLogSeverityLevel(onnx.LoggingLevelFatal),
	)
	if err == nil && o.Provider != "" && o.Provider != "cpu" {
		err = appendProvider(opts, o.Provider)
	}
	if err != nil {
		opts.Destroy()
		return nil, err
	}
	return opts, nil
}

func appendProvider(opts *onnx.SessionOptions, name string) error {
	if !slices.Contains(Providers, name) {
		d := diag.Diagnostic{Text: fmt.Sprintf("unknown execution provider %q; known are cpu, %s", name, strings.Join(Providers, ", "))}
		d.Suggestion = diag.Suggest(name, append([]string{"cpu"}, Providers...))
		return d
	}
	if err := tryProvider(opts, name); err != nil {
		return fmt.Errorf("this onnxruntime library has no usable %q provider (%w): name another one, or point ONNXRUNTIME_SHARED_LIBRARY_PATH at a library built with it", name, err)
	}
	return nil
}

// Check says whether the library has the execution provider of the options in a
// usable form.
func Check(o Options) error {
	if _, err := ortenv.Start(o.Library); err != nil {
		return err
	}
	opts, err := sessionOptions(o)
	if err != nil {
		return err
	}
	return opts.Destroy()
}

func tryProvider(opts *onnx.SessionOptions, name string) error {
	switch name {
	case "cuda":
		cuda, err := onnx.NewCUDAProviderOptions()
		if err != nil {
			return err
		}
		defer cuda.Destroy()
		return opts.AppendExecutionProviderCUDA(cuda)
	case "tensorrt":
		trt, err := onnx.NewTensorRTProviderOptions()
		if err != nil {
			return err
		}
		defer trt.Destroy()
		return opts.AppendExecutionProviderTensorRT(trt)
	case "coreml":
		return opts.AppendExecutionProviderCoreMLV2(nil)
	case "directml":
		return opts.AppendExecutionProviderDirectML(0)
	case "openvino":
		return opts.AppendExecutionProviderOpenVINO(nil)
	}
	// The generic call knows these under onnxruntime's own names.
	own := map[string]string{"webgpu": "WebGPU", "xnnpack": "XNNPACK", "qnn": "QNN", "rocm": "ROCM"}
	return opts.AppendExecutionProvider(own[name], nil)
}
