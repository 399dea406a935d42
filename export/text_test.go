// Models as readable text, so that golden files show every change of an export.

package export_test

import (
	"crypto/sha256"
	"fmt"
	"strings"

	"github.com/miplc/miplc/internal/onnxpb"
)

// maxShown is the number of elements up to which modelText prints a tensor's values.
const maxShown = 8

// modelText prints a model in readable form for golden tests, one item per line: metadata, inputs,
// initializers (a hash if they are long), nodes, the shapes of their values, and outputs.
func modelText(m *onnxpb.ModelProto) string {
	var b strings.Builder
	g := m.GetGraph()
	fmt.Fprintf(&b, "model %s, opset %d, IR version %d\n", g.GetName(), m.Opset(), m.GetIrVersion())
	for _, p := range m.GetMetadataProps() {
		fmt.Fprintf(&b, "meta %s = %s\n", p.GetKey(), p.GetValue())
	}
	fmt.Fprintf(&b, "graph: %s\n", g.GetDocString())
	for _, v := range g.GetInput() {
		fmt.Fprintf(&b, "input %s: %s\n", valueText(v), v.GetDocString())
	}
	for _, t := range g.GetInitializer() {
		fmt.Fprintf(&b, "init %s %s%s\n", t.GetName(), tensorType(t), tensorText(t))
	}
	for _, n := range g.GetNode() {
		fmt.Fprintf(&b, "%s = %s(%s)%s\n", strings.Join(n.GetOutput(), ", "), n.GetOpType(),
			strings.Join(n.GetInput(), ", "), attributesText(n))
	}
	for _, v := range g.GetValueInfo() {
		fmt.Fprintf(&b, "value %s\n", valueText(v))
	}
	for _, v := range g.GetOutput() {
		fmt.Fprintf(&b, "output %s: %s\n", valueText(v), v.GetDocString())
	}
	return b.String()
}

func typeName(elem int32) string {
	return strings.ToLower(onnxpb.TensorProto_DataType(elem).String())
}

func valueText(v *onnxpb.ValueInfoProto) string {
	t := v.GetType().GetTensorType()
	dims := make([]string, len(t.GetShape().GetDim()))
	for i, d := range t.GetShape().GetDim() {
		if dims[i] = d.GetDimParam(); dims[i] == "" {
			dims[i] = fmt.Sprint(d.GetDimValue())
		}
	}
	return fmt.Sprintf("%s %s[%s]", v.GetName(), typeName(t.GetElemType()), strings.Join(dims, ", "))
}

func tensorType(t *onnxpb.TensorProto) string {
	return typeName(t.GetDataType()) + strings.ReplaceAll(fmt.Sprint(t.GetDims()), " ", ", ")
}

func tensorText(t *onnxpb.TensorProto) string {
	switch size, err := t.Size(); {
	case err != nil || t.Check() != nil:
		return " (damaged)"
	case size > maxShown:
		return fmt.Sprintf(" sha256 %.12x", sha256.Sum256(t.GetRawData()))
	case t.GetDataType() == int32(onnxpb.TensorProto_INT64):
		return fmt.Sprintf(" %v", t.Ints())
	case t.GetDataType() == int32(onnxpb.TensorProto_FLOAT):
		return fmt.Sprintf(" %v", t.Floats())
	}
	return ""
}

func attributesText(n *onnxpb.NodeProto) string {
	var parts []string
	for _, a := range n.GetAttribute() {
		value := ""
		switch a.GetType() {
		case onnxpb.AttributeProto_INT:
			value = fmt.Sprint(a.GetI())
		case onnxpb.AttributeProto_INTS:
			value = fmt.Sprint(a.GetInts())
		case onnxpb.AttributeProto_FLOAT:
			value = fmt.Sprint(a.GetF())
		case onnxpb.AttributeProto_STRING:
			value = string(a.GetS())
		case onnxpb.AttributeProto_TENSOR:
			value = tensorType(a.GetT()) + tensorText(a.GetT())
		default:
			value = a.GetType().String()
		}
		parts = append(parts, a.GetName()+"="+value)
	}
	if len(parts) == 0 {
		return ""
	}
	return " {" + strings.Join(parts, ", ") + "}"
}
