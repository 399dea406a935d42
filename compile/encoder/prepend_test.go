// A model that contains its encoder predicts like the two apart.

package encoder_test

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/miplc/miplc/compile/encoder"
	"github.com/miplc/miplc/internal/contract"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/onnxpb"
	"github.com/miplc/miplc/internal/testkit/enginetest"
	"github.com/miplc/miplc/internal/testkit/testsupport"
	"github.com/miplc/miplc/runtime"
)

// joined returns a model of 3 features joined to an encoder, and both parts.
func joined(t *testing.T) (whole, model *onnxpb.ModelProto, e *encoder.Encoder) {
	t.Helper()
	content, err := onnxpb.Marshal(enginetest.EncoderModel(3))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "encoder.onnx")
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
	input := contract.EncoderInput{Size: 12, Mean: []float64{0.5, 0.4, 0.3}, Std: []float64{0.2, 0.3, 0.4},
		Order: contract.BGR}
	if e, err = encoder.Read(path, enginetest.PooledEncoder, input); err != nil {
		t.Fatal(err)
	}
	if model, _, err = contract.Read("../../runtime/testdata/demipl-3x4.onnx"); err != nil {
		t.Fatal(err)
	}
	if whole, err = e.Prepend(model); err != nil {
		t.Fatal(err)
	}
	return whole, model, e
}

func opened(t *testing.T, m *onnxpb.ModelProto) *runtime.Model {
	t.Helper()
	content, err := onnxpb.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	r, err := runtime.OpenBytes(content, runtime.WithLibrary(enginetest.Library(t)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// The joined file predicts the same as the encoder followed by the model.
func TestJoinedPrediction(t *testing.T) {
	whole, model, e := joined(t)
	content, err := onnxpb.Marshal(whole)
	if err != nil {
		t.Fatal(err)
	}
	testsupport.CheckGolden(t, "../../runtime/testdata/images-3x4.onnx", content) // for tests of other packages
	enginetest.Library(t)
	s, err := e.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	parts, one, rng := opened(t, model), opened(t, whole), ndarray.NewStream(1, "images")
	if info := one.Info(); info.Encoder == nil || info.InputShape[1] != 12 || len(info.Backends) != 1 {
		t.Errorf("%+v", info)
	}
	for _, n := range []int{1, 2, 9} {
		x := make([]float32, n*3*12*12)
		for i := range x {
			x[i] = rng.Float32()
		}
		features, err := s.Features(x, n)
		if err != nil {
			t.Fatal(err)
		}
		want, err := parts.Predict(context.Background(), runtime.Bag{Instances: features, N: n})
		if err != nil {
			t.Fatal(err)
		}
		got, err := one.Predict(context.Background(), runtime.Bag{Instances: x, N: n})
		if err != nil {
			t.Fatal(err)
		}
		for c := range want.Probabilities {
			if math.Abs(float64(want.Probabilities[c]-got.Probabilities[c])) > 1e-6 {
				t.Errorf("%d images: %v, want %v", n, got.Probabilities, want.Probabilities)
			}
		}
		for i := range want.Attention {
			if math.Abs(float64(want.Attention[i]-got.Attention[i])) > 1e-6 {
				t.Errorf("%d images: attention %v, want %v", n, got.Attention, want.Attention)
			}
		}
	}
}

// A joined file whose encoder is connected to the model's nodes, or has other ops, violates the contract.
func TestTamperedEncoder(t *testing.T) {
	whole, _, _ := joined(t)
	for name, c := range map[string]struct {
		change func(g *onnxpb.GraphProto)
		want   string
	}{
		"images read": {func(g *onnxpb.GraphProto) { g.Node[len(g.Node)-1].Input[0] = contract.Instances },
			"across the border"},
		"inside read": {func(g *onnxpb.GraphProto) { g.Node[len(g.Node)-1].Input[0] = contract.EncoderPrefix + "input" },
			"across the border"},
		"op of encoders": {func(g *onnxpb.GraphProto) { g.Node[len(g.Node)-1].OpType = "HardSwish" },
			"not an op that miplc writes"},
		"loop": {func(g *onnxpb.GraphProto) { g.Node[0].OpType = "Loop" }, "not an op that miplc writes"},
		"external data": {func(g *onnxpb.GraphProto) { g.Initializer[3].DataLocation = onnxpb.TensorProto_EXTERNAL },
			"keeps its data in another file"},
	} {
		m := proto.Clone(whole).(*onnxpb.ModelProto)
		c.change(m.Graph)
		if _, err := contract.Check(m); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
