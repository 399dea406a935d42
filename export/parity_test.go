// The comparison of engines reports every difference, NaN and failure, and also dependence on the other bags of a run.

package export

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
)

// scaled returns an engine that gives the first feature as the only attention score's scale, off by a constant.
func scaled(name string, off float32) Predictor {
	return Predictor{Name: name, Predict: func(x []float32, sizes []int) ([]float32, []float32, error) {
		a := make([]float32, sizes[0])
		for i := range a {
			a[i] = x[i*2]
		}
		return []float32{0.5 + off, 0.5 - off}, a, nil
	}}
}

func TestCompare(t *testing.T) {
	o := Comparison{Instance: []int{2}, Sizes: []int{1, 3}, Seed: 7}
	cases := []struct {
		name string
		off  float32
		ok   bool
	}{
		{"equal", 0, true},
		{"within", 5e-6, true},
		{"beyond", 1e-3, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r, err := Compare([]Predictor{scaled("one", 0), scaled("two", 0), scaled("three", c.off)}, o)
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Pairs) != 3 || !r.Pairs[0].OK {
				t.Fatalf("pairs %+v", r.Pairs)
			}
			if r.OK != c.ok || (r.Err() == nil) != c.ok {
				t.Errorf("ok %v, err %v; want ok %v", r.OK, r.Err(), c.ok)
			}
			if math.Abs(r.MaxAbsDiff-float64(c.off)) > 1e-7 {
				t.Errorf("max abs diff %g, want %g", r.MaxAbsDiff, c.off)
			}
		})
	}
}

// Class attention follows the attention. It is compared if both engines compute it.
func TestCompareClassAttention(t *testing.T) {
	withClasses := func(off float32) Predictor {
		e := scaled("classes", 0)
		predict := e.Predict
		e.Predict = func(x []float32, sizes []int) ([]float32, []float32, error) {
			p, a, err := predict(x, sizes)
			for range 2 * sizes[0] {
				a = append(a, off)
			}
			return p, a, err
		}
		return e
	}
	for off, ok := range map[float32]bool{0: true, 1e-3: false} {
		r, err := Compare([]Predictor{withClasses(0), withClasses(off), scaled("one", 0)}, Comparison{Instance: []int{2},
			Sizes: []int{1, 3}})
		if err != nil {
			t.Fatal(err)
		}
		if r.Pairs[0].OK != ok || !r.Pairs[1].OK || !r.Pairs[2].OK {
			t.Errorf("difference %g: %+v", off, r.Pairs)
		}
	}
}

func TestCompareSeesNaN(t *testing.T) {
	nan := scaled("two", float32(math.NaN()))
	r, err := Compare([]Predictor{scaled("one", 0), nan}, Comparison{Instance: []int{2}, Sizes: []int{2}})
	if err != nil {
		t.Fatal(err)
	}
	if r.OK {
		t.Error("a NaN passed as agreement")
	}
}

