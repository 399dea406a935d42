package parity

import (
	"errors"
	"math"
	"strings"
	"testing"
)

// scaled is an engine that gives the first feature as the only attention
// score's scale, off by a constant.
func scaled(name string, off float32) Engine {
	return Engine{Name: name, Predict: func(x []float32, n int) ([]float32, []float32, error) {
		a := make([]float32, n)
		for i := range a {
			a[i] = x[i*2]
		}
		return []float32{0.5 + off, 0.5 - off}, a, nil
	}}
}

func TestMeasure(t *testing.T) {
	o := Options{Instance: []int{2}, Sizes: []int{1, 3}, Seed: 7}
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
			r, err := Measure([]Engine{scaled("one", 0), scaled("two", 0), scaled("three", c.off)}, o)
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

func TestMeasureSeesNaN(t *testing.T) {
	nan := scaled("two", float32(math.NaN()))
	r, err := Measure([]Engine{scaled("one", 0), nan}, Options{Instance: []int{2}, Sizes: []int{2}})
	if err != nil {
		t.Fatal(err)
	}
	if r.OK {
		t.Error("a NaN passed as agreement")
	}
}

func TestMeasureReportsFailures(t *testing.T) {
	broken := Engine{Name: "broken", Predict: func([]float32, int) ([]float32, []float32, error) {
		return nil, nil, errors.New("out of order")
	}}
	short := Engine{Name: "short", Predict: func([]float32, int) ([]float32, []float32, error) {
		return []float32{1, 0}, nil, nil
	}}
	wide := Engine{Name: "wide", Predict: func(_ []float32, n int) ([]float32, []float32, error) {
		return []float32{1, 0, 0}, make([]float32, n), nil
	}}
	for want, engines := range map[string][]Engine{
		"at least two":                   {scaled("one", 0)},
		"broken on a bag of 2":           {scaled("one", 0), broken},
		"0 attention scores":             {scaled("one", 0), short},
		"one gives 2 classes, wide give": {scaled("one", 0), wide},
	} {
		_, err := Measure(engines, Options{Instance: []int{2}, Sizes: []int{2}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

func TestBagDoesNotDependOnOtherSizes(t *testing.T) {
	a := Bag(Options{Instance: []int{3}, Sizes: []int{1, 4}, Seed: 1}, 1)
	b := Bag(Options{Instance: []int{3}, Sizes: []int{4}, Seed: 1}, 0)
	for i := range a {
		if a[i] != b[i] {
			t.Fatalf("element %d: %g and %g", i, a[i], b[i])
		}
	}
	moved := Bag(Options{Instance: []int{3}, Sizes: []int{4}, Seed: 1, Mean: []float32{1, 2, 3}, Std: []float32{0, 0, 2}}, 0)
	if moved[0] != 1 || moved[1] != 2 || moved[2] == a[2] {
		t.Errorf("mean and deviation are not applied: %v", moved[:3])
	}
}
