package serve

import (
	"slices"
	"unicode/utf8"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
)

// Numbers of the message fields of the protocol that are decoded here.
const (
	requestModel   protowire.Number = 1
	requestVersion protowire.Number = 2
	requestID      protowire.Number = 3
	requestInputs  protowire.Number = 5
	requestOutputs protowire.Number = 6
	requestRaw     protowire.Number = 7

	inputName       protowire.Number = 1
	inputDatatype   protowire.Number = 2
	inputShape      protowire.Number = 3
	inputParameters protowire.Number = 4
	inputContents   protowire.Number = 5

	outputName       protowire.Number = 1
	outputParameters protowire.Number = 2

	contentsInt64 protowire.Number = 3
	contentsFP32  protowire.Number = 6
	contentsFP64  protowire.Number = 7

	mapKey protowire.Number = 1
)

// maxAxes bounds the shape of a tensor. No model has inputs with that many axes.
const maxAxes = 8

// wireInfer decodes a ModelInferRequest from its bytes. Unlike the generated code, it builds
// nothing much larger than those bytes: tensors refer to them, and lists are bounded. It skips
// fields that the server does not use.
type wireInfer struct {
	*inferCall
	raw     [][]byte
	integer int // maximum number of elements of an integer tensor
}

// readMessage decodes a request; integers is the maximum number of elements of an integer tensor.
func readMessage(req *request, integers int) (*inferCall, error) {
	w := wireInfer{inferCall: &inferCall{request: req}, integer: integers}
	if err := fields(req.body, w.field); err != nil {
		return nil, err
	}
	if n := len(w.raw); n != 0 && n != len(w.inputs) {
		return nil, status.Errorf(codes.InvalidArgument, "%d inputs and raw contents of %d: all are raw or none is", len(w.inputs), n)
	}
	for i, raw := range w.raw {
		in := &w.inputs[i]
		if in.raw != nil || in.ints != nil {
			return nil, status.Errorf(codes.InvalidArgument, "input %.100q has both contents and raw contents: give one", in.name)
		}
		in.raw = raw
	}
	return w.inferCall, nil
}

func (w *wireInfer) field(number protowire.Number, kind protowire.Type, value []byte) (err error) {
	switch {
	case kind != protowire.BytesType:
	case number == requestModel:
		w.model, err = text(value)
	case number == requestVersion:
		w.version, err = text(value)
	case number == requestID:
		w.id, err = text(value)
	case number == requestInputs:
		in := inputTensor{}
		if len(w.inputs) == maxTensors {
			return status.Errorf(codes.InvalidArgument, "there are more than %d inputs: no model has as many", maxTensors)
		}
		err = fields(value, func(number protowire.Number, kind protowire.Type, value []byte) error {
			return w.inputField(&in, number, kind, value)
		})
		w.inputs = append(w.inputs, in)
	case number == requestOutputs:
		out := requestedOutput{}
		if len(w.outputs) == maxTensors {
			return status.Errorf(codes.InvalidArgument, "there are more than %d outputs: no model has as many", maxTensors)
		}
		err = fields(value, func(number protowire.Number, kind protowire.Type, value []byte) error {
			return outputField(&out, number, kind, value)
		})
		w.outputs = append(w.outputs, out)
	case number == requestRaw:
		if len(w.raw) == maxTensors {
			return status.Errorf(codes.InvalidArgument, "there are more than %d raw contents: no model has as many inputs", maxTensors)
		}
		w.raw = append(w.raw, value[:len(value):len(value)])
	}
	return err
}

