// Package learners is the frame for what is not trained by gradient steps on a
// graph: a learner is fitted to bags as a whole and leaves a model that
// predicts in Go and as an inference graph, from which the ONNX file is made.
package learners

import (
	"context"
	"fmt"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/graph"
)

// Problem is the input of a fit.
type Problem struct {
	Data  *data.Dataset // raw features; bags that do not train are not looked at
	Train []int         // numbers of the training bags, from 0
	// Normalization turns features into z-scores; nil: they are used as stored.
	// Models apply it themselves, since they are given raw features.
	Normalization *data.Normalization
	Seed          uint64 // of all that is drawn at random
}

// Check reports a problem that no learner can solve.
func (p *Problem) Check() error {
	if len(p.Train) == 0 {
		return fmt.Errorf("no bag of %s is left for training: change data.split", p.Data.Name)
	}
	for _, b := range p.Train {
		if b < 0 || b >= p.Data.Bags() {
			return fmt.Errorf("the split names bag %d; %s has bags 1 to %d", b+1, p.Data.Name, p.Data.Bags())
		}
	}
	return nil
}

// Learner is one configured kind of learner.
type Learner interface {
	// Name is the kind as in learner.kind of a spec.
	Name() string
	// Iterations is the number of steps that Fit is going to report.
	Iterations() int
	// Fit fits a model; the same problem gives the same bits. observe is called
	// from the goroutine of Fit after the start (iteration 0) and after every
	// iteration. When ctx ends Fit returns soon, with an error that wraps that
	// of ctx. Nothing is written to files.
	Fit(ctx context.Context, p *Problem, observe func(Iteration)) (Model, error)
}

// Iteration is the progress of a fit after one iteration.
type Iteration struct {
	Number int     // from 1; 0 is the start
	Loss   float64 // what the learner makes small; each kind documents its own
	// Confidences are the labelling confidences of the training bags,
	// [len(Train), k], rows sum to 1 and are 0 outside of the candidates. The
	// slice is valid during the call alone. nil where there are none.
	Confidences []float64
}

// Model is a fitted learner.
type Model interface {
	// Predict gives the class probabilities [k] and attention scores [n] of one
	// bag of n instances with raw features [n, Dim], in float64: the reference
	// that exported files are compared with.
	Predict(instances []float32, n int) (probabilities, attention []float64, err error)
	// Graph gives the same prediction as an inference graph: inputs
	// compile.InInstances and compile.InBagOf, outputs
	// compile.OutProbabilities [B, k] and compile.OutAttention [N, 1], the
	// normalisation inside. The values of its parameters come by name,
	// row-major.
	Graph() (*graph.Graph, map[string][]float32, error)
	// Tolerance is how far a float32 engine may be from Predict, as the largest
	// absolute difference of a probability or score; 0: parity.Tolerance.
	Tolerance() float64
}

// Prediction is the prediction for one bag.
type Prediction struct {
	Probabilities []float64 // [k]
	Attention     []float64 // [n]
	// Sampled are the probabilities by random draws, with a seed of the fit, of a
	// model that can predict so too. Its files predict as Predict does.
	Sampled []float64
}

// Batcher is a model that predicts many bags at once on the device of its fit, equal to
// Predict up to float32 rounding.
type Batcher interface {
	// PredictBags gives the predictions in the order of the bags; those by draws
	// only if they are asked for.
	PredictBags(ctx context.Context, d *data.Dataset, bags []int, sampled bool) ([]Prediction, error)
}

// Inputs starts an inference graph. It declares instances of the given shape and bag_of,
// and normalises the instances. The statistics of the normalisation are added to params.
// z may be nil.
func Inputs(b *graph.Builder, instance []int, z *data.Normalization, params map[string][]float32) (x, bagOf *graph.Node) {
	x = b.Input(compile.InInstances, graph.Float, rowsOf(graph.N, instance))
	bagOf = b.Input(compile.InBagOf, graph.Int, graph.Shape{graph.N})
	return normalize(b, x, instance, z, params), bagOf
}

// Instances starts a graph like Inputs, without bag_of.
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

func normalize(b *graph.Builder, x *graph.Node, instance []int, z *data.Normalization, params map[string][]float32) *graph.Node {
	if z == nil {
		return x
	}
	params[compile.ParamMean], params[compile.ParamStd] = z.Mean, z.Std
	b.Label("normalize")
	row := rowsOf(1, instance)
	return b.Div(b.Sub(x, b.Param(compile.ParamMean, row)), b.Param(compile.ParamStd, row))
}

// EqualAttention returns the attention output of a model without scores: 1/n for every
// instance of a bag of n.
func EqualAttention(b *graph.Builder, bagOf *graph.Node) *graph.Node {
	return b.SegmentSoftmax(b.Fill(0, graph.Shape{graph.N, 1}), bagOf)
}

// Normalized returns the features of instances as float64, normalised as in a graph of
// Inputs. z may be nil.
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
