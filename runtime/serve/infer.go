// The Open Inference Protocol, independent of HTTP and gRPC: from the tensors of a request to those of the answer.

package serve

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/miplc/miplc/internal/contract"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/onnxpb"
	"github.com/miplc/miplc/runtime"
	"github.com/miplc/miplc/runtime/serve/oip"
)

// Datatypes of the tensors of models.
const (
	fp32   = "FP32"
	int64s = "INT64"
)

// datatypes are the datatypes that requests may use, and their numbers in raw tensors. For an input that
// expects FP32, the server converts the other floating-point datatypes.
var datatypes = []struct {
	name string
	ndarray.Encoding
}{
	{fp32, ndarray.Encoding{Kind: ndarray.Float, Size: 4}},
	{"FP16", ndarray.Encoding{Kind: ndarray.Float, Size: 2}},
	{"BF16", ndarray.Encoding{Kind: ndarray.BFloat, Size: 2}},
	{fp64, ndarray.Encoding{Kind: ndarray.Float, Size: 8}},
	{int64s, ndarray.Encoding{Kind: ndarray.Int, Size: 8}},
}

const fp64 = "FP64"

// convertible returns the names of the datatypes that an input of the given datatype accepts.
func convertible(expected string) (names []string) {
	for _, d := range datatypes {
		if d.name == expected || expected == fp32 && d.Kind != ndarray.Int {
			names = append(names, d.name)
		}
	}
	return names
}

// number returns the numbers of a datatype, which must be one of datatypes.
func number(datatype string) ndarray.Encoding {
	for _, d := range datatypes {
		if d.name == datatype {
			return d.Encoding
		}
	}
	panic("bug: unknown datatype " + datatype)
}

// Parameters of outputs that are not supported because they change the meaning of the output.
const (
	classification = "classification"
	sharedMemory   = "shared_memory_region"
)

// tensor describes an input or output; -1 is a length that the request chooses.
type tensor = oip.ModelMetadataResponse_TensorMetadata

// signature returns the inputs and outputs of a model, as in its file.
func signature(info runtime.Info) (inputs, outputs []*tensor) {
	in, out := contract.Signature(info.Contract, info.InputShape, len(info.Classes), info.ClassAttention)
	return tensorsOf(in), tensorsOf(out)
}

func tensorsOf(described []contract.Tensor) []*tensor {
	tensors := make([]*tensor, len(described))
	for i, d := range described {
		tensors[i] = &tensor{Name: d.Name, Datatype: fp32, Shape: d.Dims}
		if d.Type == onnxpb.TensorProto_INT64 {
			tensors[i].Datatype = int64s
		}
	}
	return tensors
}

func (s *Server) modelMetadata(name, version string) (*oip.ModelMetadataResponse, error) {
	v, done, err := s.models.use(name, version)
	if err != nil {
		return nil, err
	}
	defer done()
	inputs, outputs := signature(v.info)
	return &oip.ModelMetadataResponse{
		Name: v.name, Versions: s.models.versions(v.name), Platform: "onnx_onnxv1", Inputs: inputs, Outputs: outputs,
	}, nil
}

// maxTensors bounds the inputs and the outputs of a request. No model has that many.
const maxTensors = 16

// tooMany is the error of a request with more inputs or outputs.
func tooMany(what string) error {
	return invalid("there are more than %d %s: no model has as many", maxTensors, what)
}

// inferCall is an inference request of either protocol. Its tensors refer to the received bytes.
type inferCall struct {
	model, version, id string
	inputs             []inputTensor
	outputs            []requestedOutput
	request            *request
}

// inputTensor is one input of a request. Its contents have one of four forms.
type inputTensor struct {
	name, datatype string
	shape          []int64
	sharedMemory   bool   // the contents are in shared memory, which is not supported
	json           []byte // JSON lists
	raw            []byte // little endian
	floats         []float32
	ints           []int64
	otherType      bool // there are contents of another type than the datatype
}

// requestedOutput is an output that a request asks for.
type requestedOutput struct {
	name        string
	unsupported string // requested extension that is not supported
	binary      *bool  // HTTP only: raw or JSON
}

// infer answers an inference request of either protocol. The answer has raw tensors.
func (s *Server) infer(c *inferCall) (*oip.ModelInferResponse, error) {
	v, done, err := s.models.use(c.model, c.version)
	if err != nil {
		return nil, err
	}
	defer done()
	_, outputs := signature(v.info)
	if err := checkOutputs(outputs, c.outputs); err != nil {
		return nil, err
	}
	bags, err := s.bagsOf(v, c)
	if err != nil {
		return nil, err
	}
	predictions, err := v.predict(c.request, bags)
	if err != nil {
		return nil, err
	}
	return answerOf(v, c, outputs, predictions), nil
}

