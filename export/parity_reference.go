// The reference of all comparisons: float64 predictions by the interpreter, and how much float32 rounding changes them.

package export

import (
	"maps"
	"math"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/ndarray"
)

// Reference predicts with the inference graph of a program in float64, with the interpreter. It can
// estimate the effect of rounding on a prediction.
type Reference struct {
	program *compile.Program
	params  map[string]*graph.Tensor
}

// NewReference returns the reference for a program with parameters by name, row-major.
func NewReference(p *compile.Program, params map[string][]float32) *Reference {
	r := &Reference{p, map[string]*graph.Tensor{}}
	for _, n := range p.Infer.ByOp(graph.OpParam) {
		r.params[n.Name] = graph.NewTensor(n.Shape.Concrete(0, 0), ndarray.Convert[float64](params[n.Name])...)
	}
	return r
}

// Engine returns the reference as an engine for Compare.
func (r *Reference) Engine(name string) Predictor {
	return Predictor{Name: name, Many: true, Predict: func(x []float32, sizes []int) ([]float32, []float32, error) {
		p, a, err := r.predict(x, sizes, nil)
		return ndarray.Convert[float32](p), ndarray.Convert[float32](a), err
	}}
}

// predict returns probabilities [bags, k] and attention [instances] of bags of the given sizes, for one
// bag with the class attention [k, instances] after it. perturb is as in graph.Env.
func (r *Reference) predict(x []float32, sizes []int, perturb func([]float64)) (probabilities, attention []float64,
	err error) {
	bagOf := BagOf(sizes)
	env := graph.Env{N: len(bagOf), B: len(sizes), Perturb: perturb, Values: map[string]*graph.Tensor{
		compile.InInstances: graph.NewTensor(append([]int{len(bagOf)}, r.program.Signature.Instance...),
			ndarray.Convert[float64](x)...),
		compile.InBagOf: graph.NewInts(bagOf...),
	}}
	maps.Copy(env.Values, r.params)
	out, err := graph.Eval(r.program.Infer, env)
	if err != nil {
		return nil, nil, err
	}
	attention = out[compile.OutAttention].Data
	if classes := out[compile.OutClassAttention]; classes != nil && len(sizes) == 1 {
		k := classes.Shape[1]
		for c := range k {
			for i := range sizes[0] {
				attention = append(attention, classes.Data[i*k+c])
			}
		}
	}
	return out[compile.OutProbabilities].Data, attention, nil
}

// roundings is the number of random draws of Rounding.
const roundings = 4

// Rounding returns how much the probabilities and the attention scores of one bag change if every
// value of the graph, including inputs and parameters, is changed randomly up or down by half a unit
// in the last place of float32. It is a lower bound for the accuracy of float32 engines.
func (r *Reference) Rounding(x []float32, n int) (probabilities, attention float64, err error) {
	one := []int{n}
	p, a, err := r.predict(x, one, nil)
	if err != nil {
		return 0, 0, err
	}
	for draw := range uint64(roundings) {
		rng := ndarray.NewStream(draw, "parity rounding")
		q, b, err := r.predict(x, one, func(v []float64) {
			for i := range v {
				v[i] *= 1 + float64(2*rng.IntN(2)-1)/(1<<24)
			}
		})
		if err != nil {
			return 0, 0, err
		}
		probabilities, attention = max(probabilities, furthest(p, q)), max(attention, furthest(a, b))
	}
	return probabilities, attention, nil
}

// furthest returns the largest absolute difference. NaN on either side counts as the largest float,
// because JSON has no infinity.
func furthest[T float32 | float64](x, y []T) float64 {
	worst := 0.0
	for i := range x {
		d := math.Abs(float64(x[i]) - float64(y[i]))
		if math.IsNaN(d) || math.IsInf(d, 0) {
			return math.MaxFloat64
		}
		worst = math.Max(worst, d)
	}
	return worst
}
