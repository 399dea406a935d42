// Reductions of matrices in operations that onnx-go has.

package onnxpb

import (
	"errors"
	"fmt"
	"slices"
)

// reduceMax computes the maximum of rows or columns of a matrix by pooling, as for images.
func (r *rewriter) reduceMax(n *NodeProto) error {
	x := n.Input[0]
	rows, columns, err := r.matrix(x)
	if err != nil {
		return err
	}
	axis, err := r.reduced(n)
	switch {
	case err != nil:
		return err
	case axis == 1 && columns != Symbol:
		r.last(n, "Identity", nil, r.rowMax(x, rows, columns))
	case axis == 0 && rows != Symbol:
		r.last(n, "Transpose", foronnxgoAttrs(IntsAttr("perm", 1, 0)), r.rowMax(r.turned(x), columns, rows))
	case axis == 0 && columns != Symbol:
		r.last(n, "Identity", nil, r.columnMax(x, columns))
	default:
		return fmt.Errorf("no maximum of [%d, %d] over axis %d", rows, columns, axis)
	}
	return nil
}

// reduced returns the axis of ReduceMax, which is an attribute up to opset 17 and an input since.
func (r *rewriter) reduced(n *NodeProto) (int64, error) {
	if n.AttrInt("keepdims", 1) != 1 {
		return 0, errors.New("it drops the axis")
	}
	if axes := n.Attr("axes").GetInts(); len(axes) == 1 {
		return axes[0], nil
	}
	axes, err := r.ints(n, 1, 1)
	if err != nil {
		return 0, err
	}
	return axes[0], nil
}

// rowMax returns the maximum of each row, as a column.
func (r *rewriter) rowMax(x string, rows, columns int64) string {
	first := rows
	if first == Symbol {
		first = 0 // size of the input
	}
	image := r.reshaped(x, first, 1, 1, columns)
	top := r.op("MaxPool", foronnxgoAttrs(IntsAttr("kernel_shape", 1, columns), IntsAttr("strides", 1, 1)), image)
	if rows == Symbol {
		return r.op("Flatten", foronnxgoAttrs(IntAttr("axis", 1)), top)
	}
	return r.reshaped(top, rows, 1)
}

// columnMax returns the maximum of each column of any number of rows, as a row. The rows become the
// width of images. One window cannot cover an unknown width, but with auto_pad each pooling divides
// the width by the window, rounded up: after three poolings, one of up to 2^24 is left.
func (r *rewriter) columnMax(x string, columns int64) string {
	const window = 256
	x = r.reshaped(x, 0, columns, 1, 1)
	x = r.op("Transpose", foronnxgoAttrs(IntsAttr("perm", 1, 2, 3, 0)), x)
	for range 3 {
		x = r.op("MaxPool", foronnxgoAttrs(StringAttr("auto_pad", "SAME_UPPER"),
			IntsAttr("kernel_shape", 1, window), IntsAttr("strides", 1, window)), x)
	}
	return r.reshaped(x, 1, columns)
}

// logSoftmax computes x - max - log(sum(exp(x - max))) of each row.
func (r *rewriter) logSoftmax(n *NodeProto) error {
	x := n.Input[0]
	rows, columns, err := r.matrix(x)
	if err != nil {
		return err
	}
	if axis := n.AttrInt("axis", -1); axis != 1 && axis != -1 {
		return errors.New("it does not go along the rows")
	}
	if columns < 1 || columns > MaxSelection {
		return fmt.Errorf("rows of %d columns", columns)
	}
	top := x
	if columns > 1 {
		top = r.rowMax(x, rows, columns)
	}
	ones := slices.Repeat([]float32{1}, int(columns))
	low := r.op("Sub", nil, x, top)
	sum := r.op("MatMul", nil, r.op("Exp", nil, low), r.initializer(FloatTensor("", []int64{columns, 1}, ones)))
	r.last(n, "Sub", nil, low, r.op("Log", nil, sum))
	return nil
}

// MaxSelection bounds the matrices that replace Slice and Pad, in elements.
const MaxSelection = 1 << 22

// part replaces a Slice or Pad of a matrix by a product with a matrix of zeros and ones.
func (r *rewriter) part(n *NodeProto) error {
	x := n.Input[0]
	rows, columns, err := r.matrix(x)
	if err != nil {
		return err
	}
	axis, from, to, err := r.kept(n, []int64{rows, columns})
	if err != nil {
		return err
	}
	old, extent := []int64{rows, columns}[axis], to-from
	slice := n.GetOpType() == "Slice"
	if old < 1 || from < -MaxSelection || to > MaxSelection || slice && (from < 0 || to > old) || from >= to ||
		old > MaxSelection/extent {
		return fmt.Errorf("no part from %d to %d of axis %d of [%d, %d]", from, to, axis, rows, columns)
	}
	pick := make([]float32, old*extent)
	for i := range old {
		if j := i - from; j >= 0 && j < extent {
			if axis == 1 {
				pick[i*extent+j] = 1
			} else {
				pick[j*old+i] = 1
			}
		}
	}
	if axis == 1 {
		r.last(n, "MatMul", nil, x, r.initializer(FloatTensor("", []int64{old, extent}, pick)))
	} else {
		r.last(n, "MatMul", nil, r.initializer(FloatTensor("", []int64{extent, old}, pick)), x)
	}
	return nil
}

// kept returns the range of the operand's axis that the result of a Slice or Pad covers. For a Pad,
// the range is larger than the axis.
func (r *rewriter) kept(n *NodeProto, shape []int64) (axis, from, to int64, err error) {
	if n.GetOpType() == "Pad" {
		pads, err := r.ints(n, 1, 4)
		if err != nil {
			return 0, 0, 0, err
		}
		if pads[1] != 0 || pads[3] != 0 {
			axis = 1
		}
		if pads[1-axis] != 0 || pads[3-axis] != 0 || len(n.Input) > 2 || n.Attr("mode") != nil {
			return 0, 0, 0, errors.New("it pads both axes, or not with zeros")
		}
		return axis, -pads[axis], shape[axis] + pads[2+axis], nil
	}
	if len(n.Input) > 4 {
		return 0, 0, 0, errors.New("it has steps")
	}
	var numbers [3]int64 // starts, ends, axes
	for i := range numbers {
		list, err := r.ints(n, 1+i, 1)
		if err != nil {
			return 0, 0, 0, err
		}
		numbers[i] = list[0]
	}
	if numbers[2] != 0 && numbers[2] != 1 {
		return 0, 0, 0, fmt.Errorf("axis %d of a matrix", numbers[2])
	}
	return numbers[2], numbers[0], numbers[1], nil
}
