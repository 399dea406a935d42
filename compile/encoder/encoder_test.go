// Encoders are read, and faulty ones are refused.

package encoder

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/miplc/miplc/internal/contract"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/onnxpb"
	"github.com/miplc/miplc/internal/testkit/enginetest"
)

var small = contract.EncoderInput{Size: 16, Mean: []float64{0.5, 0.5, 0.5}, Std: []float64{0.5, 0.5, 0.5},
	Order: contract.RGB}

// written writes a model to a file and returns its path.
func written(t testing.TB, m *onnxpb.ModelProto) string {
	t.Helper()
	content, err := onnxpb.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "encoder.onnx")
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// full returns the text of an error with its notes.
func full(err error) string {
	var b strings.Builder
	diag.Render(&b, err)
	return b.String()
}

func TestRead(t *testing.T) {
	path := written(t, enginetest.EncoderModel(8))
	e, err := Read(path, enginetest.PooledEncoder, small)
	if err != nil {
		t.Fatal(err)
	}
	if e.Meta.Features != 8 || e.opset != onnxpb.MinOpset || len(e.graph.Initializer) != 4 {
		t.Errorf("%+v, opset %d, %d constants", e.Meta, e.opset, len(e.graph.Initializer))
	}
	whole, err := Read(path, "", small)
	if err != nil || whole.Meta.Features != 2 || whole.Meta.Output != "classes" {
		t.Errorf("the only output: %+v, %v", whole, err)
	}
	other := small
	other.Order = contract.BGR
	if b, err := Read(path, enginetest.PooledEncoder, other); err != nil || b.Meta.Identity() == e.Meta.Identity() {
		t.Errorf("another order: %+v, %v", b, err)
	}
}

