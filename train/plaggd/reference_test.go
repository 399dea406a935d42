// The learner against an independent implementation.

package plaggd

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/train"
)

// reference is one problem of testdata/reference.py with its solution.
type reference struct {
	Vector        Vector
	Neighbors     int `json:"neighbours"`
	Lambda        float64
	Mu            float64
	Gamma         float64
	Iterations    int
	Bags          [][][]float32 // the training bags, then others
	Train         int
	Candidates    [][]uint8
	Width         float64
	Start         struct{ Weights, Confidences [][]float64 }
	Weights       [][]float64 // the matrix S of the last round
	Confidences   [][]float64
	Loss          float64
	Probabilities [][]float64 // of the other bags
}

func references(t *testing.T) []reference {
	t.Helper()
	text, err := os.ReadFile("testdata/reference.json")
	if err != nil {
		t.Fatal(err)
	}
	var list []reference
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	return list
}

func (r *reference) settings() Settings {
	return Settings{r.Vector, r.Neighbors, 0, r.Gamma, r.Lambda, r.Mu, r.Iterations}
}

func (r *reference) problem() *train.Problem {
	d := &data.Dataset{Name: "reference", Shape: []int{len(r.Bags[0][0])}, Classes: len(r.Candidates[0]),
		Offsets: []int{0}}
	p := &train.Problem{Data: d}
	for i, bag := range r.Bags[:r.Train] {
		for _, x := range bag {
			d.Instances = append(d.Instances, x...)
		}
		d.Offsets = append(d.Offsets, d.Offsets[i]+len(bag))
		d.Candidates = append(d.Candidates, r.Candidates[i]...)
		p.Train = append(p.Train, i)
	}
	return p
}

func flat(bag [][]float32) []float32 {
	var out []float32
	for _, x := range bag {
		out = append(out, x...)
	}
	return out
}

// near compares with the result of the reference, whose own error is about 1e-9.
func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.IsNaN(got) || math.Abs(got-want) > 1e-6*math.Max(1, math.Abs(want)) {
		t.Errorf("%s is %.9g, the independent method has %.9g", what, got, want)
	}
}

func nearRows(t *testing.T, what string, got func(i, j int) float64, want [][]float64) {
	t.Helper()
	for i, row := range want {
		for j, v := range row {
			near(t, fmt.Sprintf("%s [%d, %d]", what, i, j), got(i, j), v)
		}
	}
}

// weight returns S[i, j].
func (g *graphOf) weight(i, j int) float64 {
	for a, n := range g.neighbors[i] {
		if n == j {
			return g.weights[i][a]
		}
	}
	return 0
}

// Every step of the learner agrees with an independent method.
func TestAgainstReference(t *testing.T) {
	for n, r := range references(t) {
		t.Run(fmt.Sprint(n+1), func(t *testing.T) {
			p := r.problem()
			m, _ := newModel(r.settings(), p)
			f := &fit{ctx: context.Background(), set: r.settings(), candidates: candidates(p)}
			if err := f.start(m); err != nil {
				t.Fatal(err)
			}
			near(t, "the width", f.ridge.width, r.Width)
			nearRows(t, "weight at the start", f.graph.weight, r.Start.Weights)
			nearRows(t, "confidence at the start", f.confidences.At, r.Start.Confidences)
			for range r.Iterations {
				if err := f.round(); err != nil {
					t.Fatal(err)
				}
			}
			nearRows(t, "weight", f.graph.weight, r.Weights)
			nearRows(t, "confidence", f.confidences.At, r.Confidences)
			near(t, "the loss", f.loss(), r.Loss)
			m.keep(f.ridge, &f.solution)
			var found [][]float64
			for _, bag := range r.Bags[r.Train:] {
				probabilities, attention, err := m.Predict(flat(bag), len(bag))
				if err != nil || len(attention) != len(bag) || attention[0] != 1/float64(len(bag)) {
					t.Fatalf("attention %v, error %v", attention, err)
				}
				found = append(found, probabilities)
			}
			nearRows(t, "probability", func(i, j int) float64 { return found[i][j] }, r.Probabilities)
		})
	}
}

// The regression solves its optimality conditions.
func TestRidge(t *testing.T) {
	r := references(t)[0]
	m, _ := newModel(r.settings(), r.problem())
	ridge, err := newRidge(context.Background(), m, r.settings())
	if err != nil {
		t.Fatal(err)
	}
	p := uniform(candidates(r.problem()), m.classes)
	s := ridge.solve(p)
	n, k := p.Dims()
	d2 := distances2(m.vectors)
	var outputs, square mat.Dense
	kernel := mat.NewDense(n, n, nil)
	kernel.Apply(func(i, j int, _ float64) float64 { return math.Exp(-d2.At(i, j) / (2 * ridge.width * ridge.width)) },
		kernel)
	outputs.Mul(kernel, s.coefficients)
	square.Mul(s.coefficients.T(), &outputs)
	near(t, "the norm", s.norm2, mat.Trace(&square))
	for c := range k {
		near(t, "the sum of the coefficients", mat.Sum(s.coefficients.ColView(c)), 0)
		for i := range n {
			near(t, "an output", s.outputs.At(i, c), outputs.At(i, c)+s.bias[c])
			near(t, "a residual", p.At(i, c)-s.outputs.At(i, c), ridge.gamma*s.coefficients.At(i, c))
		}
	}
}
