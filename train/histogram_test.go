// Attention scores are counted in the right bins, also those outside the range.

package train

import (
	"math"
	"reflect"
	"testing"
)

func TestHistogram(t *testing.T) {
	s := Scores{Positive: []float32{0, 0.039, 0.04, 1, 2, 1e30, float32(math.Inf(1)), -1, -1e30, float32(math.NaN())}}
	h := s.Histogram(3, 0, 1)
	if h.Epoch != 3 || h.Positive[0] != 4 || h.Positive[1] != 1 || h.Positive[24] != 4 || h.Negative != nil {
		t.Errorf("%+v", h)
	}
	var sum Histogram
	sum.Add(h)
	sum.Add(h)
	if want := h.Positive[0]; sum.Positive[0] != 2*want || h.Positive[0] != want || sum.Unknown != nil {
		t.Errorf("the sum of two is %+v, and one of them %+v", sum, h)
	}
	if wide := s.Histogram(0, -1, 3); wide.Positive[6] != 3 || !reflect.DeepEqual(wide.Negative, sum.Negative) {
		t.Errorf("from -1 to 3: %+v", wide)
	}
}