// predict predicts the bags of a request through the queue and distinguishes errors of the bags from those of the
// server.
func (v *openVersion) predict(r *request, bags []runtime.Bag) ([]runtime.Prediction, error) {
	all, busy, err := v.queue.predict(r.ctx, bags)
	if busy != nil {
		r.memory.releaseAfter(busy)
	}
	switch {
	case err == nil:
		return all, nil
	case errors.Is(err, runtime.ErrEmptyBag), errors.Is(err, runtime.ErrBagShape),
		errors.Is(err, runtime.ErrNotFinite), errors.Is(err, runtime.ErrTooLarge):
		return nil, invalid("%v", err)
	case errors.Is(err, context.DeadlineExceeded):
		return nil, status.Error(codes.DeadlineExceeded, "the prediction was not ready in time")
	case errors.Is(err, context.Canceled):
		return nil, errClientGone
	}
	return nil, err
}

// bagsOf decodes the bags of a request. Afterwards only the memory of their values stays reserved.
func (s *Server) bagsOf(v *openVersion, c *inferCall) ([]runtime.Bag, error) {
	done, err := s.admission.decoding(c.request.ctx, c.request.size)
	if err != nil {
		return nil, err
	}
	defer done()
	inputs, _ := signature(v.info)
	given, err := match(inputs, c)
	if err != nil {
		return nil, err
	}
	n := int(given[0].shape[0])
	if err := s.checkSize(n); err != nil {
		return nil, err
	}
	d := ndarray.Size(v.info.InputShape)
	if err := c.request.reserveDecoded(n*d, n*scores(&v.info)); err != nil {
		return nil, err
	}
	values, err := elements(c.request.ctx, given[0], given[0].floats, parseFloat, floats)
	if err != nil {
		return nil, err
	}
	bags := []runtime.Bag{{Instances: values, N: n}}
	if len(given) == 2 {
		bagOf, err := elements(c.request.ctx, given[1], given[1].ints, parseInt, ints)
		if err != nil {
			return nil, err
		}
		if bags, err = split(values, bagOf, d); err != nil {
			return nil, err
		}
	}
	c.inputs = nil
	return bags, c.request.releaseBody(n*d, n*scores(&v.info))
}

func parseInt(text []byte) (int64, error) { return strconv.ParseInt(string(text), 10, 64) }

// checkSize rejects bags with more instances than the operator allows.
func (s *Server) checkSize(instances int) error {
	if instances > s.o.MaxInstances {
		return invalid("a bag of %d instances: this server accepts at most %d", instances, s.o.MaxInstances)
	}
	return nil
}

// match returns the tensors of a request in the order of a signature.
func match(want []*tensor, c *inferCall) ([]inputTensor, error) {
	found, given := make([]inputTensor, len(want)), make([]bool, len(want))
	for _, in := range c.inputs {
		at := slices.IndexFunc(want, func(t *tensor) bool { return t.Name == in.name })
		if at < 0 {
			return nil, invalid("there is no input %.100q; the model has %s", in.name, namesOf(want))
		}
		t := want[at]
		switch {
		case given[at]:
			return nil, invalid("input %q is given twice", t.Name)
		case in.sharedMemory:
			return nil, invalid("input %q is in a %s, an extension of the protocol that this server does not have",
				t.Name, sharedMemory)
		case !slices.Contains(convertible(t.Datatype), in.datatype):
			return nil, invalid("input %q has datatype %.100q, the model expects %s; the server accepts %s",
				t.Name, in.datatype, t.Datatype, strings.Join(convertible(t.Datatype), ", "))
		case in.otherType:
			return nil, invalid("input %q has contents of another type than its datatype, %s", t.Name, in.datatype)
		case len(in.shape) != len(t.Shape) || !slices.Equal(in.shape[1:], t.Shape[1:]) ||
			in.shape[0] < 0 || in.shape[0] > math.MaxInt32:
			return nil, invalid("input %q has shape %.100s, the model expects %v (-1: any number)", t.Name,
				fmt.Sprint(in.shape[:min(len(in.shape), 50)]), t.Shape)
		}
		found[at], given[at] = in, true
	}
	if i := slices.Index(given, false); i >= 0 {
		return nil, invalid("input %q is missing", want[i].Name)
	}
	return found, nil
}

// elements returns the contents of an input if they are typed, or decodes them from JSON with parse, or from raw
// bytes with convert.
func elements[T float32 | int64](ctx context.Context, in inputTensor, typed []T, parse func([]byte) (T, error),
	convert func(ndarray.Encoding, []byte) []T) ([]T, error) {
	count := ndarray.Size(in.shape)
	if len(typed) > 0 {
		if len(typed) != count {
			return nil, invalid("input %q has %d values, its shape %v needs %d", in.name, len(typed), in.shape, count)
		}
		return typed, nil
	}
	if in.json != nil {
		values, _, err := readNumbers(ctx, in.json, in.shape, math.MaxInt,
			make([]T, 0, min(count, countNumbers(in.json))), parse)
		return values, decodeError(err, "input %.100q: data%v", in.name, err)
	}
	stored := number(in.datatype)
	if size := count * stored.Size; len(in.raw) != size {
		return nil, invalid("input %q has %d bytes, its shape %v needs %d", in.name, len(in.raw), in.shape, size)
	}
	return convert(stored, in.raw), nil
}

