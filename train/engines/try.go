package engines

import (
	"context"
	"time"

	"github.com/miplc/miplc/train"
)

// TryProvider trains a small model with an execution provider of onnxruntime to test its device:
// the engine compares the first steps and predictions with those of the CPU. It returns the time
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
