// Package compile lowers a spec to graphs: one for inference, one for training.
package compile

import (
	"slices"

	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/language"
)

// Names of the inputs and outputs of the graphs. Engines bind by them.
const (
	InInstances    = "instances"  // [N, ...]; raw features in Infer, normalised ones in Train
	InBagOf        = "bag_of"     // [N] int
	InCandidates   = "candidates" // [B, k] 1 for candidate labels, else 0
	InLabelWeights = "weights"    // [B, k] label weights after the previous epoch
	InLambda       = "lambda"     // [] momentum of the label weights in this epoch
	InEpoch        = "epoch"      // [] number t of the epoch
	InEpochs       = "epochs"     // [] number T of epochs

	InClassWeights = "class_weights" // [1, k] factors of the classes in the loss, with train.class_weights

	OutProbabilities = "probabilities" // [B, k]
	OutAttention     = "attention"     // [N, 1] attention scores a of Eq. 2

	OutClassAttention = "class_attention" // [N, k] attention scores of each class, only in Infer and if the spec has them

	OutLoss         = "loss"        // [] the full loss of Eq. 8
	OutLabelWeights = "new_weights" // [B, k] label weights of this epoch
	TermPrefix      = "loss."       // [] one output per loss term, unweighted, e.g. loss.attention
	StatisticPrefix = "next."       // value of a statistic after the step, e.g. next.batch_norm1.mean
)

// Buffers of the inference graph: parameters that no gradient changes.
const (
	ParamMean = "normalize.mean" // mean and deviation of the features, shape of one instance
	ParamStd  = "normalize.std"
)

// Signature is the shape of an instance and the number of classes. A program depends on nothing else
// in the data.
type Signature struct {
	Instance []int // shape of one instance
	Classes  int
}

// Init describes the initial values of a parameter.
type Init struct {
	Kind  string // "uniform" in +-Scale, "normal" with standard deviation Scale, "constant" of value Scale
	Scale float64
}

// Param is a learned parameter of a program.
type Param struct {
	Name  string
	Shape []int
	Init  Init
	// Statistic marks a running statistic: the training graph has its next value as an output,
	// StatisticPrefix and its name, and no gradient changes it.
	Statistic bool
}

// hasStatistics reports whether the program has running statistics.
func (p *Program) hasStatistics() bool {
	return slices.ContainsFunc(p.Params, func(q Param) bool { return q.Statistic })
}

// Mask is a dropout mask, or the random draws of another function: an input of the training
// graph. An element is 0 with probability Drop, else 1/(1-Drop).
type Mask struct {
	Name     string      // also the name of its random stream
	Shape    graph.Shape // [N, ...], [B, ...], or fixed: the same mask for all bags
	Drop     float64
	Function string // function of the spec language that uses it: dropout, random, uniform or normal
}

// Scale returns 1/(1-Drop), the value of kept elements.
func (m *Mask) Scale() float32 { return float32(1 / (1 - m.Drop)) }

// MaskScales returns the values of kept elements of the dropout masks by name.
func (p *Program) MaskScales() map[string]float32 {
	scales := map[string]float32{}
	for i := range p.Masks {
		scales[p.Masks[i].Name] = p.Masks[i].Scale()
	}
	return scales
}

// Program is a compiled spec.
type Program struct {
	Spec      *language.Spec
	Signature Signature
	Params    []Param // in order of first use; the order of the flat parameter vector
	Masks     []Mask
	Terms     []string // of the loss, in the order of the spec
	Attends   bool     // the spec defines attention scores
	Warnings  []Warning
	Normalize bool // Infer has the parameters ParamMean and ParamStd
	// Infer: instances, bag_of -> probabilities, attention, class_attention if the spec names it.
	Infer *graph.Graph
	// Train: instances, bag_of, candidates, weights, lambda (and epoch, epochs,
	// class_weights where used), masks -> loss, its terms, probabilities, attention and, unless
	// WeightUpdate has them, new_weights.
	Train *graph.Graph
	// WeightUpdate computes new_weights from the inputs of Train and the parameters after the step. It is
	// nil unless weights.order is after_step.
	WeightUpdate *graph.Graph
}

// HasImages reports whether the model computes convolutions.
func (p *Program) HasImages() bool { return len(p.Train.ByOp(graph.OpConv2D)) > 0 }

// WeighsClasses reports whether the training graph has the input InClassWeights.
func (p *Program) WeighsClasses() bool { return p.Spec.Train.ClassWeights.V.Any() }

// NormalizationParams returns the names of the buffers of the inference graph: ParamMean and
// ParamStd if the program normalises.
func (p *Program) NormalizationParams() []string {
	if p.Normalize {
		return []string{ParamMean, ParamStd}
	}
	return nil
}
