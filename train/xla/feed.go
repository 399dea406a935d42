package xla

import (
	"context"
	"runtime"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/compile/xla"
	"github.com/miplc/miplc/internal/extent"
	"github.com/miplc/miplc/internal/workers"
	"github.com/miplc/miplc/train"
)

// feed is what one call of the epoch program takes from the host beside the
// settings of the epoch.
type feed struct {
	epoch   int
	first   int       // step of the epoch, from 0, that the call begins with
	steps   int       // of the call
	batches [][][]int // [run][step] bags
	values  map[string]any
}

// feeds makes the feeds of an epoch in a goroutine of its own, so that the next
// one is drawn while the device works on the last. stop ends it early.
func (s *jobs) feeds(ctx context.Context, runs []*train.Run) (feeds <-chan *feed, stop func()) {
	ch := make(chan *feed)
	ctx, cancel := context.WithCancel(ctx)
	all, steps, epoch := make([][][]int, len(runs)), 0, 0
	for i, r := range runs {
		if r != nil {
			all[i], epoch = r.Batches(), r.Now().Epoch
			steps = max(steps, len(all[i]))
		}
	}
	var drawing workers.Group
	drawing.Go(func() {
		defer close(ch)
		for first := 0; first < steps; first += s.layout.Steps {
			select {
			case ch <- s.feed(epoch, first, all):
			case <-ctx.Done():
				return
			}
		}
	})
	return ch, func() { cancel(); drawing.Wait() }
}

// window is a part of the batches of all runs: those of count steps from first on.
func window(all [][][]int, first, most int) (part [][][]int, count int) {
	part = make([][][]int, len(all))
	for i, batches := range all {
		part[i] = batches[min(first, len(batches)):min(first+most, len(batches))]
		count = max(count, len(part[i]))
	}
	return part, count
}

func (s *jobs) feed(epoch, first int, all [][][]int) *feed {
	f := &feed{epoch: epoch, first: first}
	f.batches, f.steps = window(all, first, s.layout.Steps)
	f.values = map[string]any{xla.InLimit: []int32{int32(f.steps)}, xla.InOrder: order(f.batches, s.layout)}
	for i := range s.program.Masks {
		m := &s.program.Masks[i]
		f.values[xla.InMask+m.Name] = s.masks(f, m)
	}
	return f
}

// order lays bags out as [Steps, Jobs, Batch] with -1 for none.
func order(batches [][][]int, l xla.Layout) []int32 {
	out := make([]int32, l.Steps*l.Jobs*l.Batch)
	for i := range out {
		out[i] = -1
	}
	for j, steps := range batches {
		for step, bags := range steps {
			for slot, bag := range bags {
				out[(step*l.Jobs+j)*l.Batch+slot] = int32(bag)
			}
		}
	}
	return out
}

// masks draws the dropout masks of a feed, 1 for kept. Runs share the cores.
func (s *jobs) masks(f *feed, m *compile.Mask) []uint8 {
	l := s.layout
	width := extent.Size(m.Shape.Concrete(l.N, l.Batch))
	out := make([]uint8, l.Steps*l.Jobs*width)
	var wait workers.Group
	turns := make(chan int, len(s.runs))
	for range min(len(s.runs), runtime.GOMAXPROCS(0)) {
		wait.Go(func() {
			for j := range turns {
				for step, bags := range f.batches[j] {
					at := (step*l.Jobs + j) * width
					n := extent.Size(m.Shape.Concrete(s.largest([][]int{bags}), len(bags)))
					train.DrawMask(out[at:at+n], 1, m, s.runs[j].Seed(), f.epoch, f.first+step+1)
				}
			}
		})
	}
	for j := range s.runs {
		turns <- j
	}
	close(turns)
	wait.Wait()
	return out
}
