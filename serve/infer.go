package serve

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/miplc/miplc/export/contract"
	"github.com/miplc/miplc/internal/extent"
	"github.com/miplc/miplc/internal/width"
	"github.com/miplc/miplc/runtime"
	"github.com/miplc/miplc/serve/oip"
)

// Datatypes of the protocol that bags have.
const (
	fp32   = "FP32"
	int64s = "INT64"
)

// Parameters of outputs that would change what they mean.
const (
	classification = "classification"
	sharedMemory   = "shared_memory_region"
)

// tensor describes an input or output; -1 is a length that requests choose.
type tensor = oip.ModelMetadataResponse_TensorMetadata

// signature gives the tensors of a model, those of its file.
func signature(info runtime.Info) (inputs, outputs []*tensor) {
	in, out := contract.Signature(info.Contract, info.InputShape, len(info.Classes))
	return tensorsOf(in), tensorsOf(out)
}

func tensorsOf(described []contract.Tensor) []*tensor {
	tensors := make([]*tensor, len(described))
	for i, d := range described {
		tensors[i] = &tensor{Name: d.Name, Datatype: map[string]string{"float32": fp32, "int64": int64s}[d.Type], Shape: d.Dims}
	}
	return tensors
}

func (s *Server) modelMetadata(name, number string) (*oip.ModelMetadataResponse, error) {
	v, done, err := s.models.use(name, number)
	if err != nil {
		return nil, err
	}
	defer done()
	inputs, outputs := signature(v.info)
	return &oip.ModelMetadataResponse{
		Name: v.name, Versions: s.models.versions(v.name), Platform: "onnx_onnxv1", Inputs: inputs, Outputs: outputs,
	}, nil
}

// infer answers an inference request of either protocol. Tensors of the answer are raw.
func (s *Server) infer(ctx context.Context, req *oip.ModelInferRequest) (*oip.ModelInferResponse, error) {
	v, done, err := s.models.use(req.ModelName, req.ModelVersion)
	if err != nil {
		return nil, err
	}
	defer done()
	bags, err := s.bagsOf(v, req)
	if err != nil {
		return nil, err
	}
	predictions, err := v.predict(ctx, bags)
	if err != nil {
		return nil, err
	}
	answer := &oip.ModelInferResponse{ModelName: v.name, ModelVersion: v.number(), Id: req.Id}
	return answer, addOutputs(answer, v.info, req.Outputs, predictions)
}

// predict is that of the queue, with errors of the bag told from those of the server.
func (v *version) predict(ctx context.Context, bags []runtime.Bag) ([]runtime.Prediction, error) {
	all, err := v.queue.predict(ctx, bags)
	switch {
	case err == nil:
		return all, nil
	case errors.Is(err, runtime.ErrEmptyBag), errors.Is(err, runtime.ErrBagShape), errors.Is(err, runtime.ErrNotFinite):
		return nil, status.Error(codes.InvalidArgument, err.Error())
	case errors.Is(err, context.DeadlineExceeded):
		return nil, status.Error(codes.DeadlineExceeded, "the prediction was not ready in time")
	case errors.Is(err, context.Canceled):
		return nil, status.Error(codes.Canceled, "the client has gone")
	}
	return nil, err
}

// bagsOf reads the bags of a request.
func (s *Server) bagsOf(v *version, req *oip.ModelInferRequest) ([]runtime.Bag, error) {
	inputs, _ := signature(v.info)
	given, err := match(inputs, req)
	if err != nil {
		return nil, err
	}
	n := int(given[0].Shape[0])
	if err := s.checkSize(n); err != nil {
		return nil, err
	}
	values, err := elements(given[0], given[0].Contents.GetFp32Contents())
	if err != nil {
		return nil, err
	}
	if len(given) == 1 {
		return []runtime.Bag{{Instances: values, N: n}}, nil
	}
	bagOf, err := elements(given[1], given[1].Contents.GetInt64Contents())
	if err != nil {
		return nil, err
	}
	return split(values, bagOf, extent.Size(v.info.InputShape))
}

// checkSize refuses bags that are larger than the operator wants them.
func (s *Server) checkSize(instances int) error {
	if instances > s.o.Instances {
		return status.Errorf(codes.InvalidArgument, "a bag of %d instances: this server takes at most %d", instances, s.o.Instances)
	}
	return nil
}

// input is a tensor of a request with its raw contents, if it has them.
type input struct {
	*oip.ModelInferRequest_InferInputTensor
	raw []byte
}

