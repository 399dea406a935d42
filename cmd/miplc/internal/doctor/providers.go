package doctor

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

	"github.com/miplc/miplc/internal/nvidia"
	"github.com/miplc/miplc/runtime/ortenv"
	"github.com/miplc/miplc/runtime/ortlib"
	"github.com/miplc/miplc/train/engines"
)

// tryFlag is the flag with which this command starts itself to try a provider.
const tryFlag = "try-provider"

// envTrying marks that process.
const envTrying = "MIPLC_DOCTOR_TRYING"

// tryTime bounds the time to open a device and to train on it.
const tryTime = 2 * time.Minute

// tryAll tries the available execution providers, each in a separate process, because a device or
// its driver may end the process.
func tryAll(ctx context.Context, library string) []deviceFacts {
	var list []deviceFacts
	program, err := os.Executable()
	offered := ortenv.Offered(library)
	if gpu, err := nvidia.FirstGPU(); err == nil && !slices.Contains(offered, ortlib.CUDA) {
		list = append(list, deviceFacts{component: component{Name: ortlib.CUDA,
			Detail: fmt.Sprintf("a GPU is here (%s), but not its execution provider: run `miplc runtime install %s`", gpu.Name, ortlib.CUDA)}})
	}
	for _, name := range offered {
		d := deviceFacts{component: component{Name: name}}
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
func tryIn(ctx context.Context, program, library, name string) deviceFacts {
	ctx, cancel := context.WithTimeout(ctx, tryTime)
	defer cancel()
	var out, said bytes.Buffer
	cmd := exec.CommandContext(ctx, program, "doctor", "--json", "--"+tryFlag, name, "--library", library)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &said, time.Second
	cmd.Env = append(os.Environ(), envTrying+"=1")
	d := deviceFacts{component: component{Name: name}}
	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		d.Detail = fmt.Sprintf("no training step ended within %v", tryTime)
	case err != nil:
		lines := strings.Split(strings.TrimSpace(said.String()), "\n")
		d.Detail = fmt.Sprintf("it ended the process that tried it: %v: %s", err, lines[len(lines)-1])
	default:
		if err := json.Unmarshal(out.Bytes(), &d); err != nil {
			d.Detail = fmt.Sprintf("the process that tried it printed no result: %v", err)
		}
	}
	return d
}

// try trains a small model with a provider in this process.
func try(ctx context.Context, library, name string) deviceFacts {
	d := deviceFacts{component: component{Name: name}}
	step, err := engines.TryProvider(ctx, library, name)
	if err != nil {
		d.Detail = err.Error()
		return d
	}
	d.Usable, d.Step = true, step.Seconds()
	d.Detail = fmt.Sprintf("it agrees with the CPU; a training step of a small model in %v", step.Round(time.Microsecond))
	return d
}
