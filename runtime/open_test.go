// Files that are damaged, too expensive or break the contract are refused with the reason, before a back end runs them.

package runtime_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/miplc/miplc/internal/contract"
	"github.com/miplc/miplc/internal/onnxpb"
	"github.com/miplc/miplc/runtime"
	"github.com/miplc/miplc/runtime/onnxgo"
)

// gate is a back end that opens only files that passed every check of the contract. Tests
// assert that invalid files do not reach it.
type gate struct {
	name   string
	opened int
}

func (g *gate) Name() string { return g.name }

func (g *gate) Open(f *runtime.File) (runtime.Session, error) {
	g.opened++
	return closedGate{}, nil
}

type closedGate struct{}

func (closedGate) Run(context.Context, []runtime.Bag, []runtime.Prediction) error {
	return errors.New("nothing to run")
}
func (closedGate) Close() error { return nil }

func readModel(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// edited returns the bytes of demipl-3x4.onnx after a change.
func edited(t testing.TB, change func(*onnxpb.ModelProto)) []byte {
	t.Helper()
	m, err := onnxpb.ReadBytes(readModel(t, "demipl-3x4.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	change(m)
	data, err := onnxpb.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func meta(key, value string) func(*onnxpb.ModelProto) {
	return func(m *onnxpb.ModelProto) { m.SetMetadata(key, value) }
}

func TestOpenRefusesBrokenContracts(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*onnxpb.ModelProto)
		want   string
	}{
		{"no metadata", func(m *onnxpb.ModelProto) { m.MetadataProps = nil }, contract.KeyContract},
		{"one key missing", func(m *onnxpb.ModelProto) { m.MetadataProps = m.MetadataProps[:1] }, "the file has no miplc."},
		{"later contract", meta(contract.KeyContract, "bag/2"), `"bag/2"`},
		{"classes not JSON", meta(contract.KeyClasses, `["a", "b"`), contract.KeyClasses},
		{"classes of other type", meta(contract.KeyClasses, `{"a": 1}`), contract.KeyClasses},
		{"no classes", meta(contract.KeyClasses, `[]`), contract.KeyClasses},
		{"a class without a name", meta(contract.KeyClasses, `["a", "", "c", "d"]`), "class 2 has no name"},
		{"null for a class", meta(contract.KeyClasses, `["a", "b", "c", null]`), "class 4 has no name"},
		{"one name for two classes", meta(contract.KeyClasses, `["a", "b", "c", "b"]`),
			`classes 2 and 4 are both called "b"`},
		{"one class too few", meta(contract.KeyClasses, `["a", "b", "c"]`), contract.Probabilities},
		{"input shape not JSON", meta(contract.KeyInputShape, `3`), contract.KeyInputShape},
		{"negative input shape", meta(contract.KeyInputShape, `[-3]`), contract.KeyInputShape},
		{"huge input shape", meta(contract.KeyInputShape, `[4294967296, 4294967296]`), contract.KeyInputShape},
		{"other input shape", meta(contract.KeyInputShape, `[4]`), contract.Instances},
		{"seed no number", meta(contract.KeySeed, `seven`), contract.KeySeed},
		{"parity not JSON", meta(contract.KeyParity, `{`), contract.KeyParity},
		{"split not JSON", meta(contract.KeySplit, `[`), contract.KeySplit},
		{"unknown normalisation", meta(contract.KeyNormalize, `maybe`), contract.KeyNormalize},
		{"no back ends", meta(contract.KeyBackends, `[]`), contract.KeyBackends},
		{"other signature", meta(contract.KeyContract, contract.ContractBatch), contract.BagOf},
		{"old opset", func(m *onnxpb.ModelProto) { m.OpsetImport[0].Version = 6 }, "opset 6"},
		{"future opset", func(m *onnxpb.ModelProto) { m.OpsetImport[0].Version = 99 }, "opset 99"},
		{"no opset", func(m *onnxpb.ModelProto) { m.OpsetImport = nil }, "operator set"},
		{"custom ops", func(m *onnxpb.ModelProto) { m.OpsetImport[0].Domain = "com.example" }, "com.example"},
		{"no graph", func(m *onnxpb.ModelProto) { m.Graph = nil }, "no graph"},
		{"no nodes", func(m *onnxpb.ModelProto) { m.Graph.Node = nil }, contract.Probabilities},
		{"no attention", func(m *onnxpb.ModelProto) { m.Graph.Output = m.Graph.Output[:1] }, contract.Attention},
		{"no input", func(m *onnxpb.ModelProto) { m.Graph.Input = nil }, contract.Instances},
		{"renamed input", func(m *onnxpb.ModelProto) { m.Graph.Input[0].Name = "x" }, contract.Instances},
		{"double input", func(m *onnxpb.ModelProto) {
			m.Graph.Input[0].Type.GetTensorType().ElemType = int32(onnxpb.TensorProto_DOUBLE)
		}, "DOUBLE"},
		{"fixed number of instances", func(m *onnxpb.ModelProto) {
			m.Graph.Input[0].Type.GetTensorType().Shape.Dim[0].Value = &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: 40}
		}, "40"},
		{"weights cut", func(m *onnxpb.ModelProto) {
			m.Graph.Initializer[0].RawData = m.Graph.Initializer[0].RawData[:8]
		}, m0(t)},
		{"weights in another file", func(m *onnxpb.ModelProto) {
			m.Graph.Initializer[0].RawData = nil
			m.Graph.Initializer[0].DataLocation = onnxpb.TensorProto_EXTERNAL
			m.Graph.Initializer[0].ExternalData = []*onnxpb.StringStringEntryProto{{Key: "location", Value: "/etc/passwd"}}
		}, "another file"},
		{"unknown op", func(m *onnxpb.ModelProto) { m.Graph.Node[0].OpType = "Frobnicate" }, "Frobnicate"},
		{"too few inputs", func(m *onnxpb.ModelProto) { m.Graph.Node[0].Input = m.Graph.Node[0].Input[:1] },
			"the shapes do not fit together"},
		{"nodes without end", func(m *onnxpb.ModelProto) {
			for i := range 10_000 {
				m.Graph.Node = append(m.Graph.Node, &onnxpb.NodeProto{OpType: "Relu", Input: []string{m0(t)},
					Output: []string{fmt.Sprint(i)}})
			}
		}, "at most 10000"},
		{"shape that depends on values", func(m *onnxpb.ModelProto) {
			m.Graph.Node = append(m.Graph.Node, &onnxpb.NodeProto{Name: "odd", OpType: "Reshape", Input: []string{m0(t),
				contract.Instances}, Output: []string{"odd"}})
		}, `node "odd": Reshape to an unknown shape`},
		{"value from nowhere", func(m *onnxpb.ModelProto) { m.Graph.Node[1].Input[0] = "nowhere" }, "nowhere"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, backend := range []string{contract.BackendORT, contract.BackendONNXGo} {
				g := &gate{name: backend}
				_, err := runtime.OpenBytes(edited(t, c.change), runtime.WithBackend(g))
				if !errors.Is(err, runtime.ErrContract) || !strings.Contains(err.Error(), c.want) {
					t.Errorf("error %v, want one that names %s", err, c.want)
				}
				if g.opened > 0 {
					t.Error("the file reached the back end")
				}
			}
		})
	}
	g := &gate{name: contract.BackendORT}
	if _, err := runtime.OpenBytes(edited(t, func(*onnxpb.ModelProto) {}), runtime.WithBackend(g)); err != nil ||
		g.opened != 1 {
		t.Errorf("the unchanged file: %v, opened %d times", err, g.opened)
	}
	if _, err := runtime.OpenBytes(readModel(t, "demipl-3x4.onnx"), runtime.WithBackend(&gate{name: "tpu"})); !errors.Is(
		err, runtime.ErrContract) || !strings.Contains(err.Error(), "not for tpu") {
		t.Errorf("a back end that the file does not list: %v", err)
	}
}

