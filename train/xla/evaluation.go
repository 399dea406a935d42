package xla

import (
	"context"

	"github.com/miplc/miplc/compile/xla"
	"github.com/miplc/miplc/train"
)

// evaluation predicts the training and test bags of all runs in one program.
type evaluation struct {
	*jobs
	layout  xla.Layout
	program *xla.Program
	batches [][][]int // [run][step] bags, the training bags first
}

func (v *evaluation) begin(s *jobs) error {
	*v = evaluation{jobs: s, layout: s.layout}
	steps := 0
	v.layout.N = 0
	for _, r := range s.runs {
		batches := r.EvaluatedBatches()
		v.batches = append(v.batches, batches)
		v.layout.N = max(v.layout.N, s.largest(batches))
		steps = max(steps, len(batches))
	}
	bytes := v.layout.Jobs * 4 * (v.layout.Batch + xla.ForwardWidth(s.program, v.layout))
	v.layout.Steps = s.stepsOfCall(steps, bytes)
	var err error
	v.program, err = xla.Forward(s.backend.Backend, s.program, v.layout)
	return err
}

func (v *evaluation) close() {
	if v.program != nil {
		v.program.Close()
	}
}

// Predict implements train.Executor.
func (s *jobs) Predict(ctx context.Context, runs []*train.Run) error {
	return s.forward.run(ctx, runs)
}

func (v *evaluation) run(ctx context.Context, runs []*train.Run) error {
	all, steps := make([][][]int, len(runs)), 0
	for i, r := range runs {
		if r != nil {
			all[i] = v.batches[i]
			steps = max(steps, len(all[i]))
		}
	}
	for first := 0; first < steps; first += v.layout.Steps {
		if err := ctx.Err(); err != nil {
			return err
		}
		part, count := window(all, first, v.layout.Steps)
		out, err := v.call(v.program, map[string]any{xla.InLimit: []int32{int32(count)}, xla.InOrder: order(part, v.layout)})
		if err != nil {
			return err
		}
		trace, err := fetch(v.program.Outputs[0], out[0])
		if err != nil {
			return err
		}
		v.read(part, runs, trace)
	}
	return nil
}

// read takes predictions and attention scores out of a trace.
func (v *evaluation) read(part [][][]int, runs []*train.Run, trace []float32) {
	width, k := xla.ForwardWidth(v.jobs.program, v.layout), v.jobs.program.Signature.Classes
	for i, r := range runs {
		for step, bags := range part[i] {
			row := trace[(step*v.layout.Jobs+i)*width:][:width]
			attention := row[v.layout.Batch*k:]
			for slot, bag := range bags {
				n := r.Data.Size(bag)
				r.Predicted(bag, row[slot*k:(slot+1)*k], attention[:n])
				attention = attention[n:]
			}
		}
	}
}
