// A temperature divides the logits.

package compile_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/language"
)

// A temperature t changes the probabilities of every model to p^(1/t), normalised, and changes
// nothing else.
func TestTemperature(t *testing.T) {
	programs := map[string]*compile.Program{}
	for _, name := range language.TrainedNames() {
		programs[name] = load(t, name)
	}
	for _, equation := range []string{"exp(z) / sum(exp(z), 1)", "(sigmoid(z) + 1e-3) / sum(sigmoid(z) + 1e-3, 1)"} {
		p, err := parse(t, fmt.Sprintf("name: t\nmodel: {params: {C: [d, k]}, let: {z: \"5 * matmul(bag_mean(X), C)\", p: "+
			"%q}}\nloss: [disambiguation]\n", equation))
		if err != nil {
			t.Fatal(err)
		}
		programs[equation] = p
	}
	for name, p := range programs {
		env := randomEnv(p, p.Infer, []int{3, 1, 2})
		before := eval(t, p.Infer, env)
		for _, temperature := range []float64{0.4, 1, 3} {
			hot, err := p.WithTemperature(temperature)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if err := graph.Verify(hot.Infer); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			after := eval(t, hot.Infer, env)
			checkTemperature(t, name, temperature, before[compile.OutProbabilities], after[compile.OutProbabilities])
			if !near(before[compile.OutAttention], after[compile.OutAttention]) {
				t.Errorf("%s: the temperature changes the attention", name)
			}
		}
	}
}

func checkTemperature(t *testing.T, name string, temperature float64, before, after *graph.Tensor) {
	k := before.Shape[1]
	for bag := range before.Shape[0] {
		sum, total := 0.0, 0.0
		for c := range k {
			sum += math.Pow(before.Data[bag*k+c], 1/temperature)
		}
		for c := range k {
			want, got := math.Pow(before.Data[bag*k+c], 1/temperature)/sum, after.Data[bag*k+c]
			total += got
			if math.Abs(want-got) > 1e-9 {
				t.Errorf("%s at temperature %v: probability %v, want %v", name, temperature, got, want)
			}
		}
		if math.Abs(total-1) > 1e-9 {
			t.Errorf("%s at temperature %v: the probabilities add up to %v", name, temperature, total)
		}
	}
}
