// The inputs of an epoch.

package xla

import (
	"context"
	"slices"

	"github.com/miplc/miplc/compile/xla"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/resources"
	"github.com/miplc/miplc/train"
)

// feed has the inputs of one call of a program, without the settings of the epoch.
type feed struct {
	first   int       // first step of the call, from 0
	steps   int       // number of steps
	batches [][][]int // [run][step] bags
	values  map[string]any
}

// feeder computes the feeds of an epoch or an evaluation.
type feeder struct {
	layout  xla.Layout
	runs    []*train.Run
	graphs  *xla.Graphs // nil in an evaluation
	epoch   int
	batches [][][]int // [run][step] bags
}

// feeds computes the feeds in a goroutine, so that the next one is drawn while the device
// computes. stop ends the goroutine.
func (s *feeder) feeds(ctx context.Context) (feeds <-chan *feed, stop func()) {
	ch := make(chan *feed)
	ctx, cancel := context.WithCancel(ctx)
	var drawing resources.Group
	drawing.Go(func() {
		defer close(ch)
		for first := 0; ; first += s.layout.Steps {
			f := s.feed(first)
			if f.steps == 0 || ctx.Err() != nil {
				return
			}
			select {
			case ch <- f:
			case <-ctx.Done():
				return
			}
		}
	})
	return ch, func() { cancel(); drawing.Wait() }
}

// feed returns the feed of the steps from first on.
func (s *feeder) feed(first int) *feed {
	f := &feed{first: first, batches: make([][][]int, len(s.batches))}
	for i, all := range s.batches {
		f.batches[i] = all[min(first, len(all)):min(first+s.layout.Steps, len(all))]
		f.steps = max(f.steps, len(f.batches[i]))
	}
	l := s.layout
	order := slices.Repeat([]int32{-1}, l.Steps*l.Trials*l.Batch) // bags, -1 for none
	for j, steps := range f.batches {
		for step, bags := range steps {
			for slot, bag := range bags {
				order[(step*l.Trials+j)*l.Batch+slot] = int32(bag)
			}
		}
	}
	f.values = map[string]any{xla.InLimit: []int32{int32(f.steps)}, xla.InOrder: order}
	if s.graphs == nil {
		return f
	}
	for i := range s.graphs.Masks {
		f.values[xla.InMask+s.graphs.Masks[i].Name] = s.mask(f, i)
	}
	for i, name := range s.graphs.StepScalarNames() {
		f.values[name] = s.scalars(f, i)
	}
	return f
}

// scalars returns input number i of a step that changes from step to step, [Steps, Trials, 1].
func (s *feeder) scalars(f *feed, i int) []float32 {
	out := make([]float32, s.layout.Steps*s.layout.Trials)
	for j, r := range s.runs {
		for step := range f.batches[j] {
			out[step*s.layout.Trials+j] = float32(r.Program.StepScalars(nil, r.Position(f.first+step+1))[i].Value)
		}
	}
	return out
}

// mask returns dropout mask number i of a feed, 1 for kept values. It draws the masks of several runs in
// parallel.
func (s *feeder) mask(f *feed, i int) []uint8 {
	l := s.layout
	width := ndarray.Size(s.graphs.Masks[i].Shape.Concrete(l.N, l.Batch))
	out := make([]uint8, l.Steps*l.Trials*width)
	resources.Each(len(s.runs), 0, func(j int) {
		m := &s.runs[j].Program.Masks[i]
		dropout := train.NewDropout(m, s.runs[j].Seed())
		for step, bags := range f.batches[j] {
			at := (step*l.Trials + j) * width
			n := ndarray.Size(m.Shape.Concrete(s.runs[j].Data.SizeOf(bags), len(bags)))
			dropout.DrawBytes(out[at:at+n], s.epoch, f.first+step+1)
		}
	})
	return out
}
