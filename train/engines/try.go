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
	t, err := train.SmallTrial()
	if err != nil {
		return 0, err
	}
	report, err := train.One(ctx, c.trainer, t, train.Options{})
	if err != nil {
		return 0, err
	}
	last := report.Metrics[len(report.Metrics)-1]
	return time.Duration(last.Seconds*float64(time.Second)) / time.Duration(len(t.BatchesOf(1))), nil
}
