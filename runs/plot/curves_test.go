// Figures of comparisons are well-formed SVG with all their labels, and no mark lies outside the axes.

package plot

import (
	"testing"

	"github.com/miplc/miplc/train"
)

// comparisons returns the figures of a made-up experiment.
func comparisons() map[string]func() []byte {
	line := func(name string, values ...float64) Curve {
		c := Curve{Name: name}
		for i, v := range values {
			c.Points = append(c.Points, Point{X: float64(i + 1), Mean: v, Deviation: 0.03 * float64(i)})
		}
		return c
	}
	panels := []CurvePanel{
		{"MNIST-MIPL", []Curve{line("DEMIPL", 0.98, 0.94, 0.71), line("DEMIPL-PR", 0.97, 0.93, 0.52), line("DEMIPL-AV", 0.97,
			0.91, 0.6)}},
		{"Birdsong-MIPL", []Curve{line("DEMIPL", 0.74, 0.7, 0.69, 0.6), line("DEMIPL-AV", 0.7)}},
	}
	var many []Curve
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i"} {
		many = append(many, line(name, 0.5, 0.4+0.01*float64(len(many)), 0.3))
	}
	weights := CurvePanel{"MNIST-MIPL", []Curve{{"r = 1", []Point{{0.0001, 0.9, 0.2}, {0.001, 0.95, 0.01},
		{0.1, 0.8, 0}}}}}
	counts := func(positive, negative int) (list []train.Histogram) {
		for epoch := 1; epoch <= 3; epoch++ {
			c := train.Histogram{Epoch: 10 * epoch, Positive: make([]int, 25), Negative: make([]int, 25)}
			c.Positive[12+4*(epoch-1)], c.Negative[12-4*(epoch-1)], c.Negative[0] = positive, negative, epoch-1
			list = append(list, c)
		}
		return list
	}
	unknown := ScoreRow{"MIPLGP", []train.Histogram{{Epoch: 1, Unknown: []int{0, 1, 2}}}}
	return map[string]func() []byte{
		"over-r": func() []byte {
			return Curves("Variants of the momentum", Axes{"r", "accuracy", false, 1, nil}, panels)
		},
		"over-lambda": func() []byte {
			return Curves("Attention loss", Axes{"weight", "accuracy", true, 1, nil}, []CurvePanel{weights})
		},
		"many": func() []byte {
			return Curves("Nine", Axes{"r", "accuracy", false, 1, nil}, []CurvePanel{{"", many}})
		},
		"categories": func() []byte {
			return Curves("Kinds", Axes{"train.optimizer", "accuracy", false, 1, []string{"sgd", "adam", "a very long name " +
				"of an optimizer", "adamw"}}, panels)
		},
		"one": func() []byte {
			return Curves("One", Axes{"r", "accuracy", false, 1, nil}, []CurvePanel{{"", many[:1]}, {}})
		},
		"dots": func() []byte {
			return Dots("Splits", Axes{"", "accuracy", false, 1, nil}, []CurvePanel{
				{"MNIST-MIPL", []Curve{line("DEMIPL", 0.98, 1, 1),
					line("a very long name of a learner, which does not fit into the "+
						"figure", 0.7), line("baseline", 0.5, 0.5, 0.5)}},
				{"Birdsong-MIPL", []Curve{line("DEMIPL", 0.62), {Name: "other"}, {Name: "baseline"}}},
				{"SIVAL", []Curve{line("DEMIPL", 0.9, 0.8, 0.7, 0.9), {Name: "other"}, line("baseline", 0.95, 0.95)}},
			})
		},
		"rows": func() []byte {
			return AttentionRows("Attention scores", []ScoreRow{{"DEMIPL-MD", counts(40, 300)}, {"DEMIPL", counts(35, 310)},
				unknown})
		},
	}
}

// The figures are well-formed and contain the expected words. No mark is outside the axes.
func TestComparisons(t *testing.T) {
	words := map[string][]string{
		"over-r":      {">Birdsong-MIPL<", ">DEMIPL-AV<", ">accuracy ± SD<", ">r<", ">0.8<", ">4<"},
		"over-lambda": {">0.0001<", ">0.1<", ">r = 1<"},
		"many":        {">i<"},
		"categories":  {">sgd<", ">adamw<", "…<"},
		"dots":        {">Birdsong-MIPL<", ">SIVAL<", ">DEMIPL<", ">baseline<", "…<", ">0.4<", ">1.0<", ">accuracy<"},
		"rows":        {">epoch 10, DEMIPL-MD<", ">epoch 30, DEMIPL<", ">epoch 1, MIPLGP<", ">instances, kind unknown<"},
	}
	checkFigures(t, comparisons, words, "NaN", "Inf", ">1.2<") // a tick outside the axis
}
