package xla

import (
	"runtime"
	"sync"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/compile/xla"
	"github.com/miplc/miplc/internal/stream"
)

// feed is what one call of the epoch program takes from the host beside the
// settings of the epoch.
type feed struct {
	epoch   int
	first   int       // step of the epoch, from 0, that the call begins with
	steps   int       // of the call
	batches [][][]int // [job][step] bags
	values  map[string]any
}

// feeds makes the feeds of an epoch in a goroutine of its own, so that the next
// one is drawn while the device works on the last. stop ends it early.
func (s *sideBySide) feeds(epoch int) (feeds <-chan *feed, stop func()) {
	ch, done := make(chan *feed), make(chan struct{})
	all, steps := make([][][]int, len(s.jobs)), 0
	for i, j := range s.jobs {
		if j.err == nil {
			all[i] = j.batches(epoch)
		}
		steps = max(steps, len(all[i]))
	}
	go func() {
		defer close(ch)
		for first := 0; first < steps; first += s.layout.Steps {
			f := s.feed(epoch, first, min(s.layout.Steps, steps-first), all)
			select {
			case ch <- f:
			case <-done:
				return
			case <-s.ctx.Done():
				return
			}
		}
	}()
	var once sync.Once
	return ch, func() { once.Do(func() { close(done) }) }
}

func (s *sideBySide) feed(epoch, first, steps int, all [][][]int) *feed {
	l := s.layout
	f := &feed{epoch: epoch, first: first, steps: steps, batches: make([][][]int, len(all))}
	for i, batches := range all {
		f.batches[i] = batches[min(first, len(batches)):min(first+steps, len(batches))]
	}
	f.values = map[string]any{xla.InLimit: []int32{int32(steps)}, xla.InOrder: order(f.batches, l)}
	for _, m := range s.program.Masks {
		f.values[xla.InMask+m.Name] = s.masks(f, &m)
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

// masks draws the dropout masks of a feed, 1 for kept: the same numbers, from
// the same streams, as train.Run draws for each job. Jobs share the cores.
func (s *sideBySide) masks(f *feed, m *compile.Mask) []uint8 {
	l := s.layout
	width := size(m.Shape.Concrete(l.N, l.Batch))
	out := make([]uint8, l.Steps*l.Jobs*width)
	var wait sync.WaitGroup
	turns := make(chan int)
	for range min(len(s.jobs), runtime.GOMAXPROCS(0)) {
		wait.Go(func() {
			for j := range turns {
				for step, bags := range f.batches[j] {
					at := (step*l.Jobs + j) * width
					n := size(m.Shape.Concrete(s.largest([][]int{bags}), len(bags)))
					r := stream.New(s.jobs[j].job.Seed, m.Name, uint64(f.epoch), uint64(f.first+step+1))
					for i := range out[at : at+n] {
						if !(r.Float64() < m.Drop) {
							out[at+i] = 1
						}
					}
				}
			}
		})
	}
	for j := range s.jobs {
		turns <- j
	}
	close(turns)
	wait.Wait()
	return out
}
