// Element-wise operations of two rows.

package gorgonia

import "github.com/miplc/miplc/graph"

// binaryTable has the loops of the element-wise functions of two numbers.
func binaryTable[T Float]() map[graph.Op]binaryRows[T] {
	return map[graph.Op]binaryRows[T]{
		graph.OpAdd: {
			value: func(out []T, a, b operand[T]) {
				x, y := 0, 0
				for i := range out {
					out[i] = a.v[x] + b.v[y]
					x, y = x+a.step, y+b.step
				}
			},
			gradient: func(_ int, r gradientRow[T]) { r.add(1) },
		},
		graph.OpSub: {
			value: func(out []T, a, b operand[T]) {
				x, y := 0, 0
				for i := range out {
					out[i] = a.v[x] - b.v[y]
					x, y = x+a.step, y+b.step
				}
			},
			gradient: func(i int, r gradientRow[T]) { r.add(T(1 - 2*i)) },
		},
		graph.OpMul: {
			value: func(out []T, a, b operand[T]) {
				x, y := 0, 0
				for i := range out {
					out[i] = a.v[x] * b.v[y]
					x, y = x+a.step, y+b.step
				}
			},
			gradient: func(_ int, r gradientRow[T]) { r.times() },
		},
		graph.OpDiv: {
			value: func(out []T, a, b operand[T]) {
				x, y := 0, 0
				for i := range out {
					out[i] = a.v[x] / b.v[y]
					x, y = x+a.step, y+b.step
				}
			},
			gradient: func(i int, r gradientRow[T]) {
				if i == 0 {
					r.each(func(_, b, _ T) T { return 1 / b })
				} else {
					r.each(func(b, _, y T) T { return -y / b })
				}
			},
		},
		graph.OpMaximum:        chosen(func(a, b T) bool { return a > b }),
		graph.OpMinimum:        chosen(func(a, b T) bool { return a < b }),
		graph.OpGreater:        compared(func(a, b T) bool { return a > b }),
		graph.OpGreaterOrEqual: compared(func(a, b T) bool { return a >= b }),
	}
}

// chosen makes the loops of a function whose value is the operand that wins, or NaN. The gradient goes to this
// operand; on ties each gets half.
func chosen[T Float](wins func(self, other T) bool) binaryRows[T] {
	rows := binaryRows[T]{value: func(out []T, a, b operand[T]) {
		for i := range out {
			if out[i] = a.at(i); wins(b.at(i), out[i]) || b.at(i) != b.at(i) {
				out[i] = b.at(i)
			}
		}
	}}
	rows.gradient = func(_ int, r gradientRow[T]) {
		r.each(func(self, other, _ T) T {
			switch {
			case wins(self, other):
				return 1
			case self == other:
				return 0.5
			}
			return 0
		})
	}
	return rows
}

// compared makes the loops of a comparison, which has no gradient: 1 where it is true, else 0.
func compared[T Float](f func(a, b T) bool) binaryRows[T] {
	return binaryRows[T]{value: func(out []T, a, b operand[T]) {
		for i := range out {
			if out[i] = 0; f(a.at(i), b.at(i)) {
				out[i] = 1
			}
		}
	}}
}