// onnxruntime evaluates constants when it loads a file, so Open rejects expensive ones first.
func TestOpenRefusesExpensiveConstants(t *testing.T) {
	for _, c := range []struct {
		name    string
		side    int64
		product bool
		want    error
		says    string
	}{
		{"memory", 1 << 19, false, runtime.ErrTooLarge, "the prediction needs"},
		{"time", 1 << 14, true, runtime.ErrContract, "multiplications"},
	} {
		data := edited(t, func(m *onnxpb.ModelProto) {
			m.SetMetadata(contract.KeyBackends, `["onnxruntime"]`)
			m.OpsetImport[0].Version = 17
			g := m.Graph
			g.Initializer = append(g.Initializer, onnxpb.FloatTensor("one", []int64{1}, []float32{1}), onnxpb.IntTensor("to",
				[]int64{2}, []int64{c.side, c.side}))
			g.Node = append(g.Node, &onnxpb.NodeProto{OpType: "Expand", Input: []string{"one", "to"},
				Output: []string{"square"}})
			if c.product {
				g.Node = append(g.Node, &onnxpb.NodeProto{OpType: "MatMul", Input: []string{"square", "square"},
					Output: []string{"product"}})
			}
		})
		g := &gate{name: contract.BackendORT}
		if _, err := runtime.OpenBytes(data, runtime.WithBackend(g)); !errors.Is(err, c.want) ||
			!strings.Contains(err.Error(), c.says) || g.opened > 0 {
			t.Errorf("%s: %v, opened %d times", c.name, err, g.opened)
		}
	}
}