func TestCompareReportsFailures(t *testing.T) {
	broken := Predictor{Name: "broken", Predict: func([]float32, []int) ([]float32, []float32, error) {
		return nil, nil, errors.New("out of order")
	}}
	short := Predictor{Name: "short", Predict: func([]float32, []int) ([]float32, []float32, error) {
		return []float32{1, 0}, nil, nil
	}}
	wide := Predictor{Name: "wide", Predict: func(_ []float32, sizes []int) ([]float32, []float32, error) {
		return []float32{1, 0, 0}, make([]float32, sizes[0]), nil
	}}
	for want, engines := range map[string][]Predictor{
		"broken: on a bag of 2: out of order": {scaled("one", 0), broken},
		"short: 0 attention scores for a bag": {scaled("one", 0), short},
	} {
		r, err := Compare(engines, Comparison{Instance: []int{2}, Sizes: []int{2}})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Err(); r.OK || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ok %v, error %v, want one with %q", r.OK, err, want)
		}
		if !r.Agrees("one", engines[1].Name) || r.Agrees(engines[1].Name, "one") {
			t.Error("the engine that failed agrees, or the other one does not")
		}
		if r.LeaveOut(engines[1].Name); !r.OK || r.Err() != nil {
			t.Errorf("without %s: %v", engines[1].Name, r.Err())
		}
	}
	for want, engines := range map[string][]Predictor{
		"at least two":                        {scaled("one", 0)},
		"one returns 2 classes, wide returns": {scaled("one", 0), wide},
	} {
		_, err := Compare(engines, Comparison{Instance: []int{2}, Sizes: []int{2}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

// An engine whose predictions depend on the other bags of a run is found out.
func TestCompareTogether(t *testing.T) {
	for _, leak := range []float32{0, 0.01} {
		e := scaled("leaky", 0)
		alone := e.Predict
		e.Many, e.Predict = true, func(x []float32, sizes []int) (p, a []float32, err error) {
			for _, n := range sizes {
				one, scores, _ := alone(x, []int{n})
				p = append(p, one[0]+leak*float32(len(sizes)-1), one[1])
				a, x = append(a, scores...), x[2*n:]
			}
			return p, a, nil
		}
		r, err := Compare([]Predictor{scaled("one", 0), e}, Comparison{Instance: []int{2}, Sizes: []int{1, 2, 500}})
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Pairs) != 2 || r.Pairs[1].B != predictMany || r.OK != (leak == 0) || r.Agrees("leaky") != (leak == 0) {
			t.Errorf("leak %g: %+v", leak, r)
		}
	}
}

// Bounds follow what rounding does to a bag, from Tolerance to MaxTolerance.
func TestBoundsFollowRounding(t *testing.T) {
	for _, c := range []struct {
		rounding, off float64
		ok            bool
	}{
		{0, 5e-6, true}, {0, 5e-5, false}, {1e-7, 5e-5, false},
		{1e-5, 5e-5, true}, {1e-5, 5e-4, false}, {1e-3, 5e-4, true}, {1e-3, 5e-3, false},
	} {
		o := Comparison{Instance: []int{2}, Sizes: []int{1}, Rounding: func([]float32, int) (float64, float64, error) {
			return c.rounding, 0, nil
		}}
		r, err := Compare([]Predictor{scaled("one", 0), scaled("two", float32(c.off))}, o)
		if err != nil {
			t.Fatal(err)
		}
		if r.OK != c.ok {
			t.Errorf("rounding %g, difference %g: ok %v, bound %g", c.rounding, c.off, r.OK, r.Pairs[0].Bound)
		}
	}
}

func TestBagDoesNotDependOnOtherSizes(t *testing.T) {
	a := Comparison{Instance: []int{3}, Sizes: []int{1, 4}, Seed: 1}.Instances(1)
	b := Comparison{Instance: []int{3}, Sizes: []int{4}, Seed: 1}.Instances(0)
	for i := range a {
		if a[i] != b[i] {
			t.Fatalf("element %d: %g and %g", i, a[i], b[i])
		}
	}
	moved := Comparison{Instance: []int{3}, Sizes: []int{4}, Seed: 1, Mean: []float32{1, 2, 3},
		Std: []float32{0, 0, 2}}.Instances(0)
	if moved[0] != 1 || moved[1] != 2 || moved[2] == a[2] {
		t.Errorf("mean and deviation are not applied: %v", moved[:3])
	}
}

// Engines must agree on the sizes of the dataset. On other sizes, a difference is a warning.
func TestRequiredSizes(t *testing.T) {
	large := scaled("large", 0)
	predict := large.Predict
	large.Predict = func(x []float32, sizes []int) ([]float32, []float32, error) {
		p, a, err := predict(x, sizes)
		if sizes[0] == 1000 {
			p[0] += 0.007
		}
		return p, a, err
	}
	all, required := SizesLike([]int{13, 5, 2, 7, 6})
	if !slices.Equal(required, []int{2, 6, 13}) || !slices.Equal(all, []int{1, 2, 6, 13, 40, 1000}) {
		t.Fatalf("sizes %v, required %v", all, required)
	}
	r, err := Compare([]Predictor{scaled("one", 0), large}, Comparison{Instance: []int{2}, Sizes: all, Required: required})
	if err != nil {
		t.Fatal(err)
	}
	if !r.OK || r.MaxAbsDiff > 1e-6 || len(r.Warnings) != 1 ||
		!strings.Contains(r.Warnings[0], "one and large differ by 0.007 on a bag of 1000 instances") {
		t.Errorf("%+v", r)
	}
	r, err = Compare([]Predictor{scaled("one", 0), large}, Comparison{Instance: []int{2}, Sizes: all})
	if err != nil || r.OK || len(r.Warnings) != 0 {
		t.Errorf("all sizes required: %+v, %v", r, err)
	}
	if all, required = SizesLike([]int{1500, 3000}); !slices.Equal(required, []int{1000}) ||
		!slices.Equal(all, []int{1, 2, 40, 1000}) {
		t.Errorf("large bags: %v, required %v", all, required)
	}
}
