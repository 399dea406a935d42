// Ticks of axes that count epochs or show shares from 0 to 1.

package plot

import (
	"math"
	"strconv"

	gonum "gonum.org/v1/plot"
)

// epochTicks are ticks at whole epochs: the first, the last and round numbers between them.
type epochTicks struct{ first int }

func (e epochTicks) Ticks(low, high float64) []gonum.Tick {
	first, last := e.first, int(math.Round(high))
	if last <= first {
		return []gonum.Tick{{Value: float64(first), Label: strconv.Itoa(first)}}
	}
	step := roundStep(float64(last-first) / 5)
	ticks := []gonum.Tick{{Value: float64(first), Label: strconv.Itoa(first)}}
	for v := step; v < last; v += step {
		if v > first && v-first >= step*2/3 && last-v >= step*2/3 {
			ticks = append(ticks, gonum.Tick{Value: float64(v), Label: strconv.Itoa(v)})
		}
	}
	return append(ticks, gonum.Tick{Value: float64(last), Label: strconv.Itoa(last)})
}

// roundStep returns the smallest of 1, 2, 5, 10, 20, ... that is at least v.
func roundStep(v float64) int {
	for power := 1; ; power *= 10 {
		for _, m := range []int{1, 2, 5} {
			if float64(m*power) >= v {
				return m * power
			}
		}
	}
}

// shareTicks are ticks from 0 to 1 in fifths.
var shareTicks = gonum.ConstantTicks{
	{Value: 0, Label: "0"}, {Value: 0.2, Label: "0.2"}, {Value: 0.4, Label: "0.4"},
	{Value: 0.6, Label: "0.6"}, {Value: 0.8, Label: "0.8"}, {Value: 1, Label: "1"},
}

// spanEpochs sets the x axis to the epochs from first to last.
func (p *panel) spanEpochs(first, last int) {
	p.X.Min, p.X.Max = float64(first), float64(last)
	if last <= first { // an axis needs a positive length
		p.X.Min, p.X.Max = float64(first)-0.5, float64(first)+0.5
	}
	p.X.Tick.Marker = epochTicks{first}
}
