// The model repository for Triton, whose ragged batching passes the bags of several requests in one run.

package export

import (
	"fmt"
	"path/filepath"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/miplc/miplc/internal/contract"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/onnxpb"
)

// Triton returns a model repository: DIR/NAME with config.pbtxt, the class names as labels.txt, and
// 1/model.onnx. A request has one bag. Triton runs a model of signature bag for each request. For
// signature batch, the dynamic batcher combines bags, and the file accepts the form in which Triton
// combines bags of different sizes.
func (m *Deployment) Triton(dir string) ([]File, error) {
	dir = filepath.Join(dir, m.Name)
	model, batch := m.proto, m.Meta.Contract == contract.ContractBatch
	if batch {
		model = ragged(m.proto, m.Meta.InputShape)
		if err := contract.Structure(model); err != nil {
			return nil, fmt.Errorf("bug: the model for Triton: %w", err)
		}
	}
	content, err := onnxpb.Marshal(model)
	if err != nil {
		return nil, err
	}
	dims := "-1"
	for _, d := range m.Meta.InputShape {
		dims += fmt.Sprintf(", %d", d)
	}
	config, err := rendered(filepath.Join(dir, "config.pbtxt"), "config.pbtxt.tmpl", map[string]any{
		"Name": m.Name, "Dims": dims, "Classes": len(m.Meta.Classes), "Batch": batch,
		"Instances": contract.Instances, "Probabilities": contract.Probabilities, "Attention": contract.Attention,
		"HasClasses": m.Meta.ClassAttention, "ClassAttention": contract.ClassAttention,
		"Label": contract.Label, "Ends": bagEnds,
	})
	if err != nil {
		return nil, err
	}
	return []File{config, {Path: filepath.Join(dir, "labels.txt"), Content: labels(m.Meta.Classes)},
		{Path: filepath.Join(dir, "1", "model.onnx"), Content: content}}, nil
}

// labels returns the class names, one per line.
func labels(classes []string) []byte {
	var b strings.Builder
	for _, c := range classes {
		b.WriteString(strings.NewReplacer("\n", " ", "\r", " ").Replace(c) + "\n")
	}
	return []byte(b.String())
}

// bagEnds is the input that Triton computes: for each bag, the number of values of instances up to
// its end.
const bagEnds = "bag_ends"

// contractRagged is the contract of models with that input.
const contractRagged = "ragged/1"

// ragged replaces the inputs of a model of contract batch/1 by those of Triton's ragged batching:
// all values of all bags in one row, and bag_ends, int32 [B].
func ragged(batch *onnxpb.ModelProto, shape []int) *onnxpb.ModelProto {
	m := proto.Clone(batch).(*onnxpb.ModelProto)
	g := m.Graph
	rename := map[string]string{contract.Instances: "ragged.instances", contract.BagOf: "ragged.bag_of"}
	for _, n := range g.Node {
		n.Rename(rename)
	}
	rows := append([]int64{-1}, ndarray.Convert[int64](shape)...)
	whole := func(name string, dims []int64, v ...int64) string {
		g.Initializer = append(g.Initializer, onnxpb.IntTensor("ragged."+name, dims, v))
		return "ragged." + name
	}
	zero, one := whole("zero", nil, 0), whole("one", nil, 1)
	var head onnxpb.GraphProto // the nodes before those of the model
	op := func(name, opType string, attributes []*onnxpb.AttributeProto, in ...string) string {
		return head.Add("ragged."+name, opType, attributes, in...)
	}
	to := func(t onnxpb.TensorProto_DataType) []*onnxpb.AttributeProto {
		return []*onnxpb.AttributeProto{onnxpb.IntAttr("to", int64(t))}
	}
	bags := op("instances", "Reshape", nil, contract.Instances, whole("shape", []int64{int64(len(rows))}, rows...))
	count := op("count", "Gather", nil, op("extents", "Shape", nil, bags), zero)
	number := op("number", "Range", nil, zero, count, one)
	values := op("values", "Cast", to(onnxpb.TensorProto_INT64), bagEnds)
	ends := op("ends", "Div", nil, values, whole("size", nil, int64(ndarray.Size(shape))))
	// The bag of an instance is the first that ends after it.
	behind := op("behind", "Greater", nil, op("column", "Unsqueeze", nil, ends, whole("axis", []int64{1}, 1)), number)
	op("bag_of", "ArgMax", []*onnxpb.AttributeProto{onnxpb.IntAttr("axis", 0), onnxpb.IntAttr("keepdims", 0)},
		op("is_behind", "Cast", to(onnxpb.TensorProto_FLOAT), behind))
	g.Node = append(head.Node, g.Node...)
	g.Input = []*onnxpb.ValueInfoProto{
		row(contract.Instances, onnxpb.TensorProto_FLOAT, "values", "All values of all bags, one after the other, as they "+
			"are measured."),
		row(bagEnds, onnxpb.TensorProto_INT32, "B", "For each bag the number of values of instances up to its end."),
	}
	m.SetMetadata(contract.KeyContract, contractRagged)
	return m
}

// row describes an input with one axis.
func row(name string, elem onnxpb.TensorProto_DataType, extent, doc string) *onnxpb.ValueInfoProto {
	v := onnxpb.Value(name, elem, onnxpb.Open(extent))
	v.DocString = doc
	return v
}