// m0 returns the name of the first weight of demipl-3x4.onnx.
func m0(t testing.TB) string {
	pb, err := onnxpb.Read("testdata/demipl-3x4.onnx")
	if err != nil {
		t.Fatal(err)
	}
	return pb.Graph.Initializer[0].Name
}

// A truncated file is rejected before the back end sees it.
func TestOpenRefusesCutFiles(t *testing.T) {
	whole := readModel(t, "demipl-3x4.onnx")
	for n := range whole {
		g := &gate{name: contract.BackendORT}
		_, err := runtime.OpenBytes(whole[:n], runtime.WithBackend(g))
		if !errors.Is(err, runtime.ErrContract) || g.opened > 0 {
			t.Errorf("%d of %d bytes: error %v, opened %d times", n, len(whole), err, g.opened)
		}
	}
}

func TestOpenFiles(t *testing.T) {
	dir := t.TempDir()
	random := make([]byte, 5000)
	r := rand.NewChaCha8([32]byte{1})
	if _, err := r.Read(random); err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{
		"empty.onnx": {}, "random.onnx": random, "text.onnx": []byte("model: demipl\n"),
		"half.onnx": readModel(t, "demipl-38x13.onnx")[:20000],
		"tail.onnx": append(readModel(t, "demipl-3x4.onnx"), "trailing bytes"...),
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		m, err := runtime.Open(path)
		if !errors.Is(err, runtime.ErrContract) || !strings.HasPrefix(err.Error(), path) {
			t.Errorf("%s: %v, %v", name, m, err)
		}
	}
	if _, err := runtime.Open(filepath.Join(dir, "none.onnx")); !errors.Is(err, os.ErrNotExist) ||
		!strings.Contains(err.Error(), "none.onnx") {
		t.Errorf("missing file: %v", err)
	}
	large := filepath.Join(dir, "large.onnx")
	if err := errors.Join(os.WriteFile(large, nil, 0o644), os.Truncate(large, onnxpb.MaxFile+1)); err != nil {
		t.Fatal(err)
	}
	if _, err := runtime.Open(large); !errors.Is(err, runtime.ErrContract) ||
		!strings.Contains(err.Error(), "larger than") {
		t.Errorf("a file of %d bytes: %v", onnxpb.MaxFile+1, err)
	}
	if _, err := runtime.Open(dir); !errors.Is(err, runtime.ErrContract) || !strings.Contains(err.Error(), "directory") {
		t.Errorf("directory: %v", err)
	}
}

