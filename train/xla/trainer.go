// Package xla is the engine that trains with XLA, on a GPU or CPU through a PJRT plugin. In tests
// it also uses compute's executor in pure Go. One program computes whole epochs of one or more
// runs.
package xla

import (
	"context"
	"fmt"
	"sync"

	"github.com/miplc/miplc/internal/resources"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/xla/pjrt"
)

// Trainer trains groups of trials that share a program, one group after the other.
type Trainer struct {
	train.EngineInfo
	Device *Device
	// FeedBytes is the maximum number of bytes of bag orders, masks and traces of one call of a program; 0: 256 MiB.
	// Epochs that need more take several calls.
	FeedBytes int
	device    sync.Mutex
}

// Train implements train.Trainer.
func (t *Trainer) Train(ctx context.Context, trials []*train.Trial, o train.Options,
	done func(i int, out train.Outcome)) {
	t.device.Lock()
	defer t.device.Unlock()
	groups := &train.GroupTrainer{
		EngineInfo: t.EngineInfo, MaxGroup: t.maxTrials, Open: t.openGroup, Explain: func(err error) error {
			if !pjrt.OutOfMemory(err) {
				return err
			}
			return fmt.Errorf("%w: the device ran out of memory, although the estimate was below its limit (%s, %s): set a "+
				"lower one with --device-memory, or use smaller batches (train.batch)",
				err, resources.Bytes(t.Device.Memory.Bytes), t.Device.Memory.Bound)
		},
	}
	groups.Coupled = true
	groups.Train(ctx, trials, o, done)
}

// maxTrials returns how many trials like one fit in the memory.
func (t *Trainer) maxTrials(like *train.Trial) int {
	if like.Check() == nil { // otherwise its group reports the error
		if p, err := t.plan([]*train.Trial{like}); err == nil {
			return p.maxTrials()
		}
	}
	return train.MaxGroup
}
