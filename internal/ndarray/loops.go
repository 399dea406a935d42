// Nested loops over several arrays, joined where possible.

package ndarray

// Loops iterates over an array and up to three operands with their own strides, 0 along axes where
// an operand is repeated. Neighbouring axes are merged if the strides of all operands allow it, so
// that inner loops are long.
type Loops struct {
	dims    []int
	strides [][3]int // per axis, per operand
}

// NewLoops returns the loops over an array with axes of sizes dims; strides has those of each
// operand.
func NewLoops(dims []int, strides ...[]int) Loops {
	var n Loops
	for i, d := range dims {
		if d == 1 {
			continue
		}
		var s [3]int
		for j := range strides {
			s[j] = strides[j][i]
		}
		if last := len(n.dims) - 1; last >= 0 && mergeable(n.strides[last], s, d) {
			n.dims[last] *= d
			n.strides[last] = s
			continue
		}
		n.dims, n.strides = append(n.dims, d), append(n.strides, s)
	}
	if len(n.dims) == 0 {
		n.dims, n.strides = []int{1}, [][3]int{{1, 1, 1}}
	}
	return n
}

// mergeable reports whether an axis with strides outer can be merged with the next one, of size d.
func mergeable(outer, inner [3]int, d int) bool {
	for j := range outer {
		if outer[j] != inner[j]*d {
			return false
		}
	}
	return true
}

// Step returns the strides of the innermost loop.
func (n *Loops) Step() [3]int { return n.strides[len(n.strides)-1] }

// Length returns the size of the innermost loop.
func (n *Loops) Length() int { return n.dims[len(n.dims)-1] }

// Axes returns the sizes of the loops, outermost first, and the strides of the operands along each. The caller must
// not change them.
func (n *Loops) Axes() (sizes []int, strides [][3]int) { return n.dims, n.strides }

// Each calls f for every run of the innermost loop, in row-major order, with the offsets of the
// operands at its start.
func (n *Loops) Each(f func(at [3]int)) {
	var at [3]int
	var stack [8]int
	index := append(stack[:0], n.dims[:len(n.dims)-1]...)
	clear(index)
	for {
		f(at)
		axis := len(index) - 1
		for ; axis >= 0; axis-- {
			s := &n.strides[axis]
			index[axis]++
			at[0], at[1], at[2] = at[0]+s[0], at[1]+s[1], at[2]+s[2]
			if index[axis] < n.dims[axis] {
				break
			}
			d := index[axis]
			at[0], at[1], at[2] = at[0]-d*s[0], at[1]-d*s[1], at[2]-d*s[2]
			index[axis] = 0
		}
		if axis < 0 {
			return
		}
	}
}

// CopyStrided copies x to out. Operand 0 of the loops is out, operand 1 is x.
func CopyStrided[T any](loops Loops, out, x []T) {
	n, s := loops.Length(), loops.Step()
	loops.Each(func(at [3]int) {
		o, j := out[at[0]:at[0]+n], at[1]
		if s[1] == 1 {
			copy(o, x[j:])
			return
		}
		for i := range o {
			o[i] = x[j]
			j += s[1]
		}
	})
}
