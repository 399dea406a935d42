// The sizes of programs, and how many trials fit into the memory.

package xla

import (
	"cmp"
	"fmt"

	"github.com/miplc/miplc/compile/xla"
	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/resources"
	"github.com/miplc/miplc/train"
)

// plan has the sizes of the programs that trials share.
type plan struct {
	graphs       *xla.Graphs
	train, test  xla.Layout
	padding      float64 // share of padding in the instances of the training steps
	each, shared float64 // estimated bytes on the device: per trial, and independent of their number
	budget       resources.Budget
}

// feedBytes is the default of Trainer.FeedBytes.
const feedBytes = 256 << 20

// plan returns the plan of a group.
func (t *Trainer) plan(trials []*train.Trial) (*plan, error) {
	if sample := trials[0].Program.Spec.Data.Sample; sample.V > 0 {
		return nil, trials[0].Program.Spec.AtUserLine(diag.Errorf(sample.Pos, "the engine xla trains on all instances of "+
			"a bag and does not support data.sample").
			WithNote("choose another engine with --engine native"))
	}
	graphs, err := xla.NewGraphs(trials[0].Program)
	if err != nil {
		return nil, err
	}
	p, d, instances := &plan{graphs: graphs, budget: t.Device.Memory}, trials[0].Data, 0
	p.train = xla.Layout{Trials: len(trials), Batch: trials[0].BatchSize(), Bags: d.Bags(), Rows: d.Offsets[d.Bags()]}
	p.test = p.train
	for _, trial := range trials {
		for epoch := range trial.Program.Spec.Train.Epochs.V {
			n := extend(&p.train, d, trial.BatchesOf(epoch+1))
			if epoch == 0 {
				instances += n
			}
			if p.train.Batch == 1 && trial.Program.Spec.Train.Sampling.V != "balanced" { // all epochs have the same batches
				break
			}
		}
		extend(&p.test, d, trial.AllBatches())
	}
	// Rounded, so that different groups can use the same compiled programs.
	p.train.N, p.test.N = train.RoundUp(p.train.N, 8), train.RoundUp(p.test.N, 8)
	p.padding = 1 - float64(instances)/float64(p.train.N*p.train.Steps*p.train.Trials)
	feed := cmp.Or(t.FeedBytes, feedBytes)
	p.train.Steps = stepsOfCall(p.train, feed, 4*graphs.EpochWidth(p.train)+graphs.MaskBytes(p.train))
	p.test.Steps = stepsOfCall(p.test, feed, 4*graphs.ForwardWidth(p.test))
	p.each, p.shared = graphs.Bytes(p.train, p.test)
	return p, nil
}

// extend increases the capacity of a layout so that it fits batches, and returns the number of
// their instances.
func extend(l *xla.Layout, d *data.Dataset, batches [][]int) (instances int) {
	l.Steps = max(l.Steps, len(batches))
	for _, bags := range batches {
		n := d.SizeOf(bags)
		l.N = max(l.N, n)
		instances += n
	}
	return instances
}

// stepsOfCall returns the maximum number of steps per call. feed is the memory for the feeds of a call, bytes that of
// a step and trial, without the order of the bags.
func stepsOfCall(l xla.Layout, feed, bytes int) int {
	return min(train.RoundUp(l.Steps, 8), max(1, feed/(l.Trials*(bytes+4*l.Batch))))
}

// maxTrials returns the number of trials that fit in the memory.
func (p *plan) maxTrials() int {
	return int(min((p.budget.Bytes-p.shared)/p.each, train.MaxGroup))
}

// subject returns the trials as the subject of a sentence.
func (p *plan) subject() string {
	if p.train.Trials == 1 {
		return "a run of " + p.graphs.Spec.Name.V
	}
	return fmt.Sprintf("%d runs of %s in one program", p.train.Trials, p.graphs.Spec.Name.V)
}

// String describes the programs.
func (p *plan) String() string {
	return fmt.Sprintf("%s: steps of %s, %.0f %% of them padding, in about %s of memory",
		p.subject(), diag.Count(p.train.N, "instance"), 100*p.padding, resources.Bytes(p.bytes()))
}

// bytes estimates the memory of the trials on the device.
func (p *plan) bytes() float64 { return p.shared + float64(p.train.Trials)*p.each }
