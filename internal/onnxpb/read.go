// Package onnxpb has the messages of the ONNX format, generated from miplc_onnx.proto, and readers
// that are safe for truncated or malicious files.
package onnxpb

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"google.golang.org/protobuf/proto"

	"github.com/miplc/miplc/internal/fileio"
	"github.com/miplc/miplc/internal/ndarray"
)

// The messages are compiled by protoc 31.1 on the path.
//go:generate go install google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.11
//go:generate protoc -I. --go_out=. --go_opt=paths=source_relative miplc_onnx.proto

// MaxFile is the largest file that Read accepts, in bytes. Models of this family have a few
// megabytes.
const MaxFile = 512 << 20

// maxDepth bounds the nesting of messages. Models without control flow need fewer than ten levels;
// malicious files may have thousands.
const maxDepth = 32

// ErrTooLarge reports a file larger than MaxFile.
var ErrTooLarge = errors.New("the file is larger than an ONNX model of miplc can be")

// FileError reports a file that exists and is not a model.
type FileError struct {
	Path string
	Err  error
}

func (e *FileError) Error() string { return e.Path + ": " + e.Err.Error() }
func (e *FileError) Unwrap() error { return e.Err }

// Read reads the model in a file. The error names the file.
func Read(path string) (*ModelProto, error) {
	data, err := ReadFile(path)
	if err != nil {
		return nil, err
	}
	m, err := ReadBytes(data)
	if err != nil {
		return nil, &FileError{path, err}
	}
	return m, nil
}

// ReadFile reads the bytes of a model for ReadBytes. The error is that of the file system, or a *FileError.
func ReadFile(path string) ([]byte, error) {
	f, info, err := fileio.Open(path)
	if err != nil {
		if at, missing := os.Stat(path); missing == nil && at.IsDir() {
			return nil, &FileError{path, errors.New("it is a directory; name the model.onnx in it")}
		}
		return nil, err
	}
	defer f.Close()
	if info.Size() > MaxFile {
		return nil, &FileError{path, fmt.Errorf("%w: %d bytes, limit %d", ErrTooLarge, info.Size(), MaxFile)}
	}
	data, err := readStill(f)
	if err != nil {
		return nil, &FileError{path, err}
	}
	return data, nil
}

// readStill reads a file and makes sure that it did not change meanwhile: half of one model and
// half of another can look like a valid model.
func readStill(f fs.File) ([]byte, error) {
	before, err := f.Stat()
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	if err != nil {
		return nil, err
	}
	after, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if after.Size() != int64(len(data)) || !after.ModTime().Equal(before.ModTime()) {
		return nil, errors.New("it was written to while it was read; write a new model to another file and rename it")
	}
	return data, nil
}

// ReadBytes decodes a model. It checks the wire format and the presence of the parts that every
// model has, but not the graph.
func ReadBytes(data []byte) (*ModelProto, error) {
	if len(data) == 0 {
		return nil, errors.New("the file is empty")
	}
	if len(data) > MaxFile {
		return nil, fmt.Errorf("%w: %d bytes, limit %d", ErrTooLarge, len(data), MaxFile)
	}
	m := &ModelProto{}
	if err := (proto.UnmarshalOptions{RecursionLimit: maxDepth}).Unmarshal(data, m); err != nil {
		return nil, fmt.Errorf("not an ONNX file, or cut short (%d bytes)", len(data))
	}
	switch {
	case m.Graph == nil:
		return nil, fmt.Errorf("not an ONNX file, or cut short (%d bytes): it has no graph", len(data))
	case len(m.OpsetImport) == 0:
		return nil, fmt.Errorf("the file is cut short (%d bytes): it names no operator set", len(data))
	}
	return m, nil
}

// Marshal encodes a model; the same model always gives the same bytes.
func Marshal(m *ModelProto) ([]byte, error) {
	return proto.MarshalOptions{Deterministic: true}.Marshal(m)
}

