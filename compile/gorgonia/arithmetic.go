// Element-wise operations of two rows.

package gorgonia

// Loops of the element-wise functions of two numbers.

func addRows[T Float]() binaryRows[T] {
	return binaryRows[T]{
		value: func(out []T, a, b operand[T]) {
			x, y := 0, 0
			for i := range out {
				out[i] = a.v[x] + b.v[y]
				x, y = x+a.step, y+b.step
			}
		},
		gradient: func(_ int, r gradientRow[T]) { r.add(1) },
	}
}

func subRows[T Float]() binaryRows[T] {
	return binaryRows[T]{
		value: func(out []T, a, b operand[T]) {
			x, y := 0, 0
			for i := range out {
				out[i] = a.v[x] - b.v[y]
				x, y = x+a.step, y+b.step
			}
		},
		gradient: func(i int, r gradientRow[T]) { r.add(T(1 - 2*i)) },
	}
}

func mulRows[T Float]() binaryRows[T] {
	return binaryRows[T]{
		value: func(out []T, a, b operand[T]) {
			x, y := 0, 0
			for i := range out {
				out[i] = a.v[x] * b.v[y]
				x, y = x+a.step, y+b.step
			}
		},
		gradient: func(_ int, r gradientRow[T]) { r.times() },
	}
}

func divRows[T Float]() binaryRows[T] {
	return binaryRows[T]{
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
	}
}

func maximumRows[T Float]() binaryRows[T] {
	return chosen(func(a, b T) T {
		if b > a || b != b {
			return b
		}
		return a
	}, func(self, other T) bool { return self > other })
}

func minimumRows[T Float]() binaryRows[T] {
	return chosen(func(a, b T) T {
		if b < a || b != b {
			return b
		}
		return a
	}, func(self, other T) bool { return self < other })
}

// chosen makes the loops of a function whose value is one of its operands. The gradient goes to the
// operand that wins; on ties each gets half.
func chosen[T Float](value func(a, b T) T, wins func(self, other T) bool) binaryRows[T] {
	rows := pairwise(value)
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

func greaterRows[T Float]() binaryRows[T] {
	return pairwise(func(a, b T) T {
		if a > b {
			return 1
		}
		return 0
	})
}

// pairwise makes the loops of a function without a gradient.
func pairwise[T Float](f func(a, b T) T) binaryRows[T] {
	return binaryRows[T]{value: func(out []T, a, b operand[T]) {
		for i := range out {
			out[i] = f(a.at(i), b.at(i))
		}
	}}
}
