// Draws of settings depend only on the seed, the keys and their values.

package language

import (
	"reflect"
	"strconv"
	"testing"
)

func TestDraw(t *testing.T) {
	axes := []Axis{
		{Key: "train.lr", Range: &Range{Form: "log", Low: 1e-5, High: 0.3}},
		{Key: "train.momentum", Range: &Range{Form: "uniform", Low: 0, High: 0.95}},
		{Key: "train.epochs", Range: &Range{Form: "int", Low: 20, High: 22}},
		{Key: "loss.attention", Values: []Assignment{{Key: "loss.attention", Value: "0.1"},
			{Key: "loss.attention", Value: "1"}}},
	}
	list := Draw(axes, 1, 500)
	counts := map[string]int{}
	for _, one := range list {
		for i, s := range one {
			v, err := strconv.ParseFloat(s.Value, 64)
			if err != nil || axes[i].Range != nil && (v < axes[i].Range.Low || v > axes[i].Range.High) {
				t.Errorf("%s, %v", s, err)
			}
		}
		lr, _ := strconv.ParseFloat(one[0].Value, 64)
		counts["small"] += map[bool]int{true: 1}[lr < 1e-5*173.2] // the middle of the logarithms
		counts[one[2].String()]++
		counts[one[3].String()]++
	}
	for _, half := range []string{"small", "loss.attention=0.1", "loss.attention=1"} {
		if n := counts[half]; n < 200 || n > 300 {
			t.Errorf("%s: %d of 500", half, n)
		}
	}
	for _, third := range []string{"20", "21", "22"} {
		if n := counts["train.epochs="+third]; n < 120 || n > 215 {
			t.Errorf("%s: %d of 500", third, n)
		}
	}
	if fewer := Draw(axes, 1, 20); !reflect.DeepEqual(fewer, list[:20]) {
		t.Error("the first settings depend on their number")
	}
	if other := Draw(axes, 2, 20); reflect.DeepEqual(other, list[:20]) {
		t.Error("the settings do not depend on the seed")
	}
	for i, one := range Draw(axes[:1], 1, 20) {
		if one[0] != list[i][0] {
			t.Errorf("setting %d: %s depends on the other keys, there it is %s", i+1, one[0], list[i][0])
		}
	}
}

// A grid with few settings gives each of them once.
func TestDrawAll(t *testing.T) {
	a := Axis{Key: "train.epochs", Range: &Range{Form: "int", Low: 1, High: 5}}
	if list := Draw([]Axis{a}, 1, 100); len(list) != 5 {
		t.Errorf("%v", list)
	}
}

// Rounding does not leave a range, however narrow it is.
func TestRangeRounding(t *testing.T) {
	for _, r := range []Range{{Form: "log", Low: 0.012345, High: 0.012346}, {Form: "uniform", Low: 100.00012,
		High: 100.00013},
		{Form: "uniform", Low: -1e9, High: 1e9}, {Form: "log", Low: 1e-300, High: 1e300}, {Form: "int", Low: -3, High: -2}} {
		for _, u := range []float64{0, 0.3, 0.999999, 1 - 1.0/(1<<53)} {
			v, err := strconv.ParseFloat(rangeForms[r.Form](&r, u), 64)
			if err != nil || v < r.Low || v > r.High {
				t.Errorf("%s at %v: %v, %v", &r, u, v, err)
			}
		}
	}
}