// Files that are not usable as encoders give errors that say what to do.
func TestFaultyEncoders(t *testing.T) {
	floats := func(name string, dims ...int64) *onnxpb.TensorProto {
		n := int64(1)
		for _, d := range dims {
			n *= d
		}
		return onnxpb.FloatTensor(name, dims, make([]float32, n))
	}
	body := &onnxpb.GraphProto{Output: []*onnxpb.ValueInfoProto{{Name: "y"}}}
	for name, c := range map[string]struct {
		output string
		change func(m *onnxpb.ModelProto, g *onnxpb.GraphProto)
		want   []string
	}{
		"wrong name": {"pool", nil, []string{`no node of the encoder makes a value "pool"`,
			"set output to the pooled features: pooled"}},
		"input as name": {"x", nil, []string{`no node of the encoder makes a value "x"`}},
		"wrong rank": {"relu", nil, []string{"relu has the shape [1 8 8 8] for one image, expected [1, features]",
			"set output to a pooled value"}},
		"constant": {"c", func(_ *onnxpb.ModelProto, g *onnxpb.GraphProto) { g.Add("c", "Identity", nil, "b") },
			[]string{"c does not depend on the images"}},
		"external data": {"", func(_ *onnxpb.ModelProto, g *onnxpb.GraphProto) {
			g.Initializer[0].RawData, g.Initializer[0].DataLocation = nil, onnxpb.TensorProto_EXTERNAL
			g.Initializer[0].ExternalData = []*onnxpb.StringStringEntryProto{{Key: "location", Value: "/etc/passwd"}}
		}, []string{`tensor "w" keeps its data in another file`, "all weights in the file"}},
		"huge tensor": {"", func(_ *onnxpb.ModelProto, g *onnxpb.GraphProto) {
			g.Initializer[0].Dims = []int64{1 << 30, 1 << 30}
		}, []string{"which no file can hold"}},
		"short tensor": {"", func(_ *onnxpb.ModelProto, g *onnxpb.GraphProto) { g.Initializer[1].RawData = []byte{1} },
			[]string{`tensor "b": shape [8] needs 8 elements`}},
		"custom domain": {"", func(_ *onnxpb.ModelProto, g *onnxpb.GraphProto) { g.Node[1].Domain = "com.microsoft" },
			[]string{`node 2 "relu" (Relu): the operator is of the domain "com.microsoft"`, "cut the encoder before this node"}},
		"unknown op": {"", func(_ *onnxpb.ModelProto, g *onnxpb.GraphProto) { g.Node[1].OpType = "RandomNormalLike" },
			[]string{"not one that an encoder may use"}},
		"loop": {"", func(_ *onnxpb.ModelProto, g *onnxpb.GraphProto) { g.Node[1].OpType = "Loop" },
			[]string{"not one that an encoder may use"}},
		"control flow": {"", func(_ *onnxpb.ModelProto, g *onnxpb.GraphProto) {
			g.Node[1].Attribute = []*onnxpb.AttributeProto{onnxpb.GraphAttr("then_branch", body)}
		}, []string{"the operator contains a graph"}},
		"cycle": {"", func(_ *onnxpb.ModelProto, g *onnxpb.GraphProto) { g.Node[1].Input[0] = "flat" },
			[]string{`node 0 "relu" (Relu): its input "flat" is not defined before it`, "in which they run"}},
		"made twice": {"", func(_ *onnxpb.ModelProto, g *onnxpb.GraphProto) { g.Node[1].Output = []string{"relu", "conv"} },
			[]string{`the value "conv" is defined twice`}},
		"missing": {"", func(_ *onnxpb.ModelProto, g *onnxpb.GraphProto) { g.Initializer = g.Initializer[1:] },
			[]string{`its input "w" is not defined before it`}},
		"two inputs": {"", func(_ *onnxpb.ModelProto, g *onnxpb.GraphProto) {
			g.Input = append(g.Input, &onnxpb.ValueInfoProto{Name: "scale"})
		}, []string{"the encoder has 2 inputs"}},
		"gray": {"", func(_ *onnxpb.ModelProto, g *onnxpb.GraphProto) {
			g.Input[0] = onnxpb.Value("x", onnxpb.TensorProto_FLOAT, onnxpb.Open("n"), onnxpb.Fixed(1), onnxpb.Fixed(16),
				onnxpb.Fixed(16))
		}, []string{"expected [n, 3, height, width]"}},
		"another size": {"", func(_ *onnxpb.ModelProto, g *onnxpb.GraphProto) {
			g.Input[0] = onnxpb.Value("x", onnxpb.TensorProto_FLOAT, onnxpb.Open("n"), onnxpb.Fixed(3), onnxpb.Fixed(224),
				onnxpb.Fixed(224))
		}, []string{"set input.size to 224"}},
		"bytes": {"", func(_ *onnxpb.ModelProto, g *onnxpb.GraphProto) {
			g.Input[0].Type.GetTensorType().ElemType = int32(onnxpb.TensorProto_UINT8)
		}, []string{"element type UINT8"}},
		"small integers": {"", func(_ *onnxpb.ModelProto, g *onnxpb.GraphProto) {
			g.Initializer = append(g.Initializer, &onnxpb.TensorProto{Name: "to", Dims: []int64{1},
				DataType: int32(onnxpb.TensorProto_INT32), RawData: []byte{1, 0, 0, 0}})
			g.Node[3] = &onnxpb.NodeProto{Name: "flat", OpType: "Add", Input: []string{"pooled", "to"}, Output: []string{"flat"}}
		}, []string{`tensor "to" has the element type INT32`, "set output to a value before the node that reads it, " +
			"perhaps pooled features: pooled"}},
		"fixed batch": {"", func(_ *onnxpb.ModelProto, g *onnxpb.GraphProto) {
			g.Initializer = append(g.Initializer, onnxpb.IntTensor("to", []int64{2}, []int64{1, 8}))
			g.Node[3] = &onnxpb.NodeProto{Name: "flat", OpType: "Reshape", Input: []string{"pooled", "to"},
				Output: []string{"flat"}}
		}, []string{"dynamic axis n"}},
		"huge value": {"", func(_ *onnxpb.ModelProto, g *onnxpb.GraphProto) {
			g.Initializer = append(g.Initializer, onnxpb.IntTensor("to", []int64{4}, []int64{1, 1 << 30, 1, 1 << 30}))
			g.Node[1] = &onnxpb.NodeProto{Name: "relu", OpType: "Tile", Input: []string{"conv", "to"}, Output: []string{"relu"}}
		}, []string{"more than the limit"}},
		"unknown shape": {"", func(_ *onnxpb.ModelProto, g *onnxpb.GraphProto) {
			g.Node[3] = &onnxpb.NodeProto{Name: "flat", OpType: "Reshape", Input: []string{"pooled", "pooled"},
				Output: []string{"flat"}}
		}, []string{"the shapes inside the encoder cannot be determined"}},
		"unfit shapes": {"", func(_ *onnxpb.ModelProto, g *onnxpb.GraphProto) { g.Initializer[0] = floats("w", 8) },
			[]string{"the shapes inside the encoder cannot be determined"}},
		"softmax over channels": {"pooled", func(_ *onnxpb.ModelProto, g *onnxpb.GraphProto) { g.Node[1].OpType = "Softmax" },
			[]string{"from opset 11 to 13", "the axis 1 of 4 is not the last"}},
		"old opset": {"", func(m *onnxpb.ModelProto, _ *onnxpb.GraphProto) { m.OpsetImport[0].Version = 6 },
			[]string{"opset 6, supported are 7 to"}},
		"new opset": {"", func(m *onnxpb.ModelProto, _ *onnxpb.GraphProto) { m.OpsetImport[0].Version = 99 },
			[]string{"opset 99"}},
		"no output": {"", func(_ *onnxpb.ModelProto, g *onnxpb.GraphProto) {
			g.Output = append(g.Output, &onnxpb.ValueInfoProto{Name: "pooled"})
		}, []string{"the encoder has 2 outputs: classes, pooled", "name the features with output"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := enginetest.EncoderModel(8)
			if c.change != nil {
				c.change(m, m.Graph)
			}
			path := written(t, m)
			_, err := Read(path, c.output, small)
			if err == nil {
				t.Fatal("no error")
			}
			text := full(err)
			for _, want := range append(c.want, path) {
				if !strings.Contains(text, want) {
					t.Errorf("got %s\nwant %s", text, want)
				}
			}
		})
	}
	if _, err := Read(filepath.Join(t.TempDir(), "none.onnx"), "", small); err == nil {
		t.Error("a missing file gives no error")
	}
}

// Damaged files give errors, whatever byte is wrong.
func TestDamagedFiles(t *testing.T) {
	content, err := onnxpb.Marshal(enginetest.EncoderModel(8))
	if err != nil {
		t.Fatal(err)
	}
	path, rng := filepath.Join(t.TempDir(), "encoder.onnx"), rand.New(rand.NewPCG(1, 2))
	read := 0
	for range 300 {
		b := slices.Clone(content)
		for range 1 + rng.IntN(3) {
			b[rng.IntN(len(b))] = byte(rng.Uint32())
		}
		if rng.IntN(4) == 0 {
			b = b[:rng.IntN(len(b))]
		}
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(path, "", small); err == nil {
			read++ // the changed byte belongs to a weight
		} else if strings.Contains(full(err), "bug") {
			t.Error(err)
		}
	}
	if read == 0 || read == 300 {
		t.Errorf("%d of 300 damaged files were read", read)
	}
}
