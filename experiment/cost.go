// Estimated times: of cells, by which shards are balanced, and of the rest of an experiment, from the epochs of its
// trainings. The cells of a group all end at about the same time, so that finished cells alone would show nothing for
// long.

package experiment

import (
	"math"
	"time"

	"gonum.org/v1/gonum/stat"

	"github.com/miplc/miplc/experiment/definition"
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/train"
)

// Rough speeds of one core, for cells for which no time was measured yet. They only distinguish
// long cells from short ones.
const (
	secondsOfCell     = 0.2  // of any training: opening the engine, testing, saving
	secondsOfNode     = 3e-7 // overhead of a node of a training step
	elementsPerSecond = 1e9  // numbers that a node computes without a product
	productsPerSecond = 2e10 // multiplications, each with an addition
	updatesPerSecond  = 2e8  // parameters that an optimiser updates
	secondsOfPair     = 5e-8 // of two vectors, in an iteration of a fitted learner
)

// estimateFromSize estimates the seconds of a training from its sizes.
func estimateFromSize(t *train.Trial) float64 {
	bags := t.Split.Train
	p := t.Program
	size := float64(t.Data.Offsets[t.Data.Bags()]) / float64(t.Data.Bags()) // of a bag
	if p.Spec.Fitted() {
		vectors := fittedVectors(p.Spec.Learner, float64(len(bags)), size)
		return secondsOfCell + float64(p.Spec.Train.Epochs.V)*vectors*vectors*secondsOfPair
	}
	batch := min(max(1, p.Spec.Train.Batch.V), len(bags))
	instances := float64(batch) * size
	steps := math.Ceil(float64(len(bags)) / float64(batch))
	const passes = 3 // the values, and the gradients of both inputs of a node
	step := passes*seconds(p.Train, int(math.Ceil(instances)), batch) + float64(p.FlatSize())/updatesPerSecond
	return secondsOfCell + float64(p.Spec.Train.Epochs.V)*steps*step
}

// fittedVectors returns the number of vectors that a learner is fitted to: of bags, or of the instances
// with which it learns hyper-parameters.
func fittedVectors(l *language.Learner, bags, size float64) float64 {
	subset, ofInstances := l.Args["subset"]
	switch {
	case !ofInstances:
		return bags
	case subset.Int() > 0:
		return min(bags*size, float64(subset.Int()))
	}
	return bags * size
}

// seconds estimates the time of computing a graph for n instances in b bags.
func seconds(g *graph.Graph, n, b int) float64 {
	total := 0.0
	for _, node := range g.Nodes {
		total += secondsOfNode
		if products := node.Products(n, b); products > 0 {
			total += products / productsPerSecond
		} else if !node.Op.IsLeaf() {
			total += node.Shape.Elements(n, b) / elementsPerSecond
		}
	}
	return total
}

// costs estimates the seconds of cells from those of finished ones of the same learner and dataset.
type costs struct {
	kinds               map[string][]float64 // seconds of finished cells
	measured, estimated float64              // sums over all finished cells
}

// kind returns a key for cells that take about the same time.
func kind(c definition.Coord) string { return c.Learner + "\x00" + c.Data }

// costsFromResults returns the costs of the cells that have results.
func costsFromResults(cells []*Cell, have *Results) *costs {
	k := &costs{kinds: map[string][]float64{}}
	for _, c := range cells {
		if have.Done(c.Key) {
			seconds := have.ByKey[c.Key].Seconds
			k.kinds[kind(c.Coord)] = append(k.kinds[kind(c.Coord)], seconds)
			k.measured, k.estimated = k.measured+seconds, k.estimated+c.estimate
		}
	}
	return k
}

// seconds estimates the seconds of a cell: the mean of its kind, or the estimate from its size, scaled by the speed
// of the finished cells.
func (k *costs) seconds(c *Cell) float64 {
	if list := k.kinds[kind(c.Coord)]; list != nil {
		return stat.Mean(list, nil)
	}
	if k.measured > 0 && k.estimated > 0 {
		return c.estimate * k.measured / k.estimated
	}
	return c.estimate
}

// epochClock estimates the remaining time of an experiment from its epochs.
type epochClock struct {
	started    time.Time
	done, left float64 // estimated seconds of what this process has done, and of the rest
}

// begin leaves out the epochs that trainings have in their checkpoints.
func (k *epochClock) begin(p train.Plan, perEpoch float64) { k.left -= float64(p.Done) * perEpoch }

// end counts a cell of a fitted learner.
func (k *epochClock) end(c *Cell) {
	if c.grid[0].spec.Fitted() {
		k.pass(c.estimate)
	}
}

func (k *epochClock) pass(seconds float64) { k.done, k.left = k.done+seconds, k.left-seconds }

// percent estimates the part of the work that this process has done.
func (k *epochClock) percent() int {
	return int(math.Round(100 * k.done / max(k.done, k.done+k.left, 1e-9)))
}

// remaining estimates the remaining time; 0: unknown.
func (k *epochClock) remaining() time.Duration {
	if k.left <= 0 || k.done < k.left/100 { // at first, the preparations of the trainings take most of the time
		return 0
	}
	return time.Duration(float64(time.Since(k.started)) * k.left / k.done)
}

// secondsPerEpoch estimates the time of an epoch of a training in a group; 0 for fitted learners, whose cells count
// when they end.
func (r *runner) secondsPerEpoch(g *group) float64 {
	seconds, epochs := 0.0, 0.0
	for _, c := range g.Cells {
		if c.grid[0].spec.Fitted() {
			return 0
		}
		seconds += c.estimate
		last := float64(c.grid[0].spec.Train.Epochs.V)
		if n := len(c.grid); n > 1 {
			sum := 0.0
			for _, point := range c.grid {
				sum += float64(point.spec.Train.Epochs.V)
			}
			epochs += sum * r.rules(c.Learner).Share(n, int(last)) * float64(r.e.Choose.Trainings())
		}
		epochs += last // of the only or the chosen setting
	}
	return seconds / max(1, epochs)
}
