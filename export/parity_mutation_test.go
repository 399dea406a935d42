// Parity finds faults that an export could have: each mutant of a model file must be noticed.

package export_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/miplc/miplc/export"
	"github.com/miplc/miplc/internal/contract"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/onnxpb"
	"github.com/miplc/miplc/runtime"
)

// mutations are faults that an export could have. Each changes one randomly chosen place of a graph
// and returns a description, or "" if there is no such place.
var mutations = []struct {
	name   string
	change func(g *onnxpb.GraphProto, r *rand.Rand) string
}{
	{"swapped inputs", func(g *onnxpb.GraphProto, r *rand.Rand) string {
		n := pick(g, r, "Sub", "Div", "MatMul", "Concat")
		if n == nil {
			return ""
		}
		n.Input[0], n.Input[1] = n.Input[1], n.Input[0]
		return n.Name
	}},
	{"wrong axis", func(g *onnxpb.GraphProto, r *rand.Rand) string {
		n := pick(g, r, "Softmax", "LogSoftmax", "Concat", "Flatten")
		if n == nil {
			return ""
		}
		for _, a := range n.Attribute {
			if a.Name == "axis" {
				a.I = 1 - a.I
			}
		}
		return n.Name
	}},
	{"missing bound", func(g *onnxpb.GraphProto, r *rand.Rand) string {
		return bypassed(pick(g, r, "Max", "Min", "Clip", "Relu"))
	}},
	{"missing operation", func(g *onnxpb.GraphProto, r *rand.Rand) string {
		return bypassed(pick(g, r, "Sub", "Add", "Mul", "Div", "Exp", "Log", "Tanh", "Sigmoid", "Softplus", "Abs", "Neg",
			"Sqrt"))
	}},
	{"wrong constant", func(g *onnxpb.GraphProto, r *rand.Rand) string {
		var floats []*onnxpb.TensorProto
		for _, t := range g.Initializer {
			if t.DataType == int32(onnxpb.TensorProto_FLOAT) {
				floats = append(floats, t)
			}
		}
		t := floats[r.IntN(len(floats))]
		values := make([]float32, len(t.RawData)/4)
		for i := range values {
			values[i] = math.Float32frombits(binary.LittleEndian.Uint32(t.RawData[4*i:]))
		}
		at := r.IntN(len(values))
		values[at] += 0.05 * max(1, float32(math.Abs(float64(values[at]))))
		t.RawData = onnxpb.FloatTensor(t.Name, t.Dims, values).RawData
		return fmt.Sprintf("%s[%d]", t.Name, at)
	}},
}

// pick returns a random node of one of the types.
func pick(g *onnxpb.GraphProto, r *rand.Rand, types ...string) *onnxpb.NodeProto {
	var found []*onnxpb.NodeProto
	for _, n := range g.Node {
		if slices.Contains(types, n.OpType) {
			found = append(found, n)
		}
	}
	if len(found) == 0 {
		return nil
	}
	return found[r.IntN(len(found))]
}

// bypassed replaces a node by its first input.
func bypassed(n *onnxpb.NodeProto) string {
	if n == nil {
		return ""
	}
	n.OpType, n.Input, n.Attribute = "Identity", n.Input[:1], nil
	return n.Name
}

// mutants returns files of the model with one fault each.
func (m *model) mutants(t testing.TB, r *rand.Rand, perKind int) map[string][]byte {
	t.Helper()
	good := m.file(t, export.SignatureBag)
	list := map[string][]byte{}
	for _, kind := range mutations {
		for range perKind {
			pb, err := onnxpb.ReadBytes(good)
			if err != nil {
				t.Fatal(err)
			}
			what := kind.change(pb.Graph, r)
			data, err := onnxpb.Marshal(pb)
			if err != nil {
				t.Fatal(err)
			}
			if what != "" && string(data) != string(good) {
				list[kind.name+" at "+what] = data
			}
		}
	}
	return list
}

// Parity finds faults of an exported file in models with parameters of usual size and with large
// ones, which widen the bound. It finds all faults that change a prediction by more than
// MaxTolerance and almost all that the smallest bound would find.
func TestFaultsAreFound(t *testing.T) {
	t.Parallel()
	type tally struct{ mutants, refused, silent, large, small, missed int }
	for _, grow := range []float32{1, 10} {
		var n tally
		for seed := range uint64(60) {
			m := random(t, seed).grown(grow)
			o := m.bags([]int{1, 2, 40}, seed)
			o.Rounding = m.reference().Rounding
			reference := m.reference().Engine("interpreter")
			r := ndarray.NewStream(seed, "mutants")
			mutants := m.mutants(t, r, 2)
			for _, what := range slices.Sorted(maps.Keys(mutants)) {
				n.mutants++
				file, err := runtime.OpenBytes(mutants[what])
				if err != nil {
					n.refused++
					continue
				}
				mutant := export.Predictor{Name: contract.BackendORT, Predict: func(x []float32, sizes []int) ([]float32, []float32,
					error) {
					p, err := file.Predict(context.Background(), runtime.Bag{Instances: x, N: sizes[0]})
					return p.Probabilities, p.Attention, err
				}}
				report, err := export.Compare([]export.Predictor{reference, mutant}, o)
				file.Close()
				switch {
				case err != nil || len(report.Failed) > 0:
					n.refused++
				case report.MaxAbsDiff <= export.Tolerance:
					n.silent++ // the fault does not change the predictions of these bags
				case report.MaxAbsDiff > export.MaxTolerance:
					if n.large++; report.OK {
						t.Errorf("%s times %g: %s changes a prediction by %.2g and passes", m.name, grow, what, report.MaxAbsDiff)
					}
				default:
					if n.small++; report.OK {
						n.missed++
						t.Logf("%s times %g: %s changes a prediction by %.2g and passes within %.2g", m.name, grow, what,
							report.MaxAbsDiff, report.Pairs[0].Bound)
					}
				}
			}
		}
		t.Logf("parameters times %g: %+v", grow, n)
		if found := n.large + n.small - n.missed; n.large < 200 || n.missed*100 > found {
			t.Errorf("parameters times %g: %d faults found, %d missed", grow, found, n.missed)
		}
	}
}
