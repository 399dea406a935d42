package xla

import (
	"fmt"

	"github.com/miplc/miplc/compile/xla"
	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/memory"
	"github.com/miplc/miplc/train"
)

// plan lays the programs of trials out that share them.
type plan struct {
	model       *xla.Model
	train, test xla.Layout
	padding     float64 // share of the instances of the training steps that stand for none
	job, shared float64 // bytes that each trial and that all take on the device, estimated
	room        memory.Room
}

// feedBytes bounds the orders, masks and traces that one call of a program takes,
// unless Trainer.MaxFeed does.
const feedBytes = 256 << 20

func (t *Trainer) plan(trials []*train.Trial) (*plan, error) {
	model, err := xla.NewModel(trials[0].Program)
	if err != nil {
		return nil, err
	}
	p, d, instances := &plan{model: model, room: t.room()}, trials[0].Data, 0
	p.train = xla.Layout{Jobs: len(trials), Batch: trials[0].Batch(), Bags: d.Bags(), Rows: d.Offsets[d.Bags()]}
	p.test = p.train
	for _, trial := range trials {
		for epoch := range trial.Program.Spec.Train.Epochs.V {
			n := hold(&p.train, d, trial.BatchesOf(epoch+1))
			if epoch == 0 {
				instances += n
			}
			if p.train.Batch == 1 && trial.Program.Spec.Train.Sampling.V != "balanced" { // all epochs have the same batches
				break
			}
		}
		hold(&p.test, d, trial.AllBatches())
	}
	// Few capacities serve many groups.
	p.train.N, p.test.N = train.RoundUp(p.train.N, 8), train.RoundUp(p.test.N, 8)
	p.padding = 1 - float64(instances)/float64(p.train.N*p.train.Steps*p.train.Jobs)
	p.train.Steps = t.stepsOfCall(p.train, 4*model.EpochWidth(p.train)+model.MaskBytes(p.train))
	p.test.Steps = t.stepsOfCall(p.test, 4*model.ForwardWidth(p.test))
	p.job, p.shared = model.Bytes(p.train, p.test)
	return p, nil
}

// hold widens a layout for batches and gives the number of their instances.
func hold(l *xla.Layout, d *data.Dataset, batches [][]int) (instances int) {
	l.Steps = max(l.Steps, len(batches))
	for _, bags := range batches {
		n := d.SizeOf(bags)
		l.N = max(l.N, n)
		instances += n
	}
	return instances
}

// stepsOfCall bounds the memory of a feed, of so many bytes a step and job beside
// the order of the bags.
func (t *Trainer) stepsOfCall(l xla.Layout, bytes int) int {
	most := t.MaxFeed
	if most == 0 {
		most = feedBytes
	}
	return min(train.RoundUp(l.Steps, 8), max(1, most/(l.Jobs*(bytes+4*l.Batch))))
}

// room returns the memory that the trainer may take on the device.
func (t *Trainer) room() memory.Room {
	if t.Memory > 0 {
		return memory.Room{Bytes: float64(t.Memory), Bound: "named by --device-memory"}
	}
	return t.Backend.Memory
}

// most returns the number of trials that fit side by side into one of so many equal
// parts of the memory.
func (p *plan) most(parts int) int {
	return int(min((p.room.Bytes/float64(parts)-p.shared)/p.job, train.MaxGroup))
}

// check refuses trials that take more memory than there is.
func (p *plan) check() error {
	err := p.room.Check(p.what(), p.shared+float64(p.train.Jobs)*p.job)
	if err != nil {
		return fmt.Errorf("%w: smaller batches (train.batch) take less; --device-memory names what there is", err)
	}
	return nil
}

func (p *plan) what() string {
	if p.train.Jobs == 1 {
		return "a run of " + p.model.Spec.Name.V
	}
	return fmt.Sprintf("%d runs of %s side by side", p.train.Jobs, p.model.Spec.Name.V)
}

// String says what the programs are for.
func (p *plan) String() string {
	return fmt.Sprintf("%s: steps of %s, %.0f %% of them padding, in about %s of memory",
		p.what(), diag.Count(p.train.N, "instance"), 100*p.padding, memory.Size(p.shared+float64(p.train.Jobs)*p.job))
}
