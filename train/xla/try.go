package xla

import (
	"fmt"
	"math"
	"time"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/train"
)

// Try runs two training steps of a small model, to show that the device works.
// It tells how long the first took, most of which is compiling, and the second.
func (b *Backend) Try() (first, second time.Duration, err error) {
	p, params, batch, err := trial()
	if err != nil {
		return 0, 0, err
	}
	e, err := New(p, params, b)
	if err != nil {
		return 0, 0, err
	}
	defer e.Close()
	var took [2]time.Duration
	for i := range took {
		begin := time.Now()
		r, err := e.Step(batch)
		if err != nil {
			return 0, 0, err
		}
		if took[i] = time.Since(begin); math.IsNaN(r.Loss) || math.IsInf(r.Loss, 0) {
			return 0, 0, fmt.Errorf("the loss of a step is %v: the device computes wrong", r.Loss)
		}
	}
	return took[0], took[1], nil
}

// trial is the model of the quickstart on one bag of 16 instances.
func trial() (*compile.Program, map[string][]float32, *train.Batch, error) {
	const features, classes, n = 20, 4, 16
	spec, err := language.Load("quickstart", language.Options{})
	if err != nil {
		return nil, nil, nil, err
	}
	p, err := compile.Compile(spec, compile.Signature{Instance: []int{features}, Classes: classes})
	if err != nil {
		return nil, nil, nil, err
	}
	params := train.InitParams(p, 1)
	params[compile.ParamMean], params[compile.ParamStd] = make([]float32, features), make([]float32, features)
	for i := range features {
		params[compile.ParamStd][i] = 1
	}
	b := &train.Batch{BagOf: make([]int, n), Bags: 1, Candidates: []float32{1, 1, 0, 0}, Weights: []float32{.5, .5, 0, 0},
		Lambda: 0.5, Epoch: 1, Epochs: 2, LR: 0.1, Instances: make([]float32, n*features)}
	for i := range b.Instances {
		b.Instances[i] = float32(i%7) - 3
	}
	return p, params, b, nil
}
