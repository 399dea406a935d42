package xla

import (
	"github.com/miplc/miplc/compile/xla"
	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/train"
)

// evaluation predicts the training and test bags of all jobs in one program.
type evaluation struct {
	*sideBySide
	layout  xla.Layout
	program *xla.Program
	batches [][][]int // [job][step] bags, the training bags first
}

func (v *evaluation) begin(s *sideBySide) error {
	*v = evaluation{sideBySide: s, layout: s.layout}
	steps := 0
	v.layout.N = 0
	for _, j := range s.jobs {
		batches := append(data.Batches(j.job.Split.Train, s.batch), data.Batches(j.job.Split.Test, s.batch)...)
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

// run measures all jobs after an epoch.
func (v *evaluation) run(epoch int) error {
	steps := 0
	for _, j := range v.jobs {
		j.found = [2]*train.Outcome{{}, {}}
	}
	for _, batches := range v.batches {
		steps = max(steps, len(batches))
	}
	for first := 0; first < steps; first += v.layout.Steps {
		if err := v.ctx.Err(); err != nil {
			return err
		}
		count := min(v.layout.Steps, steps-first)
		part := make([][][]int, len(v.batches))
		for j, batches := range v.batches {
			part[j] = batches[min(first, len(batches)):min(first+count, len(batches))]
		}
		out, err := v.call(v.program, map[string]any{xla.InLimit: []int32{int32(count)}, xla.InOrder: order(part, v.layout)})
		if err != nil {
			return err
		}
		trace, err := fetch(v.program.Outputs[0], out[0])
		if err != nil {
			return err
		}
		v.read(part, trace)
	}
	for _, j := range v.jobs {
		j.Evaluated(epoch, j.now(), j.found)
	}
	return nil
}

// read takes predictions and attention scores out of a trace.
func (v *evaluation) read(part [][][]int, trace []float32) {
	width, k := xla.ForwardWidth(v.sideBySide.program, v.layout), v.data.Classes
	for i, j := range v.jobs {
		for step, bags := range part[i] {
			row := trace[(step*v.layout.Jobs+i)*width:][:width]
			attention := row[v.layout.Batch*k:]
			for slot, bag := range bags {
				found := j.found[0]
				if len(found.Predicted) == len(j.Split.Train) {
					found = j.found[1]
				}
				n := v.data.Size(bag)
				j.Add(found, bag, train.Argmax(row[slot*k:(slot+1)*k]), attention[:n])
				attention = attention[n:]
			}
		}
	}
}