func (w *wireInfer) inputField(in *inputTensor, number protowire.Number, kind protowire.Type, value []byte) (err error) {
	switch {
	case number == inputName && kind == protowire.BytesType:
		in.name, err = text(value)
	case number == inputDatatype && kind == protowire.BytesType:
		in.datatype, err = text(value)
	case number == inputShape:
		in.shape, err = varints(in.shape, kind, value, maxAxes, "extents of a shape")
	case number == inputParameters && kind == protowire.BytesType:
		var name string
		name, err = parameterName(value)
		in.sharedMemory = in.sharedMemory || name == sharedMemory
	case number == inputContents && kind == protowire.BytesType:
		err = fields(value, func(number protowire.Number, kind protowire.Type, value []byte) (err error) {
			switch {
			case number == contentsInt64:
				in.ints, err = varints(in.ints, kind, value, w.integer, "elements of an integer tensor")
			case number == contentsFP32 && kind != protowire.VarintType:
				err = in.addTyped(fp32, value)
			case number == contentsFP64 && kind != protowire.VarintType:
				err = in.addTyped(fp64, value)
			}
			return err
		})
	}
	return err
}

// addTyped adds little-endian values of the message field of a datatype.
func (in *inputTensor) addTyped(datatype string, values []byte) error {
	if in.field != "" && in.field != datatype {
		return status.Errorf(codes.InvalidArgument, "input %.100q has contents of two types, %s and %s: give one", in.name, in.field, datatype)
	}
	if in.field = datatype; in.raw == nil {
		in.raw = values[:len(values):len(values)] // the usual form: all values in one field
	} else {
		in.raw = append(in.raw, values...)
	}
	return nil
}

func outputField(out *requestedOutput, number protowire.Number, kind protowire.Type, value []byte) (err error) {
	switch {
	case kind != protowire.BytesType:
	case number == outputName:
		out.name, err = text(value)
	case number == outputParameters:
		name, err := parameterName(value)
		if name == classification || name == sharedMemory {
			out.unsupported = name
		}
		return err
	}
	return err
}

// parameterName returns the key of an entry of a map of parameters.
func parameterName(entry []byte) (name string, err error) {
	err = fields(entry, func(number protowire.Number, kind protowire.Type, value []byte) (err error) {
		if number == mapKey && kind == protowire.BytesType {
			name, err = text(value)
		}
		return err
	})
	return name, err
}

// fields calls f for each field of a message, with the contents of strings, messages and packed
// lists, or with the bytes of numbers.
func fields(message []byte, f func(number protowire.Number, kind protowire.Type, value []byte) error) error {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return malformed(n)
		}
		message = message[n:]
		if n = protowire.ConsumeFieldValue(number, kind, message); n < 0 {
			return malformed(n)
		}
		value := message[:n]
		if kind == protowire.BytesType {
			value, _ = protowire.ConsumeBytes(value)
		}
		if err := f(number, kind, value); err != nil {
			return err
		}
		message = message[n:]
	}
	return nil
}

func malformed(n int) error {
	return status.Errorf(codes.InvalidArgument, "the message cannot be decoded: %v", protowire.ParseError(n))
}

// text returns a string, which must be UTF-8. Long strings are truncated, because they only appear
// in errors about unknown names.
func text(value []byte) (string, error) {
	if !utf8.Valid(value) {
		return "", status.Error(codes.InvalidArgument, "the message cannot be decoded: a string is not UTF-8")
	}
	return string(value[:min(len(value), maxMember)]), nil
}

// varints appends a number, or a packed list of numbers, up to limit elements.
func varints(to []int64, kind protowire.Type, value []byte, limit int, what string) ([]int64, error) {
	if kind != protowire.VarintType && kind != protowire.BytesType {
		return to, nil
	}
	to = slices.Grow(to, min(len(value), max(0, limit-len(to))))
	if to == nil {
		to = []int64{} // an empty packed list is a list
	}
	for len(value) > 0 {
		v, n := protowire.ConsumeVarint(value)
		if n < 0 {
			return nil, malformed(n)
		}
		if len(to) == limit {
			return nil, status.Errorf(codes.InvalidArgument, "there are more than %d %s", limit, what)
		}
		to, value = append(to, int64(v)), value[n:]
	}
	return to, nil
}
