// A small training that tries an engine, for miplc doctor.

package train

import (
	"context"
	"time"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/generate"
	"github.com/miplc/miplc/language"
)

// SmallTrial returns a trial with which devices are tested: two epochs of the shipped spec
// quickstart on a few bags.
func SmallTrial() (*Trial, error) {
	o := generate.DefaultPrototypes
	o.Bags = 20
	d, err := generate.Prototypes(o)
	if err != nil {
		return nil, err
	}
	spec, err := language.Load("quickstart", "train.epochs=2")
	if err != nil {
		return nil, err
	}
	p, err := compile.Compile(spec, compile.Signature{Instance: d.Shape, Classes: d.Classes})
	if err != nil {
		return nil, err
	}
	return &Trial{Program: p, Data: d, Split: &data.Split{Train: d.AllBags()}, OnlySnapshots: true, Snapshots: []int{}},
		nil
}

// TrySmall trains SmallTrial to test the device of a trainer. It returns the time of a training
// step in the second epoch, and the time before and between the epochs, such as for compiling.
func TrySmall(ctx context.Context, by Trainer) (preparing, step time.Duration, err error) {
	t, err := SmallTrial()
	if err != nil {
		return 0, 0, err
	}
	began := time.Now()
	report, err := One(ctx, by, t, Options{})
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
