package xla_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/traintest"
	"github.com/miplc/miplc/train/xla"
)

// BenchmarkJobs runs two epochs of 42 bags, evaluation included, for numbers of
// jobs side by side.
func BenchmarkJobs(b *testing.B) {
	backend := goBackend(b)
	for _, n := range []int{1, 10, 40} {
		b.Run(fmt.Sprintf("jobs=%d", n), func(b *testing.B) {
			o := traintest.Quickstart(b, 60, 2, 1)
			list := make([]*train.Trial, n)
			for i := range list {
				list[i] = traintest.Vary(b, o, fmt.Sprint(i), traintest.Seed(i))
			}
			for b.Loop() {
				if out := together(context.Background(), &xla.Trainer{Backend: backend}, list, train.Options{}); out[0].Err != nil {
					b.Fatal(out[0].Err)
				}
			}
		})
	}
}
