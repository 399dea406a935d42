// Warnings about features that lose their differences in float32, such as seconds since 1970.

package bagfile

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/ndarray"
)

// precision has the ranges of features before their values become float32. It is complete for features with
// a small range only, because the others need no warning.
type precision struct {
	ranges []featureRange
}

type featureRange struct {
	low, high float64
	wide      bool
}

// minSteps is the smallest number of steps of float32 in the range of a feature without a warning.
const minSteps = 32

// step returns the distance of neighbouring numbers in float32 near x.
func step(x float64) float64 {
	f := float32(math.Abs(x))
	return float64(math.Nextafter32(f, math.MaxFloat32)) - float64(f)
}

// isNarrow reports whether the range of feature j is small so far, so that the next value matters.
func (p *precision) isNarrow(j int) bool { return j >= len(p.ranges) || !p.ranges[j].wide }

// add adds a value of feature j. The features of the first instance come in ascending order.
func (p *precision) add(j int, x float64) {
	if j == len(p.ranges) {
		p.ranges = append(p.ranges, featureRange{low: x, high: x})
	}
	r := &p.ranges[j]
	r.low, r.high = min(r.low, x), max(r.high, x)
	if !(r.high-r.low < minSteps*step(max(-r.low, r.high))) { // also if x is not finite
		r.wide = true
	}
}

// addBytes adds numbers in the format of a file. first is the index of the first one in an array, and
// feature returns the feature of a number by its index.
func (p *precision) addBytes(t ndarray.Encoding, b []byte, first int, feature func(i int) int) {
	for i := range len(b) / t.Size {
		if j := feature(first + i); p.isNarrow(j) {
			p.add(j, t.Float(b[i*t.Size:]))
		}
	}
}

// exceedsFloat32 reports whether numbers of this type have more digits than float32.
func exceedsFloat32(t ndarray.Encoding) bool {
	return t.Kind == ndarray.Float && t.Size == 8 || (t.Kind == ndarray.Int || t.Kind == ndarray.Uint) && t.Size >= 4
}

// warnings describes the features that have few values in float32 although their values differ. names are
// the names of the features, or nil.
func (p *precision) warnings(path string, names []string) (texts []string) {
	const roundoff, most = 1e-12, 5 // differences below roundoff times the value are errors of float64
	var lost []int
	for j, r := range p.ranges {
		if !r.wide && r.high-r.low > roundoff*max(-r.low, r.high) && (float64(float32(r.low)) != r.low ||
			float64(float32(r.high)) != r.high) {
			lost = append(lost, j)
		}
	}
	for _, j := range lost[:min(len(lost), most)] {
		r, name := p.ranges[j], strconv.Itoa(j+1)
		if j < len(names) {
			name = strconv.Quote(names[j])
		}
		left := 1 + int((float64(float32(r.high))-float64(float32(r.low)))/step(max(-r.low, r.high)))
		constant, _ := strconv.ParseFloat(fmt.Sprintf("%.6g", (r.low+r.high)/2), 64)
		texts = append(texts, fmt.Sprintf("%s: feature %s has values from %s to %s, of which float32 keeps %s: subtract a "+
			"constant such as %s from it",
			path, name, decimal(r.low), decimal(r.high), cmp.Or(map[int]string{1: "one"}[left], "at most "+strconv.Itoa(left)),
			decimal(constant)))
	}
	if more := len(lost) - most; more > 0 {
		texts = append(texts, fmt.Sprintf("%s: %s as well", path, diag.CountForms(more, "other feature loses values in "+
			"float32", "other features lose values in float32")))
	}
	return slices.Clip(texts)
}

// decimal formats a number without an exponent if it has few digits.
func decimal(x float64) string {
	format := byte('f')
	if size := math.Abs(x); size >= 1e15 || size < 1e-4 {
		format = 'g'
	}
	return strconv.FormatFloat(x, format, -1, 64)
}
