// Trials of devices for miplc doctor.

package engines

import (
	"context"
	"time"

	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/xla"
)

// TryProvider trains a small model with an execution provider of onnxruntime, which is compared with
// the CPU first. It returns the time
// of a step in the second epoch. A broken device may end the process.
func TryProvider(ctx context.Context, library, provider string) (step time.Duration, err error) {
	c, err := Choose(Request{Engine: ORT, Library: library, Device: provider})
	if err != nil {
		return 0, err
	}
	defer c.Close()
	_, step, err = train.TrySmall(ctx, c.trainer)
	return step, err
}

// TryXLA trains a small model with XLA on a device, and compares the first steps with those of the
// CPU. It returns the time of a step in the second epoch, and the time before, such as for compiling.
func TryXLA(ctx context.Context, library string, b *xla.Backend) (preparing, step time.Duration, err error) {
	on := &xla.Trainer{Backend: b}
	small, err := train.SmallTrial()
	if err != nil {
		return 0, 0, err
	}
	cpu := Request{Library: library}.cpu(here).trainer
	if err := compareDevice(ctx, small.Program, onDevice(b), on, cpu); err != nil {
		return 0, 0, err
	}
	return train.TrySmall(ctx, on)
}