// Graphs that fulfil the contract but cannot run give an error from the back end, at Open or at
// Predict.
func TestGraphsThatCannotRun(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*onnxpb.ModelProto)
	}{
		{"transposed weight", func(m *onnxpb.ModelProto) {
			d := m.Graph.Initializer[0].Dims
			d[0], d[1] = d[1], d[0]
		}},
		{"attribute of other type", func(m *onnxpb.ModelProto) {
			for _, n := range m.Graph.Node {
				if n.OpType == "Softmax" {
					n.Attribute[0].I = 77
				}
				if n.OpType == "Transpose" {
					n.Attribute[0].Ints = []int64{5, 9}
				}
			}
		}},
		{"promise of other classes", func(m *onnxpb.ModelProto) {
			m.SetMetadata(contract.KeyClasses, `["a", "b", "c", "d", "e"]`)
			m.Graph.Output[0].Type.GetTensorType().Shape.Dim[1].Value = &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: 5}
		}},
		{"probabilities twice, one below the other", instead(contract.Probabilities, "Concat", 2, 0)},
		{"probabilities twice, side by side", instead(contract.Probabilities, "Concat", 2, 1)},
		{"attention twice, one below the other", instead(contract.Attention, "Concat", 2, 0)},
		{"attention twice, side by side", instead(contract.Attention, "Concat", 2, 1)},
		{"probabilities twice, cut by a Reshape", func(m *onnxpb.ModelProto) {
			instead(contract.Probabilities, "Concat", 2, 1)(m)
			m.Graph.Node[len(m.Graph.Node)-1].Output[0] = "twice"
			m.Graph.Initializer = append(m.Graph.Initializer, onnxpb.IntTensor("to", []int64{2}, []int64{1, 4}))
			m.Graph.Node = append(m.Graph.Node, &onnxpb.NodeProto{Name: "cut", OpType: "Reshape", Input: []string{"twice", "to"},
				Output: []string{contract.Probabilities}})
		}},
		{"probabilities for each instance", func(m *onnxpb.ModelProto) {
			instead(contract.Probabilities, "Concat", 1, 0)(m)
			last := m.Graph.Node[len(m.Graph.Node)-1]
			last.OpType, last.Attribute = "Add", nil
			m.Graph.Initializer = append(m.Graph.Initializer, onnxpb.FloatTensor("column", []int64{3, 1}, []float32{0, 0, 0}))
			m.Graph.Node = append(m.Graph.Node[:len(m.Graph.Node)-1],
				&onnxpb.NodeProto{Name: "rows", OpType: "MatMul", Input: []string{contract.Instances, "column"},
					Output: []string{"rows"}}, last)
			last.Input = append(last.Input, "rows")
		}},
		{"probabilities as a column", instead(contract.Probabilities, "Transpose", 1, 0)},
		{"attention as a column", instead(contract.Attention, "Transpose", 1, 0)},
	} {
		for _, be := range backends {
			t.Run(c.name+"/"+be.name, func(t *testing.T) {
				open(t, "demipl-3x4.onnx") // fails if the library is missing
				m, err := runtime.OpenBytes(edited(t, c.change), be.opts...)
				if err == nil {
					defer m.Close()
					_, err = m.Predict(context.Background(), randomBag(5, 3, 1))
				}
				if err == nil || !strings.Contains(err.Error(), be.name) {
					t.Errorf("error %v, want one that names %s", err, be.name)
				}
			})
		}
	}
}

