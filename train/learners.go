// Interfaces of learners, which are fitted to all bags at once instead of being trained by gradient steps on a graph. A
// fitted model predicts in Go, and as an inference graph from which the ONNX file is written.

package train

import (
	"context"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/graph"
)

// Problem is the input of a fit.
type Problem struct {
	Data  *data.Dataset // raw features; only the training bags are read
	Train []int         // numbers of the training bags, from 0, which must exist
	// Normalization turns features into z-scores; nil: features are used as stored. Models apply it
	// themselves, because they get raw features.
	Normalization *data.Normalization
	Seed          uint64 // of all random draws
}

// Iteration is the progress of a fit after one iteration. Learners report it from the goroutine of the fit: at the
// start (iteration 0), and after every iteration.
type Iteration struct {
	Number int     // from 1; 0 is the start
	Loss   float64 // minimised by the learner, which documents it
	// Confidences are the labelling confidences of the training bags, [len(Train), k]. Rows sum to
	// 1 and are 0 outside the candidates. The slice is valid only during the call. nil if the
	// learner has none.
	Confidences []float64
}

// FittedModel is a fitted learner. Equal problems give equal bits.
type FittedModel interface {
	// Predict returns the class probabilities [k] and attention scores [n] of one bag of n
	// instances with raw features [n, Dim], in float64. Exported files are compared with it.
	Predict(instances []float32, n int) (probabilities, attention []float64, err error)
	// Graph returns the same prediction as an inference graph that includes the normalisation.
	// Its inputs are compile.InInstances and compile.InBagOf, its outputs compile.OutProbabilities [B, k]
	// and compile.OutAttention [N, 1]. The map has the values of the parameters by name, row-major.
	Graph() (*graph.Graph, map[string][]float32, error)
	// Tolerance returns the largest absolute difference from Predict that a float32 engine may have
	// in a probability or score; 0 means export.Tolerance.
	Tolerance() float64
}

// Prediction is the prediction for one bag.
type Prediction struct {
	Probabilities []float64 // [k]
	Attention     []float64 // [n]
	// Sampled are probabilities estimated with random draws, seeded with the seed of the fit. nil
	// if the model cannot sample. Model files predict like Predict, without samples.
	Sampled []float64
}

// Batcher is a model that predicts many bags at once with the engine of its fit, equal to Predict up to float32
// rounding.
type Batcher interface {
	// PredictBags returns the predictions in the order of the bags, with Sampled only if sampled is
	// true.
	PredictBags(ctx context.Context, d *data.Dataset, bags []int, sampled bool) ([]Prediction, error)
}

// BatchInputs starts an inference graph. It declares instances of the given shape and bag_of,
// and normalises the instances. The statistics of the normalisation are added to params.
// z may be nil.
func BatchInputs(b *graph.Builder, instance []int, z *data.Normalization, params map[string][]float32) (x,
	bagOf *graph.Node) {
	x = b.Input(compile.InInstances, graph.Float, rowsOf(graph.N, instance))
	bagOf = b.Input(compile.InBagOf, graph.Int, graph.Shape{graph.N})
	return normalize(b, x, instance, z, params), bagOf
}

// Instances adds the normalised instances to a graph, without bag_of; see BatchInputs.
func Instances(b *graph.Builder, instance []int, z *data.Normalization, params map[string][]float32) *graph.Node {
	return normalize(b, b.Input(compile.InInstances, graph.Float, rowsOf(graph.N, instance)), instance, z, params)
}

func rowsOf(n graph.Dim, instance []int) graph.Shape {
	shape := graph.Shape{n}
	for _, e := range instance {
		shape = append(shape, graph.Dim(e))
	}
	return shape
}

func normalize(b *graph.Builder, x *graph.Node, instance []int, z *data.Normalization,
	params map[string][]float32) *graph.Node {
	if z == nil {
		return x
	}
	params[compile.ParamMean], params[compile.ParamStd] = z.Mean, z.Std
	b.Label("normalize")
	row := rowsOf(1, instance)
	return b.Div(b.Sub(x, b.Param(compile.ParamMean, row)), b.Param(compile.ParamStd, row))
}

// Normalized returns the features of instances as float64, normalised as in a graph of BatchInputs. z may be nil.
func Normalized(instances []float32, z *data.Normalization) []float64 {
	out := make([]float64, len(instances))
	for i, v := range instances {
		out[i] = float64(v)
		if z != nil {
			j := i % len(z.Mean)
			out[i] = (out[i] - float64(z.Mean[j])) / float64(z.Std[j])
		}
	}
	return out
}
