// Runs of ONNX models in both back ends, for tests of packages that write models.

package enginetest

import (
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/owulveryck/onnx-go"
	"github.com/owulveryck/onnx-go/backend/x/gorgonnx"
	"google.golang.org/protobuf/proto"
	"gorgonia.org/tensor"

	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/contract"
	"github.com/miplc/miplc/internal/exprvm"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/onnxpb"
	"github.com/miplc/miplc/internal/onnxruntime"
)

var keep = flag.String("keep-models", "", "folder to leave every model in that a test ran, for testdata/validate.py")

var kept int

// RunORT runs the model in a new onnxruntime session with inputs by name and returns all outputs,
// integer ones as floats.
func RunORT(t testing.TB, m *onnxpb.ModelProto, feed map[string]*graph.Tensor) map[string]*graph.Tensor {
	t.Helper()
	if len(m.Graph.Input) == 0 { // onnxruntime_go cannot run a model without inputs
		m = proto.Clone(m).(*onnxpb.ModelProto)
		m.Graph.Input = []*onnxpb.ValueInfoProto{proto.Clone(m.Graph.Output[0]).(*onnxpb.ValueInfoProto)}
		m.Graph.Input[0].Name = "unused"
		feed = map[string]*graph.Tensor{"unused": graph.NewTensor(ndarray.Convert[int](m.Graph.Output[0].Extents()))}
	}
	if err := contract.Structure(m); err != nil {
		t.Fatal(err)
	}
	content, err := onnxpb.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	if *keep != "" {
		kept++
		if err := os.WriteFile(filepath.Join(*keep, fmt.Sprintf("%05d.onnx", kept)), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	in := map[string]onnxruntime.Tensor{}
	for name, x := range feed {
		in[name] = onnxruntime.Tensor{Shape: x.Shape, Floats: ndarray.Convert[float32](x.Data)}
		if x.Ints != nil {
			in[name] = onnxruntime.Tensor{Shape: x.Shape, Ints: ndarray.Convert[int64](x.Ints)}
		}
	}
	Library(t)
	got, err := onnxruntime.Run(content, in)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*graph.Tensor{}
	for name, y := range got {
		out[name] = &graph.Tensor{Shape: y.Shape, Data: ndarray.Convert[float64](y.Floats)}
		if y.Ints != nil {
			out[name].Data = ndarray.Convert[float64](y.Ints)
		}
	}
	return out
}

// RunONNXGo is like RunORT with onnx-go.
func RunONNXGo(t testing.TB, m *onnxpb.ModelProto, feed map[string]*graph.Tensor) map[string]*graph.Tensor {
	t.Helper()
	out, err := tryONNXGo(m, feed)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func tryONNXGo(m *onnxpb.ModelProto, feed map[string]*graph.Tensor) (out map[string]*graph.Tensor, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("onnx-go panics: %v", p)
		}
	}()
	if m, err = onnxpb.RewriteForOnnxGo(m); err != nil {
		return nil, err
	}
	data, err := onnxpb.Marshal(m)
	if err != nil {
		return nil, err
	}
	backend := gorgonnx.NewGraph()
	model := onnx.NewModel(backend)
	if err := model.UnmarshalBinary(data); err != nil {
		return nil, err
	}
	// Run twice with the same tensors to detect ops that overwrite an input or a parameter.
	var inputs []tensor.Tensor
	for _, in := range m.Graph.Input {
		x, ok := feed[in.Name]
		if !ok {
			return nil, fmt.Errorf("no value for input %q", in.Name)
		}
		shape := x.Shape
		for len(shape) < 2 {
			shape = append([]int{1}, shape...)
		}
		inputs = append(inputs, tensor.New(tensor.WithShape(shape...), tensor.WithBacking(ndarray.Convert[float32](x.Data))))
	}
	for run := range 2 {
		for i, x := range inputs {
			if err := model.SetInput(i, x); err != nil {
				return nil, err
			}
		}
		if run == 0 {
			g, err := backend.GetExprGraph()
			if err != nil {
				return nil, err
			}
			vm, err := exprvm.New(g)
			if err != nil {
				return nil, err
			}
			backend.SetVM(vm)
		}
		if err := backend.Run(); err != nil {
			return nil, fmt.Errorf("onnx-go: %w", err)
		}
	}
	return outputsOf(model, m)
}

func outputsOf(model *onnx.Model, m *onnxpb.ModelProto) (map[string]*graph.Tensor, error) {
	values, err := model.GetOutputTensors()
	if err != nil {
		return nil, err
	}
	out := map[string]*graph.Tensor{}
	for i, o := range m.Graph.Output {
		dense := values[i].(*tensor.Dense)
		if dense.RequiresIterator() {
			dense = dense.Materialize().(*tensor.Dense)
		}
		flat, ok := dense.Data().([]float32)
		if !ok {
			flat = []float32{dense.Data().(float32)}
		}
		out[o.Name] = &graph.Tensor{Shape: dense.Shape(), Data: ndarray.Convert[float64](flat)}
	}
	return out, nil
}

// Near compares an output with the reference. Differences are absolute for values below 1, else
// relative.
func Near(what string, got, want *graph.Tensor, tol float64) error {
	if got == nil {
		return fmt.Errorf("%s: missing", what)
	}
	if len(got.Data) != len(want.Data) {
		return fmt.Errorf("%s: shape %v, want %v", what, got.Shape, want.Shape)
	}
	for i := range want.Data {
		d := math.Abs(got.Data[i] - want.Data[i])
		if !(d <= tol*max(1, math.Abs(want.Data[i]))) {
			return fmt.Errorf("%s: number %d is %v, want %v\ngot  %v\nwant %v", what, i, got.Data[i], want.Data[i],
				head(got.Data), head(want.Data))
		}
	}
	return nil
}

func head(v []float64) []float64 { return v[:min(len(v), 24)] }
