// Shapes with the symbolic sizes N and B.

package graph

import (
	"fmt"
	"slices"
	"strings"
)

// Dim is the size of one axis: a constant of at least 1, or N or B.
type Dim int

const (
	// N is the number of instances in the batch, over all bags.
	N Dim = -1
	// B is the number of bags of the batch.
	B Dim = -2
)

func (d Dim) String() string {
	switch d {
	case N:
		return "N"
	case B:
		return "B"
	}
	return fmt.Sprint(int(d))
}

// Shape lists the sizes of the axes of a value, outermost first. A scalar has no axes.
type Shape []Dim

func (s Shape) String() string {
	parts := make([]string, len(s))
	for i, d := range s {
		parts[i] = d.String()
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// Equal reports whether both shapes have the same sizes, including symbols.
func (s Shape) Equal(o Shape) bool { return slices.Equal(s, o) }

// Clone returns a copy.
func (s Shape) Clone() Shape { return append(Shape{}, s...) }

// Static reports whether no symbol occurs in the shape.
func (s Shape) Static() bool {
	return !slices.ContainsFunc(s, func(d Dim) bool { return d < 0 })
}

// Concrete replaces the symbols by the numbers of instances and bags.
func (s Shape) Concrete(n, b int) []int {
	out := make([]int, len(s))
	for i, d := range s {
		switch d {
		case N:
			out[i] = n
		case B:
			out[i] = b
		default:
			out[i] = int(d)
		}
	}
	return out
}

// Broadcast returns the shape of an element-wise operation on two values: shapes are aligned at the
// right, and an axis of size 1 is repeated.
func Broadcast(a, b Shape) (Shape, error) {
	n := max(len(a), len(b))
	out := make(Shape, n)
	for i := range out {
		da, db := Dim(1), Dim(1)
		if j := i - (n - len(a)); j >= 0 {
			da = a[j]
		}
		if j := i - (n - len(b)); j >= 0 {
			db = b[j]
		}
		switch {
		case da == db, db == 1:
			out[i] = da
		case da == 1:
			out[i] = db
		default:
			return nil, fmt.Errorf("shapes %v and %v do not fit together: %v against %v", a, b, da, db)
		}
	}
	return out, nil
}

// volume returns the number of elements as the product of the constant sizes and the powers of N
// and B. Two shapes have the same number of elements for every batch exactly if all three agree.
func (s Shape) volume() (size, ns, bs int) {
	size = 1
	for _, d := range s {
		switch d {
		case N:
			ns++
		case B:
			bs++
		default:
			size *= int(d)
		}
	}
	return size, ns, bs
}

// maxSize bounds the constant part of a shape. A larger one is a mistake; below it no product or
// sum of sizes overflows.
const maxSize = 1 << 40

// check reports sizes that are not allowed.
func (s Shape) check() error {
	size := 1
	for _, d := range s {
		if d == N || d == B {
			continue
		}
		if d < 1 {
			return fmt.Errorf("shape %v has the extent %d; extents are at least 1", s, int(d))
		}
		if int(d) > maxSize/size {
			return fmt.Errorf("shape %v is too large", s)
		}
		size *= int(d)
	}
	return nil
}

// Elements returns the number of elements for n instances in b bags.
func (s Shape) Elements(n, b int) float64 {
	total := 1.0
	for _, e := range s.Concrete(n, b) {
		total *= float64(e)
	}
	return total
}
