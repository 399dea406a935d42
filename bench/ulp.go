// The growing distance between two trainings that differ in the last bit of one parameter.

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/engines"
)

// drift compares the same epoch of two runs.
type drift struct {
	Epoch int     `json:"epoch"`
	Loss  float64 `json:"loss"` // relative difference
	Bags  int     `json:"bags"` // difference of the numbers of correct test bags
}

// ulp trains a run and a copy whose first parameter is one unit in the last place larger, and
// compares their epochs. Each step is an epoch.
func ulp(r request) (any, error) {
	p, d, err := r.program(fmt.Sprint("train.batch=", r.bags), fmt.Sprint("train.epochs=", r.steps))
	if err != nil {
		return nil, err
	}
	s, err := data.RandomSplit(d.Bags(), d.TrueLists(), data.SplitSettings{Train: 0.7, Stratify: true, Seed: 1})
	if err != nil {
		return nil, err
	}
	plain := &train.Trial{Program: p, Data: d, Split: s}
	changed := *plain
	changed.Name, changed.Init = "changed", train.InitParams(p, plain.Seed())
	first := changed.Init[slices.Min(slices.Collect(maps.Keys(changed.Init)))]
	first[0] = math.Nextafter32(first[0], math.MaxFloat32)

	trainers := engines.NewTrainers(engines.Place{Engine: r.engine, Threads: r.threads})
	defer trainers.Close()
	out := make([]train.Outcome, 2)
	trainers.Train(context.Background(), []*train.Trial{plain, &changed}, train.Options{}, func(i int, o train.Outcome) {
		out[i] = o
	})
	if err := errors.Join(out[0].Err, out[1].Err); err != nil {
		return nil, err
	}
	var list []drift
	for i, a := range out[0].Report.Metrics {
		b := out[1].Report.Metrics[i]
		bags := math.Round((*b.Measures.Accuracy(data.TestPart) - *a.Measures.Accuracy(data.TestPart)) * float64(len(s.Test)))
		list = append(list, drift{a.Epoch, math.Abs(b.Loss-a.Loss) / a.Loss, int(bags)})
	}
	return list, nil
}
