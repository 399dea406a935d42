// Counts the epochs of the trainings of an experiment and estimates the remaining time from them: the cells of a group
// all end at about the same time, so that finished cells alone would show nothing for long.

package experiment

import (
	"math"
	"time"

	"github.com/miplc/miplc/train"
)

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