// instead gives an output another shape than the file declares: it passes the old output through
// an op, several times if the op has several inputs.
func instead(output, op string, inputs int, axis int64) func(*onnxpb.ModelProto) {
	return func(m *onnxpb.ModelProto) {
		for _, n := range m.Graph.Node {
			if n.Output[0] == output {
				n.Output[0] += ".inner"
			}
		}
		last := &onnxpb.NodeProto{Name: "last", OpType: op, Output: []string{output}}
		for i := range inputs {
			name := output + ".inner"
			if i > 0 { // onnx-go drops an input that is given twice
				m.Graph.Node = append(m.Graph.Node, &onnxpb.NodeProto{Name: "again", OpType: "Identity", Input: []string{name},
					Output: []string{"again"}})
				name = "again"
			}
			last.Input = append(last.Input, name)
		}
		if op == "Concat" {
			last.Attribute = []*onnxpb.AttributeProto{{Name: "axis", Type: onnxpb.AttributeProto_INT, I: axis}}
		} else {
			last.Attribute = []*onnxpb.AttributeProto{{Name: "perm", Type: onnxpb.AttributeProto_INTS, Ints: []int64{1, 0}}}
		}
		m.Graph.Node = append(m.Graph.Node, last)
	}
}

func TestOnnxGoRefusesBatchModels(t *testing.T) {
	_, err := runtime.Open("testdata/batch-3x4.onnx", runtime.WithBackend(onnxgo.Backend()))
	if !errors.Is(err, runtime.ErrContract) || !strings.Contains(err.Error(), "onnx-go") {
		t.Errorf("error %v", err)
	}
}

func TestInfo(t *testing.T) {
	m := open(t, "demipl-3x4.onnx")
	i := m.Info()
	if i.Contract != "bag/1" || i.Backend != "onnxruntime" || i.Opset != 17 || i.Seed != 7 || i.Engine != "none" ||
		len(i.Classes) != 4 || len(i.InputShape) != 1 || i.InputShape[0] != 3 || i.Normalization != "none" ||
		i.SpecSHA256 != strings.Repeat("0", 64) || !bytes.Contains(i.Split, []byte("random")) {
		t.Errorf("%+v", i)
	}
	for _, printed := range []string{fmt.Sprint(i), fmt.Sprintf("%+v", i)} {
		if !strings.Contains(printed, `"random"`) || !strings.Contains(printed, "class 0, class 1") {
			t.Errorf("printed as\n%s", printed)
		}
	}
	i.Classes[0] = "changed"
	if m.Info().Classes[0] != "class 0" {
		t.Error("changing a copy changed the model")
	}
}

// Settings that few models have are part of the metadata too, printed, and a copy.
func TestInfoOfSettings(t *testing.T) {
	m, err := runtime.OpenBytes(edited(t, func(m *onnxpb.ModelProto) {
		m.SetMetadata(contract.KeyThreshold, "0.5")
		m.SetMetadata(contract.KeyTemperature, "1.25")
	}))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	i := m.Info()
	for _, line := range []string{`(?m)^temperature +1\.25$`, `(?m)^threshold +0\.5 \(any number of labels\)$`} {
		if !regexp.MustCompile(line).MatchString(i.String()) {
			t.Errorf("no line %s in\n%s", line, i)
		}
	}
	*i.Threshold, *i.Temperature = 2, 2
	if again := m.Info(); *again.Threshold != 0.5 || *again.Temperature != 1.25 {
		t.Errorf("changing a copy changed the model: threshold %g, temperature %g", *again.Threshold, *again.Temperature)
	}
}

func FuzzOpen(f *testing.F) {
	for _, name := range []string{"demipl-3x4.onnx", "batch-3x4.onnx", "image-12x12.onnx"} {
		data := readModel(f, name)
		f.Add(data)
		f.Add(data[:len(data)/2])
	}
	f.Add(edited(f, meta(contract.KeyClasses, `[null, 1]`)))
	f.Add(edited(f, meta(contract.KeyInputShape, `[1e9]`)))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, name := range []string{contract.BackendORT, contract.BackendONNXGo} {
			g := &gate{name: name}
			m, err := runtime.OpenBytes(data, runtime.WithBackend(g))
			if (err == nil) != (g.opened == 1) {
				t.Fatalf("error %v, opened %d times", err, g.opened)
			}
			if err != nil {
				continue
			}
			i := m.Info()
			if len(i.Classes) == 0 || len(i.InputShape) == 0 {
				t.Fatalf("passed with %+v", i)
			}
		}
	})
}
