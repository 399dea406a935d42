package xla

import (
	"context"
	"time"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/train"
)

// Try trains a small model for two epochs, to show that the device works. It tells
// how long compiling took, and a training step of the second epoch.
func (b *Backend) Try(ctx context.Context) (compiling, step time.Duration, err error) {
	t, err := trial()
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

// trial is the model of the quickstart on a few bags.
func trial() (*train.Trial, error) {
	o := data.DefaultPrototypes
	o.Bags = 20
	d, err := data.Prototypes(o)
	if err != nil {
		return nil, err
	}
	spec, err := language.Load("quickstart", "train.epochs=2")
	if err != nil {
		return nil, err
	}
	p, err := compile.Compile(spec, compile.Signature{Instance: d.Shape, Classes: d.Classes})
	if err != nil {
		return nil, err
	}
	split := &data.Split{Train: make([]int, d.Bags())}
	for i := range split.Train {
		split.Train[i] = i
	}
	return &train.Trial{Program: p, Data: d, Split: split, Sparse: true, Snapshots: []int{}}, nil
}
