//go:build cgo

package ortenv

import (
	"errors"
	"fmt"
	"strconv"

	ort "github.com/yalue/onnxruntime_go"

	"github.com/miplc/miplc/internal/diag"
)

// Options makes the options of a session, which the caller destroys. Threads that
// wait do not spin: on a machine that does anything else, a spinning thread keeps
// the one it waits for from its core, and a training step on images takes up to
// twice as long.
func (s Session) Options() (*ort.SessionOptions, error) {
	opts, err := ort.NewSessionOptions()
	if err != nil {
		return nil, err
	}
	err = errors.Join(
		opts.SetIntraOpNumThreads(s.Threads),
		opts.SetInterOpNumThreads(1),
		opts.AddSessionConfigEntry("session.intra_op.allow_spinning", "0"),
		opts.SetLogSeverityLevel(ort.LoggingLevelFatal),
	)
	if err == nil && s.Provider != "" && s.Provider != CPU {
		err = s.appendProvider(opts)
	}
	if err != nil {
		opts.Destroy()
		return nil, err
	}
	return opts, nil
}

// CheckProvider says whether the library has the execution provider in a usable
// form.
func CheckProvider(library, provider string) error {
	if _, err := Start(library); err != nil {
		return err
	}
	opts, err := Session{Provider: provider}.Options()
	if err != nil {
		return err
	}
	return opts.Destroy()
}

func (s Session) appendProvider(opts *ort.SessionOptions) error {
	if err := diag.CheckWord("the execution provider", s.Provider, append([]string{CPU}, Providers...)); err != nil {
		return err
	}
	if err := s.tryProvider(opts); err != nil {
		return fmt.Errorf("this onnxruntime library has no usable %q provider (%w): name another one, or point ONNXRUNTIME_SHARED_LIBRARY_PATH at a library built with it", s.Provider, err)
	}
	return nil
}

func (s Session) tryProvider(opts *ort.SessionOptions) error {
	switch s.Provider {
	case "cuda":
		cuda, err := ort.NewCUDAProviderOptions()
		if err != nil {
			return err
		}
		defer cuda.Destroy()
		if err := update(cuda.Update, s.Settings); err != nil {
			return err
		}
		return opts.AppendExecutionProviderCUDA(cuda)
	case "tensorrt":
		trt, err := ort.NewTensorRTProviderOptions()
		if err != nil {
			return err
		}
		defer trt.Destroy()
		if err := update(trt.Update, s.Settings); err != nil {
			return err
		}
		return opts.AppendExecutionProviderTensorRT(trt)
	case "coreml":
		return opts.AppendExecutionProviderCoreMLV2(s.Settings)
	case "directml":
		device := 0
		if id, ok := s.Settings["device_id"]; ok {
			var err error
			if device, err = strconv.Atoi(id); err != nil {
				return fmt.Errorf("device_id: %w", err)
			}
		}
		return opts.AppendExecutionProviderDirectML(device)
	case "openvino":
		return opts.AppendExecutionProviderOpenVINO(s.Settings)
	}
	// The generic call knows these under onnxruntime's own names.
	own := map[string]string{"webgpu": "WebGPU", "xnnpack": "XNNPACK", "qnn": "QNN", "rocm": "ROCM"}
	return opts.AppendExecutionProvider(own[s.Provider], s.Settings)
}

// update leaves a provider's defaults alone where nothing is set.
func update(with func(map[string]string) error, settings map[string]string) error {
	if len(settings) == 0 {
		return nil
	}
	return with(settings)
}
