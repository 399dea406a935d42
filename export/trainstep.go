// One training step as an ONNX model, for training without miplc.

package export

import (
	"crypto/sha256"
	"fmt"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/compile/onnx"
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/contract"
	"github.com/miplc/miplc/internal/fileio"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/onnxpb"
)

// stepOpset is the oldest opset that supports all training steps: gradients of overlapping poolings
// need the additive scatter that it introduced.
const stepOpset = 16

// manyBagsOpset is the oldest opset of steps with more than manyBags bags: it has a scatter for the
// maxima of the bags, which otherwise need memory for all instances once for each bag.
const (
	manyBagsOpset = 18
	manyBags      = 64
)

// TrainStep returns the ONNX model of one training step of a program: forward pass, gradient and
// update of the parameters. g is the graph from compile.StepOfSpec. The metadata describe
// them and the layout of the flat vectors, and contain the hash of initial, the flat vectors of
// initial parameters. Batches may have any size.
//
// The caller sets Version, SpecSHA256, Seed and the file of the initial parameters in step; the
// returned step has all fields.
func TrainStep(p *compile.Program, g *graph.Graph, initial []float32, step contract.Step) (*onnxpb.ModelProto,
	*contract.Step, error) {
	opset := max(p.Spec.Export.Opset.V, stepOpset)
	if p.Spec.Train.Batch.V > manyBags {
		opset = max(opset, manyBagsOpset)
	}
	m, err := onnx.Lower(g, onnx.Options{Opset: opset})
	if err != nil {
		return nil, nil, err
	}
	m.ProducerVersion = step.Version
	m.Graph.Name = p.Spec.Name.V + " training step"
	m.DocString = "One training step: feed each new state vector, such as new_params, back as the one that it " +
		"replaces, and new_weights as weights of the same bags in the next epoch."
	describe(&step, p, m.Graph)
	step.Initial.SHA256 = fmt.Sprintf("%x", sha256.Sum256(ndarray.AppendBytes(nil, initial)))
	if err := step.Put(m); err != nil {
		return nil, nil, err
	}
	if err := contract.Structure(m); err != nil {
		return nil, nil, fmt.Errorf("bug: the training step: %w", err)
	}
	return m, &step, nil
}

// CheckedStep writes a training step to a temporary file, reads it back and calls verify, which
// compares it with the interpreter. The caller must call Commit on the result.
func CheckedStep(path string, model *onnxpb.ModelProto, verify func(tmpPath string) error) (*fileio.File, error) {
	f, err := aside(path, model)
	if err != nil {
		return nil, err
	}
	if err := verify(f.Name()); err != nil {
		f.Discard()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

// describe adds the descriptions of the inputs, outputs and parameters of a step.
func describe(s *contract.Step, p *compile.Program, g *onnxpb.GraphProto) {
	t := &p.Spec.Train
	s.State = p.StateVectors()
	s.Size, s.Training = p.FlatSize(), contract.StepTraining{
		Epochs: t.Epochs.V, Batch: t.Batch.V, Optimizer: t.Optimizer.V, LR: t.LR.V, LRSchedule: t.Schedule.V,
		Warmup: t.Warmup.V,
		Lambda: p.Spec.Weights.Schedule.V, FirstEpoch: p.Spec.Weights.FirstEpoch.V,
	}
	at := 0
	for _, q := range p.Params {
		shape := append([]int{}, q.Shape...) // [] instead of null for a scalar
		s.Params = append(s.Params, contract.StepParam{Name: q.Name, Shape: shape, Offset: at, Init: q.Init.Kind,
			Scale: q.Init.Scale})
		at += ndarray.Size(q.Shape)
	}
	s.Inputs, s.Outputs = stepValues(p, g.Input), stepValues(p, g.Output)
}

func stepValues(p *compile.Program, ports []*onnxpb.ValueInfoProto) (values []contract.StepValue) {
	for _, port := range ports {
		v := contract.StepValue{Name: port.GetName(), Type: "float32", Shape: []any{}, Meaning: meaning(p, port.GetName())}
		tensor := port.GetType().GetTensorType()
		if tensor.GetElemType() == int32(onnxpb.TensorProto_INT64) {
			v.Type = "int64"
		}
		for _, d := range tensor.GetShape().GetDim() {
			if symbol := d.GetDimParam(); symbol != "" {
				v.Shape = append(v.Shape, symbol)
			} else {
				v.Shape = append(v.Shape, int(d.GetDimValue()))
			}
		}
		values = append(values, v)
	}
	return values
}

// meanings describes the inputs and outputs that all steps have.
var meanings = map[string]string{
	compile.InParams:       "all learned parameters, concatenated",
	compile.InVelocity:     "momentum of the optimizer, laid out as params; zeros before the first step",
	compile.InFirstMoment:  "running mean of the gradients, laid out as params; zeros before the first step",
	compile.InSecondMoment: "running mean of the squared gradients, laid out as params; zeros before the first step",
	compile.InAccumulated: "sum of gradient_share times the gradients of the steps since the last update, laid out " +
		"as params; zeros before the first step",
	compile.InGradientShare: "1 / n in every step of an update that averages the gradients of n steps",
	compile.InUpdateNow: "1 in the last step of an update, else 0: the parameters and the state of the optimizer " +
		"then stay as they are",
	compile.InClassWeights: "factors of the classes in the loss terms that train.class_weights weighs",
	compile.InLR:           "learning rate of the step",
	compile.InBagOf:        "bag of each instance, 0 to B-1, ascending",
	compile.InCandidates:   "1 for the candidate labels of a bag, else 0",
	compile.InLabelWeights: "label weights of the bags from their last step; before the first one 1/c on each of c " +
		"candidates, else 0",
	compile.InLambda:         "momentum of the label weights in this epoch",
	compile.InEpoch:          "number t of the epoch",
	compile.InEpochs:         "number T of epochs",
	compile.OutProbabilities: "class probabilities of the bags, before the update",
	compile.OutAttention:     "attention scores of the instances, before the update",
	compile.OutLoss:          "the whole loss, mean over the bags, before the update",
	compile.OutLabelWeights:  "new label weights of the bags: feed them as weights when the bags come again",
}

func meaning(p *compile.Program, name string) string {
	if name == compile.InInstances {
		if p.Normalize {
			return "features of the instances, bag after bag, normalised: (x - mean) / deviation of the training instances, " +
				"feature by feature"
		}
		return "features of the instances, bag after bag"
	}
	for _, term := range p.Terms {
		if name == compile.TermPrefix+term {
			return "the term " + term + " of the loss, unweighted"
		}
	}
	for _, m := range p.Masks {
		if m.Name == name {
			values := fmt.Sprintf("0 with probability %g, else %g", m.Drop, 1/(1-m.Drop))
			if m.Function != "dropout" {
				return "random draws for the function " + m.Function + ": " + values
			}
			return "dropout mask: " + values + "; all 1 switches dropout off"
		}
	}
	for _, vector := range p.StateVectors() {
		if name == compile.UpdatedName(vector) {
			return vector + " after the update"
		}
	}
	switch t := &p.Spec.Train; name {
	case compile.InFirstCorrection:
		return fmt.Sprintf("1 / (1 - %v^n) in the n-th update, from 1, computed in float64", t.Beta1.V)
	case compile.InSecondCorrection:
		return fmt.Sprintf("1 / sqrt(1 - %v^n) in the n-th update, from 1, computed in float64", t.Beta2.V)
	}
	return meanings[name]
}
