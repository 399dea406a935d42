// Combinations of values.

package language

import (
	"fmt"
	"testing"
)

func TestCombinations(t *testing.T) {
	axes := [][]string{{"a", "b"}, {"1", "2", "3"}}
	if got := fmt.Sprint(Combinations(axes)); got != "[[a 1] [a 2] [a 3] [b 1] [b 2] [b 3]]" {
		t.Error(got)
	}
	if got := Combinations[string](nil); len(got) != 1 || len(got[0]) != 0 {
		t.Errorf("without axes: %v", got)
	}
	if n := CountCombinations(axes, 100); n != 6 {
		t.Errorf("%d combinations", n)
	}
	many := make([][]int, 40) // 10^40 overflows any integer
	for i := range many {
		many[i] = make([]int, 10)
	}
	if n := CountCombinations(many, 1000); n != 1001 {
		t.Errorf("%d combinations of 10^40, with a limit of 1000", n)
	}
	if n := CountCombinations([][]int{make([]int, 10), make([]int, 100)}, 1000); n != 1000 {
		t.Errorf("%d combinations of 10 by 100", n)
	}
}
