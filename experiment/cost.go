package experiment

import (
	"math"
	"time"

	"github.com/miplc/miplc/experiment/definition"
	"github.com/miplc/miplc/experiment/results"
	"github.com/miplc/miplc/train"
)

// Rough speeds of one core, for cells of which none was measured yet. They tell long
// cells from short ones, no more.
const (
	secondsOfStep  = 1.5e-4 // of a training step besides its arithmetic
	operations     = 2e10   // multiplications and additions in a second
	reuse          = 40     // how often a parameter of a network on images works on one
	secondsOfPairs = 1e-4   // of a pair of bags for learners that are solved
)

// nominal estimates the seconds of a training from its sizes alone.
func nominal(t *train.Trial) float64 {
	bags := float64(len(t.Split.Train))
	p := t.Program
	if p.Spec.Learner != nil {
		return secondsOfPairs * bags * bags
	}
	work := 6 * float64(p.FlatSize()) // of an instance: a product forward, two backward
	if len(p.Signature.Instance) > 1 {
		work *= reuse
	}
	instances := bags * float64(t.Data.Offsets[t.Data.Bags()]) / float64(t.Data.Bags())
	steps := math.Ceil(bags / float64(max(1, p.Spec.Train.Batch.V)))
	return float64(p.Spec.Train.Epochs.V) * (steps*secondsOfStep + instances*work/operations)
}

// costs estimates the seconds of cells from those of finished ones, which differ
// much between learners and data sets.
type costs struct {
	kinds             map[string]*mean
	measured, nominal float64 // seconds of all finished cells
}

type mean struct {
	sum float64
	n   int
}

// kind gathers cells that take about as long.
func kind(c definition.Coord) string { return c.Learner + "\x00" + c.Data }

// measureCosts starts with the seconds of the cells that have results.
func measureCosts(cells []*Cell, have *results.Results) *costs {
	k := &costs{kinds: map[string]*mean{}}
	for _, c := range cells {
		if r, found := have.ByKey[c.Key]; found {
			k.note(c, &r)
		}
	}
	return k
}

func (k *costs) note(c *Cell, r *results.Result) {
	if r.Error != "" {
		return
	}
	m := k.kinds[kind(c.Coord)]
	if m == nil {
		m = &mean{}
		k.kinds[kind(c.Coord)] = m
	}
	m.sum, m.n = m.sum+r.Seconds, m.n+1
	k.measured, k.nominal = k.measured+r.Seconds, k.nominal+c.nominal
}

// of estimates the seconds of a cell: those of its kind, else what its sizes say, as
// fast as the finished cells were.
func (k *costs) of(c *Cell) float64 {
	if m := k.kinds[kind(c.Coord)]; m != nil {
		return m.sum / float64(m.n)
	}
	if k.measured > 0 && k.nominal > 0 {
		return c.nominal * k.measured / k.nominal
	}
	return c.nominal
}

// clock estimates the time that an experiment will still take.
type clock struct {
	jobs int // cells at a time
	left map[string]*Cell
	*costs
}

func newClock(pending []*Cell, k *costs, jobs int) clock {
	left := map[string]*Cell{}
	for _, c := range pending {
		left[c.Key] = c
	}
	return clock{jobs, left, k}
}

// tick counts a cell as done and estimates the rest; 0 when nothing was measured.
func (k *clock) tick(c *Cell, r *results.Result) time.Duration {
	delete(k.left, c.Key)
	k.note(c, r)
	if k.measured == 0 {
		return 0
	}
	total := 0.0
	for _, c := range k.left {
		total += k.of(c)
	}
	return time.Duration(total / float64(k.jobs) * float64(time.Second))
}
