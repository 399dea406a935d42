// The check that a device computes what the CPU computes, before it trains a program. miplc doctor tries devices with
// it.

package engines

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/onnxruntime"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/xla"
)

// onDevice returns the name of a device of XLA for messages.
func onDevice(b *xla.Device) string { return XLA + " on " + string(b.Kind) }

// checked is a trainer on a device. Before it trains a program for the first time, it compares the
// device with the CPU, and refuses the trials if the results differ.
type checked struct {
	train.Trainer
	cpu    train.Trainer
	device string // for messages

	mu      sync.Mutex
	results map[string]error // by program
}

// Train implements train.Trainer.
func (c *checked) Train(ctx context.Context, trials []*train.Trial, o train.Options,
	done func(i int, out train.Outcome)) {
	var right []int
	for i, t := range trials {
		if err := c.check(ctx, t.Program, o); err != nil {
			done(i, train.Outcome{Err: err})
			continue
		}
		right = append(right, i)
	}
	train.TrainSubset(ctx, c.Trainer, trials, right, o, done)
}

// check compares the device with the CPU, once for each program.
func (c *checked) check(ctx context.Context, p *compile.Program, o train.Options) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := fmt.Sprint(train.ProgramKey(p.Spec), p.Signature)
	err, known := c.results[key]
	if !known {
		o.ObserverOrSilent().Note("comparing " + c.device + " with the CPU on drawn bags, once for a program")
		if err = compareDevice(ctx, p, c.device, c.Trainer, c.cpu); ctx.Err() != nil {
			return err // an interruption says nothing about the device
		}
		c.results[key] = err
	}
	return err
}

// compareDevice trains a small trial with a program on a device and on the CPU. It returns an
// onnxruntime.WrongDeviceError if the losses, label weights or parameters after four steps differ.
func compareDevice(ctx context.Context, p *compile.Program, device string, on, cpu train.Trainer) error {
	t, err := sampleTrial(p, 2)
	if err != nil {
		return err
	}
	return onnxruntime.CompareDevice(device, 0,
		func(to *onnxruntime.Computed) error { return addTraining(ctx, to, t, cpu) },
		func(to *onnxruntime.Computed) error { return addTraining(ctx, to, t, on) })
}

// addTraining trains a trial and adds its results.
func addTraining(ctx context.Context, to *onnxruntime.Computed, t *train.Trial, by train.Trainer) error {
	r, err := train.TrainOne(ctx, by, t, train.Options{})
	if err != nil {
		return err
	}
	for _, m := range r.Metrics {
		to.AddResults([]float32{float32(m.Loss)})
	}
	to.AddResults(r.Weights)
	vectors, _, err := r.State.Flat(t.Program)
	for _, name := range slices.Sorted(maps.Keys(vectors)) {
		to.AddState(vectors[name])
	}
	return err
}

// sampleTrial returns a trial of two epochs of a program, on drawn bags: at most eight in a step, of one to seven
// instances.
func sampleTrial(p *compile.Program, steps int) (*train.Trial, error) {
	spec := *p.Spec
	spec.Train.Batch.V = min(max(1, spec.Train.Batch.V), 8)
	spec.Train.Epochs.V, spec.Train.Best.V, spec.Train.Patience.V, spec.Train.Refit.V = 2, "", 0, false
	small, err := compile.Compile(&spec, p.Signature)
	if err != nil {
		return nil, err
	}
	k, r := p.Signature.Classes, ndarray.NewStream(1, "device")
	d := &data.Dataset{Name: "drawn bags", Shape: slices.Clone(p.Signature.Instance), Classes: k, Offsets: []int{0}}
	for range steps * spec.Train.Batch.V {
		d.Offsets = append(d.Offsets, d.Offsets[d.Bags()]+1+r.IntN(7))
		set, first := make([]uint8, k), r.IntN(k)
		set[first], set[(first+1+r.IntN(max(1, k-1)))%k] = 1, 1
		d.Candidates = append(d.Candidates, set...)
	}
	d.Instances = make([]float32, d.Offsets[d.Bags()]*ndarray.Size(d.Shape))
	for i := range d.Instances {
		d.Instances[i] = float32(r.NormFloat64())
	}
	return &train.Trial{Program: small, Data: d, Split: &data.Split{Train: d.AllBags()}, OnlySnapshots: true,
		Snapshots: []int{}}, nil
}

// SmallTrial returns a trial of the shipped spec quickstart, with which devices are tried: two epochs of 20 steps.
func SmallTrial() (*train.Trial, error) {
	spec, err := language.Load("quickstart")
	if err != nil {
		return nil, err
	}
	p, err := compile.Compile(spec, compile.Signature{Instance: []int{20}, Classes: 5})
	if err != nil {
		return nil, err
	}
	return sampleTrial(p, 20)
}

// TryXLA trains SmallTrial with XLA on a device, and compares the first steps with those of the engine native. It
// returns the time of a step in the second epoch, and the time before, such as for compiling.
func TryXLA(ctx context.Context, b *xla.Device) (preparing, step time.Duration, err error) {
	t, err := SmallTrial()
	if err != nil {
		return 0, 0, err
	}
	cpu, err := Place{}.native("")
	if err != nil {
		return 0, 0, err
	}
	on := &xla.Trainer{Device: b}
	if err := compareDevice(ctx, t.Program, onDevice(b), on, cpu.trainer); err != nil {
		return 0, 0, err
	}
	return try(ctx, on, t)
}

// try trains a trial. It returns the time of a training step in the last epoch, and the time before and between the
// epochs.
func try(ctx context.Context, by train.Trainer, t *train.Trial) (preparing, step time.Duration, err error) {
	began := time.Now()
	report, err := train.TrainOne(ctx, by, t, train.Options{})
	if err != nil {
		return 0, 0, err
	}
	preparing = time.Since(began)
	for _, m := range report.Metrics {
		step = time.Duration(m.Seconds * float64(time.Second))
		preparing -= step
	}
	return preparing, step / time.Duration(len(t.BatchesOf(1))), nil
}
