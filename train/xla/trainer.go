// Package xla trains through XLA: on a GPU or CPU by way of a PJRT plugin, or on
// compute's pure Go executor, which needs nothing installed and is there for
// tests. Whole epochs of one run or of many side by side are one program.
package xla

import (
	"context"
	"fmt"
	"runtime"
	"sync"

	"github.com/miplc/miplc/internal/memory"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/xla/pjrt"
)

// fewest is the number of trials that are worth a program on another core: each of fewer
// costs more than it gains.
const fewest = 4

// Trainer trains trials that share a program side by side in it: of bags of features
// on a CPU, one group to a core.
type Trainer struct {
	train.Placement
	Backend *Backend
	// MaxFeed bounds the bytes of orders, masks and traces that one call of a
	// program takes; an epoch that needs more runs in parts. 0: 256 MiB.
	MaxFeed int
	// Memory is the bytes that programs may take on the device, by an estimate. 0:
	// what the device has.
	Memory int64

	device sync.Mutex
}

// Train implements train.Trainer.
func (t *Trainer) Train(ctx context.Context, trials []*train.Trial, o train.Options, done func(i int, out train.Outcome)) {
	t.device.Lock()
	defer t.device.Unlock()
	groups := &train.Groups{
		Placement: t.Placement, Parallel: t.parallelGroups(trials), Fewest: fewest, Fits: t.fits, Open: t.openJobs, Explain: t.explained,
	}
	groups.Coupled = true
	groups.Train(ctx, trials, o, done)
}

// parallelGroups is how many groups go at a time: as many as there are cores where each
// takes one and, by the estimate, its part of the memory.
func (t *Trainer) parallelGroups(trials []*train.Trial) int {
	cores := runtime.GOMAXPROCS(0)
	for _, trial := range trials {
		if !t.Backend.oneCore(trial.Program) || t.fits(trial, cores) < 1 {
			return 1
		}
	}
	return cores
}

// fits is how many trials like one fit side by side into one of so many equal parts
// of the memory.
func (t *Trainer) fits(like *train.Trial, parts int) int {
	if like.Check() == nil { // else its group tells
		if p, err := t.plan([]*train.Trial{like}); err == nil {
			return p.most(parts)
		}
	}
	return train.MaxGroup
}

// explained says what to do where the memory of the device did not suffice,
// though by the estimate it would.
func (t *Trainer) explained(err error) error {
	if !pjrt.OutOfMemory(err) {
		return err
	}
	return fmt.Errorf("%w: the device ran out of memory; by the estimate it had room (%s, %s): name less by --device-memory, or take smaller batches (train.batch)",
		err, memory.Size(t.room().Bytes), t.room().Bound)
}