// match finds the tensors of a signature in a request, in its order.
func match(want []*tensor, req *oip.ModelInferRequest) ([]input, error) {
	if n := len(req.RawInputContents); n != 0 && n != len(req.Inputs) {
		return nil, status.Errorf(codes.InvalidArgument, "%d inputs and raw contents of %d: all are raw or none is", len(req.Inputs), n)
	}
	found := make([]input, len(want))
	for i, in := range req.Inputs {
		at := slices.IndexFunc(want, func(t *tensor) bool { return t.Name == in.GetName() })
		if at < 0 {
			return nil, status.Errorf(codes.InvalidArgument, "there is no input %q; the model has %s", in.GetName(), namesOf(want))
		}
		t := want[at]
		switch {
		case found[at].ModelInferRequest_InferInputTensor != nil:
			return nil, status.Errorf(codes.InvalidArgument, "input %q is given twice", t.Name)
		case in.Datatype != t.Datatype:
			return nil, status.Errorf(codes.InvalidArgument, "input %q has datatype %q, the model takes %s", t.Name, in.Datatype, t.Datatype)
		case len(in.Shape) != len(t.Shape) || !slices.Equal(in.Shape[1:], t.Shape[1:]) || in.Shape[0] < 0 || in.Shape[0] > math.MaxInt32:
			return nil, status.Errorf(codes.InvalidArgument, "input %q has shape %v, the model takes %v (-1: any number)", t.Name, in.Shape, t.Shape)
		}
		found[at].ModelInferRequest_InferInputTensor = in
		if req.RawInputContents != nil {
			found[at].raw = req.RawInputContents[i]
		}
	}
	for i, f := range found {
		if f.ModelInferRequest_InferInputTensor == nil {
			return nil, status.Errorf(codes.InvalidArgument, "input %q is missing", want[i].Name)
		}
	}
	return found, nil
}

// elements are the contents of an input, typed or raw.
func elements[T float32 | int64](in input, typed []T) ([]T, error) {
	count := extent.Size(in.Shape)
	if in.raw == nil {
		if len(typed) != count {
			return nil, status.Errorf(codes.InvalidArgument, "input %q has %d values, its shape %v needs %d", in.Name, len(typed), in.Shape, count)
		}
		return typed, nil
	}
	if size := count * binary.Size(T(0)); len(in.raw) != size {
		return nil, status.Errorf(codes.InvalidArgument, "input %q has %d bytes, its shape %v needs %d", in.Name, len(in.raw), in.Shape, size)
	}
	return width.FromBytes[T](in.raw), nil
}

// split cuts instances of d values each into bags.
func split(values []float32, bagOf []int64, d int) ([]runtime.Bag, error) {
	if len(bagOf)*d != len(values) {
		return nil, status.Errorf(codes.InvalidArgument, "%s names the bags of %d instances, %s has %d", contract.BagOf, len(bagOf), contract.Instances, len(values)/max(d, 1))
	}
	if len(bagOf) == 0 {
		return nil, status.Error(codes.InvalidArgument, runtime.ErrEmptyBag.Error())
	}
	var bags []runtime.Bag
	from := 0
	for i := 1; i <= len(bagOf); i++ {
		if i < len(bagOf) && bagOf[i] == bagOf[i-1] {
			continue
		}
		if bagOf[i-1] != int64(len(bags)) {
			return nil, status.Errorf(codes.InvalidArgument, "%s must count the bags from 0 in order: %s[%d] is %d, after %d bags", contract.BagOf, contract.BagOf, from, bagOf[i-1], len(bags))
		}
		bags = append(bags, runtime.Bag{Instances: values[from*d : i*d], N: i - from})
		from = i
	}
	return bags, nil
}

// addOutputs puts the outputs that were asked for into an answer; none asked for is all.
func addOutputs(answer *oip.ModelInferResponse, info runtime.Info, asked []*oip.ModelInferRequest_InferRequestedOutputTensor, predictions []runtime.Prediction) error {
	_, outputs := signature(info)
	if len(asked) == 0 {
		for _, t := range outputs {
			asked = append(asked, &oip.ModelInferRequest_InferRequestedOutputTensor{Name: t.Name})
		}
	}
	for i, a := range asked {
		at := slices.IndexFunc(outputs, func(t *tensor) bool { return t.Name == a.GetName() })
		if at < 0 {
			return status.Errorf(codes.InvalidArgument, "there is no output %q; the model has %s", a.GetName(), namesOf(outputs))
		}
		if slices.ContainsFunc(asked[:i], func(b *oip.ModelInferRequest_InferRequestedOutputTensor) bool { return b.Name == a.Name }) {
			return status.Errorf(codes.InvalidArgument, "output %q is asked for twice", a.Name)
		}
		for _, unknown := range []string{classification, sharedMemory} {
			if a.Parameters[unknown] != nil {
				return status.Errorf(codes.InvalidArgument, "output %q asks for %s, an extension of the protocol that this server does not have", a.Name, unknown)
			}
		}
		raw, count := rawOutput(outputs[at].Name, predictions)
		shape := slices.Clone(outputs[at].Shape)
		if i := slices.Index(shape, -1); i >= 0 {
			shape[i] = 1
			shape[i] = int64(count / extent.Size(shape))
		}
		answer.Outputs = append(answer.Outputs, &oip.ModelInferResponse_InferOutputTensor{Name: outputs[at].Name, Datatype: outputs[at].Datatype, Shape: shape})
		answer.RawOutputContents = append(answer.RawOutputContents, raw)
	}
	return nil
}

// rawOutput is one output of all bags in little endian, and the number of its elements.
func rawOutput(name string, predictions []runtime.Prediction) (raw []byte, count int) {
	for _, p := range predictions {
		switch name {
		case contract.Label:
			raw, count = width.AppendBytes(raw, []int64{int64(p.Label)}), count+1
		case contract.Probabilities:
			raw, count = width.AppendBytes(raw, p.Probabilities), count+len(p.Probabilities)
		case contract.Attention:
			raw, count = width.AppendBytes(raw, p.Attention), count+len(p.Attention)
		}
	}
	return raw, count
}

func namesOf(tensors []*tensor) []string {
	names := make([]string, len(tensors))
	for i, t := range tensors {
		names[i] = t.Name
	}
	return names
}
