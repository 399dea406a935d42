// Devices of onnxruntime that can predict on this machine: miplc doctor tries each in its own process.

package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/miplc/miplc/export"
	"github.com/miplc/miplc/internal/contract"
	"github.com/miplc/miplc/internal/libraries"
	"github.com/miplc/miplc/internal/onnxruntime"
	"github.com/miplc/miplc/runtime"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/engines"
)

// tryFlag is the flag with which this command starts itself to try a provider.
const tryFlag = "try-provider"

// envTrying marks that process.
const envTrying = "MIPLC_DOCTOR_TRYING"

// tryTime bounds the time to open a device and to predict on it.
const tryTime = 2 * time.Minute

// tryAll tries the available execution providers, each in a separate process, because a device or
// its driver may end the process.
func tryAll(ctx context.Context, library string) []component {
	var list []component
	program, err := os.Executable()
	offered := onnxruntime.Offered(library)
	if gpu, err := libraries.FirstGPU(); err == nil && !slices.Contains(offered, onnxruntime.CUDA) {
		list = append(list, component{Name: onnxruntime.CUDA, Detail: fmt.Sprintf(
			"a GPU is here (%s), but not its execution provider: run `miplc runtime install cuda`", gpu.Name)})
	}
	for _, name := range offered {
		d := component{Name: name}
		if err == nil && os.Getenv(envTrying) == "" {
			d = tryIn(ctx, program, library, name)
		} else {
			d.Detail = "not tried: miplc cannot start itself"
		}
		list = append(list, d)
	}
	return list
}

// tryIn runs try in a separate process.
func tryIn(ctx context.Context, program, library, name string) component {
	ctx, cancel := context.WithTimeout(ctx, tryTime)
	defer cancel()
	var out, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, program, "doctor", "--json", "--"+tryFlag, name, "--library", library)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &stderr, time.Second
	cmd.Env = append(os.Environ(), envTrying+"=1")
	d := component{Name: name}
	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		d.Detail = fmt.Sprintf("no prediction ended within %v", tryTime)
	case err != nil:
		lines := strings.Split(strings.TrimSpace(stderr.String()), "\n")
		d.Detail = fmt.Sprintf("it ended the process that tried it: %v: %s", err, lines[len(lines)-1])
	default:
		if err := json.Unmarshal(out.Bytes(), &d); err != nil {
			d.Detail = fmt.Sprintf("the process that tried it printed no result: %v", err)
		}
	}
	return d
}

// tryProvider predicts with a small model on a provider in this process.
func tryProvider(ctx context.Context, library, name string) component {
	d := component{Name: name}
	took, err := tryPrediction(ctx, library, name)
	if err != nil {
		d.Detail = err.Error()
		return d
	}
	d.Usable, d.Step = true, took.Seconds()
	d.Detail = fmt.Sprintf("it agrees with the CPU; a prediction of a small model in %v", took.Round(time.Microsecond))
	return d
}

// tryPrediction opens a small model on the device of a provider, which compares the device with the CPU.
// It returns the time of a second prediction.
func tryPrediction(ctx context.Context, library, name string) (time.Duration, error) {
	small, err := engines.SmallTrial()
	if err != nil {
		return 0, err
	}
	meta := contract.Metadata{Engine: "none", Classes: make([]string, small.Data.Classes)}
	for i := range meta.Classes {
		meta.Classes[i] = fmt.Sprint(i)
	}
	file, err := export.Model(small.Program, train.UntrainedState(small.Program, 1).Params, meta)
	if err != nil {
		return 0, err
	}
	content, err := proto.Marshal(file)
	if err != nil {
		return 0, err
	}
	model, err := runtime.OpenBytes(content, runtime.WithLibrary(library), runtime.WithProvider(name, nil))
	if err != nil {
		return 0, err
	}
	defer model.Close()
	bag := runtime.Bag{N: small.Data.Size(0), Instances: small.Data.Instances[:small.Data.Size(0)*small.Data.Dim()]}
	if _, err := model.Predict(ctx, bag); err != nil {
		return 0, err
	}
	began := time.Now()
	_, err = model.Predict(ctx, bag)
	return time.Since(began), err
}