// Opset returns the version of the default operator set, or 0.
func (x *ModelProto) Opset() int64 {
	for _, o := range x.GetOpsetImport() {
		if o.GetDomain() == "" || o.GetDomain() == "ai.onnx" {
			return o.GetVersion()
		}
	}
	return 0
}

// Metadata returns the value of a metadata key, and whether it exists.
func (x *ModelProto) Metadata(key string) (string, bool) {
	for _, p := range x.GetMetadataProps() {
		if p.GetKey() == key {
			return p.GetValue(), true
		}
	}
	return "", false
}

// SetMetadata sets the value of a metadata key, in place or at the end.
func (x *ModelProto) SetMetadata(key, value string) {
	for _, p := range x.MetadataProps {
		if p.GetKey() == key {
			p.Value = value
			return
		}
	}
	x.MetadataProps = append(x.MetadataProps, &StringStringEntryProto{Key: key, Value: value})
}

// FloatTensor makes a float32 tensor; its length must be the product of dims.
func FloatTensor(name string, dims []int64, data []float32) *TensorProto {
	return &TensorProto{Name: name, Dims: dims, DataType: int32(TensorProto_FLOAT), RawData: ndarray.AppendBytes([]byte{},
		data)}
}

// IntTensor makes an int64 tensor; its length must be the product of dims.
func IntTensor(name string, dims []int64, data []int64) *TensorProto {
	return &TensorProto{Name: name, Dims: dims, DataType: int32(TensorProto_INT64), RawData: ndarray.AppendBytes([]byte{},
		data)}
}

// Size returns the number of elements given by dims. It returns an error for negative sizes and for
// products that no file can contain.
func (x *TensorProto) Size() (int, error) {
	size, ok := ndarray.SizeWithin(x.GetDims(), MaxFile)
	if !ok {
		return 0, fmt.Errorf("tensor %q claims the shape %v, which no file can hold", x.GetName(), x.GetDims())
	}
	return size, nil
}

// Check reports whether the data of a float32, float16, int64, uint8 or bool tensor has the length
// given by its dims. Data in other files is rejected, because a miplc model is one file.
func (x *TensorProto) Check() error {
	size, err := x.Size()
	if err != nil {
		return err
	}
	if x.GetDataLocation() != TensorProto_DEFAULT || len(x.GetExternalData()) > 0 {
		return fmt.Errorf("tensor %q keeps its data in another file", x.GetName())
	}
	bytes, have := 0, 0 // bytes per element, number of elements
	switch TensorProto_DataType(x.GetDataType()) {
	case TensorProto_FLOAT:
		bytes, have = 4, len(x.GetFloatData())
	case TensorProto_INT64:
		bytes, have = 8, len(x.GetInt64Data())
	case TensorProto_FLOAT16:
		bytes, have = 2, len(x.GetInt32Data())
	case TensorProto_BOOL, TensorProto_UINT8:
		bytes, have = 1, len(x.GetInt32Data())
	default:
		return fmt.Errorf("tensor %q has the element type %v, expected float, float16, int64, uint8 or bool",
			x.GetName(), TensorProto_DataType(x.GetDataType()))
	}
	if raw := x.GetRawData(); raw != nil { // raw data has precedence
		if have = len(raw) / bytes; len(raw)%bytes != 0 { // the last one is incomplete
			have = -1
		}
	}
	if have != size {
		return fmt.Errorf("tensor %q: shape %v needs %d elements, the file has %d", x.GetName(), x.GetDims(), size, have)
	}
	return nil
}

// Floats returns the elements of a float32 tensor that passed Check.
func (x *TensorProto) Floats() []float32 { return elements(x.GetRawData(), x.GetFloatData()) }

// Ints returns the elements of an int64 tensor that passed Check.
func (x *TensorProto) Ints() []int64 { return elements(x.GetRawData(), x.GetInt64Data()) }

func elements[T float32 | int64](raw []byte, typed []T) []T {
	if raw == nil {
		return typed
	}
	return ndarray.FromBytes[T](raw)
}
