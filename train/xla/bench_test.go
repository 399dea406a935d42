// Speed of groups.

package xla_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/miplc/miplc/internal/testkit/modeltest"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/xla"
)

// BenchmarkTrials trains two epochs of 42 bags with evaluation for different numbers of trials.
func BenchmarkTrials(b *testing.B) {
	backend := goBackend(b)
	for _, n := range []int{1, 10, 40} {
		b.Run(fmt.Sprintf("trials=%d", n), func(b *testing.B) {
			o := modeltest.Quickstart(b, 60, 2, 1)
			list := make([]*train.Trial, n)
			for i := range list {
				list[i] = modeltest.Vary(b, o, fmt.Sprint(i), modeltest.Seed(i))
			}
			for b.Loop() {
				if out := together(context.Background(), &xla.Trainer{Device: backend}, list, train.Options{}); out[0].Err != nil {
					b.Fatal(out[0].Err)
				}
			}
		})
	}
}