func floats(stored ndarray.Encoding, raw []byte) []float32 {
	values := make([]float32, len(raw)/stored.Size)
	stored.Floats(values, raw)
	return values
}

func ints(_ ndarray.Encoding, raw []byte) []int64 { return ndarray.FromBytes[int64](raw) }

// decodeError converts an error of decoding to one for the client, except for an expired deadline,
// which the server may have caused.
func decodeError(err error, format string, args ...any) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return status.Error(codes.Unavailable, "busy: the request could not be decoded in time; try again later")
	}
	return invalid(format, args...)
}

// split divides instances of d values each into bags.
func split(values []float32, bagOf []int64, d int) ([]runtime.Bag, error) {
	if len(bagOf)*d != len(values) {
		return nil, invalid("%s names the bags of %s, %s has %d", contract.BagOf, diag.Count(len(bagOf), "instance"),
			contract.Instances, len(values)/max(d, 1))
	}
	if len(bagOf) == 0 {
		return nil, invalid("%v", runtime.ErrEmptyBag)
	}
	var bags []runtime.Bag
	from := 0
	for i := 1; i <= len(bagOf); i++ {
		if i < len(bagOf) && bagOf[i] == bagOf[i-1] {
			continue
		}
		if bagOf[i-1] != int64(len(bags)) {
			return nil, invalid("%s must count the bags from 0 in order: %s[%d] is %d, after %s", contract.BagOf,
				contract.BagOf, from, bagOf[i-1], diag.Count(len(bags), "bag"))
		}
		bags = append(bags, runtime.Bag{Instances: values[from*d : i*d], N: i - from})
		from = i
	}
	return bags, nil
}

// checkOutputs rejects outputs that the model or this server does not have.
func checkOutputs(outputs []*tensor, asked []requestedOutput) error {
	for i, a := range asked {
		if !slices.ContainsFunc(outputs, func(t *tensor) bool { return t.Name == a.name }) {
			return invalid("there is no output %.100q; the model has %s", a.name, namesOf(outputs))
		}
		if slices.ContainsFunc(asked[:i], func(b requestedOutput) bool { return b.name == a.name }) {
			return invalid("output %q is requested twice", a.name)
		}
		if a.unsupported != "" {
			return invalid("output %q asks for %s, an extension of the protocol that this server does not have", a.name,
				a.unsupported)
		}
	}
	return nil
}

// answerOf returns the answer with the requested outputs, or all if none are named.
func answerOf(v *openVersion, c *inferCall, outputs []*tensor,
	predictions []runtime.Prediction) *oip.ModelInferResponse {
	answer := &oip.ModelInferResponse{ModelName: v.name, ModelVersion: v.versionText(), Id: c.id}
	asked := c.outputs
	if len(asked) == 0 {
		for _, t := range outputs {
			asked = append(asked, requestedOutput{name: t.Name})
		}
	}
	for _, a := range asked {
		t := outputs[slices.IndexFunc(outputs, func(t *tensor) bool { return t.Name == a.name })]
		raw, count := rawOutput(t.Name, predictions)
		shape := slices.Clone(t.Shape)
		if i := slices.Index(shape, -1); i >= 0 {
			shape[i] = 1
			shape[i] = int64(count / ndarray.Size(shape))
		}
		answer.Outputs = append(answer.Outputs,
			&oip.ModelInferResponse_InferOutputTensor{Name: t.Name, Datatype: t.Datatype, Shape: shape})
		answer.RawOutputContents = append(answer.RawOutputContents, raw)
	}
	return answer
}

// rawOutput returns one output of all bags in little endian, and the number of its elements.
func rawOutput(name string, predictions []runtime.Prediction) (raw []byte, count int) {
	for _, p := range predictions {
		switch name {
		case contract.Label:
			raw, count = ndarray.AppendBytes(raw, []int64{int64(p.Label)}), count+1
		case contract.Probabilities:
			raw, count = ndarray.AppendBytes(raw, p.Probabilities), count+len(p.Probabilities)
		case contract.Attention:
			raw, count = ndarray.AppendBytes(raw, p.Attention), count+len(p.Attention)
		case contract.ClassAttention:
			for _, row := range p.ClassAttention {
				raw, count = ndarray.AppendBytes(raw, row), count+len(row)
			}
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
