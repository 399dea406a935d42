package xla

import (
	"context"
	"time"

	"github.com/miplc/miplc/train"
)

// Try trains a small model for two epochs to test the device. It returns the time for compiling
// and that of a training step in the second epoch.
func (b *Backend) Try(ctx context.Context) (compiling, step time.Duration, err error) {
	t, err := train.SmallTrial()
	if err != nil {
		return 0, 0, err
	}
	begin := time.Now()
	report, err := train.One(ctx, &Trainer{Backend: b}, t, train.Options{})
	if err != nil {
		return 0, 0, err
	}
	compiling = time.Since(begin)
	for _, m := range report.Metrics {
		step = time.Duration(m.Seconds * float64(time.Second))
		compiling -= step
	}
	return compiling, step / time.Duration(len(t.BatchesOf(1))), nil
}
