// Parameters of a trained model, read back from its file.

package export

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/onnxpb"
)

// Parameters returns the learned parameters of a program in a model file, by name. Missing lists
// those that the file lacks or has with another shape, in the order of the program, as text.
// Parameters that only losses use are in no model file: they are in neither.
func Parameters(m *onnxpb.ModelProto, p *compile.Program) (values map[string][]float32, missing []Missing, err error) {
	values = map[string][]float32{}
	for _, q := range p.Params {
		t := stored(p, m.Graph.GetInitializer(), q.Name)
		switch {
		case t == nil && !used(p, q.Name):
		case t == nil:
			missing = append(missing, Missing{q.Name, fmt.Sprintf("%s %v: the file has no parameter of this name", q.Name,
				q.Shape)})
		case t.GetDataType() != int32(onnxpb.TensorProto_FLOAT):
			return nil, nil, fmt.Errorf("parameter %s has another type than float32: use the model from which this "+
				"smaller one was made", q.Name)
		case !slices.Equal(extents(q.Shape), extents(t.GetDims())):
			missing = append(missing, Missing{q.Name, fmt.Sprintf("%s %v: the file has the shape %v", q.Name, q.Shape,
				t.GetDims())})
		default:
			v := ndarray.FromBytes[float32](t.GetRawData())
			if len(v) != ndarray.Size(q.Shape) || slices.ContainsFunc(v, func(x float32) bool {
				return math.IsNaN(float64(x)) ||
					math.IsInf(float64(x), 0)
			}) {
				return nil, nil, fmt.Errorf("parameter %s has values that are not finite, or not as many as its shape says",
					q.Name)
			}
			values[q.Name] = v
		}
	}
	return values, missing, nil
}

// Missing is a parameter that a model file lacks.
type Missing struct {
	Name string
	Text string // name, shape and reason
}

// used reports whether predictions use a parameter.
func used(p *compile.Program, name string) bool {
	live := p.Infer.Live()
	return slices.ContainsFunc(p.Infer.ByOp(graph.OpParam), func(n *graph.Node) bool {
		return n.Name == name &&
			live[n.ID]
	})
}

// copySuffix is what the file adds to the name of a parameter that it has in the shape in which
// the model uses it.
var copySuffix = regexp.MustCompile(`^(_[0-9]+)+$`)

// stored returns the tensor of a parameter, or nil.
func stored(p *compile.Program, tensors []*onnxpb.TensorProto, name string) (found *onnxpb.TensorProto) {
	for _, t := range tensors {
		rest, begins := strings.CutPrefix(t.GetName(), name)
		other := slices.ContainsFunc(p.Params, func(q compile.Param) bool { return q.Name == t.GetName() })
		switch {
		case begins && rest == "":
			return t
		case begins && found == nil && !other && copySuffix.MatchString(rest):
			found = t
		}
	}
	return found
}

// extents returns the sizes of a shape other than 1. A file adds axes of size 1 to parameters.
func extents[I int | int64](shape []I) (list []int64) {
	for _, n := range shape {
		if n != 1 {
			list = append(list, int64(n))
		}
	}
	return list
}
