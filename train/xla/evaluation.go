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
		j.predicted = [2][]int{}
		if v.snapshot(epoch) {
			j.attention = append(j.attention, train.AttentionSnapshot{Epoch: epoch})
		}
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
		v.read(epoch, part, trace)
	}
	for _, j := range v.jobs {
		split := j.job.Split
		for i, bags := range [][]int{split.Train, split.Test} {
			share := j.share(bags, func(at, _ int) int { return j.predicted[i][at] })
			if i == 0 {
				j.now().TrainAccuracy = share
			} else {
				j.now().TestAccuracy = share
			}
		}
	}
	return nil
}

// read takes predictions and attention scores out of a trace.
func (v *evaluation) read(epoch int, part [][][]int, trace []float32) {
	width, k := xla.ForwardWidth(v.sideBySide.program, v.layout), v.data.Classes
	for i, j := range v.jobs {
		for step, bags := range part[i] {
			row := trace[(step*v.layout.Jobs+i)*width:][:width]
			attention := row[v.layout.Batch*k:]
			for slot, bag := range bags {
				set := 0
				if len(j.predicted[0]) == len(j.job.Split.Train) {
					set = 1
				}
				j.predicted[set] = append(j.predicted[set], argmax(row[slot*k:(slot+1)*k]))
				n := v.data.Size(bag)
				if v.snapshot(epoch) {
					scores := &j.attention[len(j.attention)-1].Train
					if set == 1 {
						scores = &j.attention[len(j.attention)-1].Test
					}
					j.sortScores(scores, bag, attention[:n])
				}
				attention = attention[n:]
			}
		}
	}
}

// sortScores appends the attention scores of a bag by the kind of instance, as
// train.Scores defines it.
func (r *run) sortScores(s *train.Scores, bag int, attention []float32) {
	for i, score := range attention {
		if r.data.InstLabels == nil {
			s.Unknown = append(s.Unknown, score)
			continue
		}
		label, truth := r.data.InstLabels[r.data.Offsets[bag]+i], r.truth(bag)
		if truth >= 0 && label == truth || truth < 0 && label >= 0 {
			s.Positive = append(s.Positive, score)
		} else {
			s.Negative = append(s.Negative, score)
		}
	}
}
