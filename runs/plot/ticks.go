// Ticks at round numbers.

package plot

import (
	"math"
	"strconv"

	gonum "gonum.org/v1/plot"
)

// ticksWithin returns round ticks of a range.
func ticksWithin(low, high float64) []gonum.Tick {
	ticks, exponent := roundTicks(low, high, 5)
	for i := range ticks {
		if exponent != 0 {
			ticks[i].Label = strconv.FormatFloat(ticks[i].Value, 'g', 2, 64)
		}
	}
	return ticks
}

// roundTicks returns ticks at multiples of 1, 2 or 5 times a power of ten from low to high, most+1 at most, with labels
// of equally many decimals. If the numbers are very large or small, the labels are to be multiplied by 10^exponent.
func roundTicks(low, high float64, most int) (ticks gonum.ConstantTicks, exponent int) {
	if !(high > low) || math.IsInf(high-low, 1) {
		return nil, 0
	}
	power := math.Floor(math.Log10((high - low) / float64(most)))
	step := math.Pow(10, power)
	for _, m := range []float64{1, 2, 5, 10} {
		if step = m * math.Pow(10, power); (high-low)/step <= float64(most)*(1+1e-9) {
			break
		}
	}
	if largest := max(math.Abs(low), math.Abs(high)); largest < 1e-3 || largest >= 1e7 {
		exponent = int(math.Floor(math.Log10(largest)))
	}
	unit := math.Pow(10, float64(exponent))
	decimals := max(0, -int(math.Floor(math.Log10(step/unit)+1e-9)))
	for i := range most + 1 {
		v := (math.Ceil(low/step-1e-9) + float64(i)) * step
		if v > high+1e-9*step {
			break
		}
		ticks = append(ticks, gonum.Tick{Value: v, Label: strconv.FormatFloat(v/unit+0, 'f', decimals, 64)})
	}
	return ticks, exponent
}
