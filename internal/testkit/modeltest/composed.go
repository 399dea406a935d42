// Random equations with functions of several ops.

package modeltest

import (
	"fmt"
	"strings"

	"github.com/miplc/miplc/internal/ndarray"
)

// composed adds functions of several operations, comparisons, lists of numbers and functions of the
// spec. They come from a separate stream, so that the other draws do not change.
func (d *draw) composed(x value) value {
	rest := d.Rand
	defer func() { d.Rand = rest }()
	d.Rand = ndarray.NewStream(d.seed, "random spec composed")
	for d.chance(0.4) {
		x = d.composedMove(x)
	}
	return x
}

// composedMove computes new features of the instances from x.
func (d *draw) composedMove(x value) value {
	y, c := value{d.name("x"), x.columns}, x.columns
	to := func(format string, args ...any) value { d.let(y.name, format, args...); return y }
	weights := func(width int) string {
		share := "softmax"
		if width == 1 { // a softmax of one column is 1
			share = "sigmoid"
		}
		return fmt.Sprintf("%s(matmul(%s, %s))", share, x.name, d.param("V", []int{c, width}, ""))
	}
	switch d.IntN(12) {
	case 0:
		return to("%s + 0.1 * layer_norm(%s, %s, %s)", x.name, x.name, d.param("g", d.rowOrNumber(c), "init: ones"),
			d.param("o", []int{c}, "init: zeros"))
	case 1:
		return to("%s + 0.1 * bag_norm(%s, %s, %s)", x.name, x.name, d.param("g", []int{c}, "init: ones"),
			d.param("o", d.rowOrNumber(c), "init: zeros"))
	case 2:
		extra := ""
		if d.chance(0.5) {
			w := weights(d.between(1, 2))
			extra = fmt.Sprintf(", tanh(bag_matmul(%s, %s)), bag_matmul(%s, %s) / split(bag_count(X), 1)", w, x.name, w, x.name)
		}
		return to("%s + 0.2 * bag_attention(%s, tanh(%s), %s, %d%s)", x.name, x.name, x.name, x.name, 1+(c+1)%2, extra)
	case 3:
		y.columns = d.between(1, 4)
		return to("tanh(bag_scores(%s, bag_matmul(%s, %s)) * of_bag(0.3 / bag_count(%s)))", x.name, weights(y.columns),
			x.name, x.name)
	case 4:
		width := d.between(1, 3)
		if y.columns = width * c; y.columns > maxColumns {
			return x
		}
		return to("of_bag(flatten(bag_matmul(%s, %s)) / bag_count(%s))", weights(width), x.name, x.name)
	case 5: // values computed in training may differ only by rounding
		return to("%s * (0.5 + bag_top(matmul(H, %s), %d))", x.name, d.param("V", []int{d.shape[0], 1},
			"init: normal, scale: 0.4"), d.between(1, 3))
	case 6:
		return to("%s * of_bag(1 - 0.5 * (bag_count(%s) %s %d))", x.name, x.name, d.one("==", ">=", "<="), d.between(1, 4))
	case 7:
		return to("%s * (1 - 0.1 * (t %s 2) + 0.1 * (%s > 1.37))", x.name, d.one(">", "<"), x.name)
	case 8:
		return to("dropout(%s, %s)", x.name, d.named(0.1, 0.5))
	case 9:
		shared := d.param("n", []int{c}, "init: constant, scale: 0.1")
		return to("flatten(split(%s * (1 - 0.5 * random(%s, 0.4, 0.4) - 0.2 * uniform(sum(%s, 1), 0.5) + %s * "+
			"normal(%s)), %d))", x.name, x.name, x.name, shared, shared, c)
	case 10:
		list := d.name("costs")
		numbers := make([]string, c)
		for i := range numbers {
			numbers[i] = d.number(0.5, 1.5)
		}
		d.numbers = append(d.numbers, fmt.Sprintf("%s: [%s]", list, strings.Join(numbers, ", ")))
		return to("%s * %s", x.name, list)
	}
	return d.functionOf(x, y)
}

// functionOf defines a function of the spec and lets y be its result.
func (d *draw) functionOf(x, y value) value {
	c, f, width := x.columns, d.name("f"), d.between(1, 4)
	d.functions = append(d.functions, fmt.Sprintf("%s: {args: [q], let: {r: \"tanh(matmul(q, %s))\"}, value: "+
		"\"matmul(r, %s) + %s\"}",
		f, d.param("V", []int{c, width}, ""), d.param("V", []int{width, c}, ""), d.param("o", []int{c}, "init: zeros")))
	d.let(y.name, "%s(%s) + 0.5 * %s(-%s)", f, x.name, f, x.name)
	return y
}

// share may add an equation that two loss terms use.
func (d *draw) share() {
	if len(d.terms) == 0 || !d.chance(0.15) {
		return
	}
	name := d.name("v")
	d.shared = append(d.shared, name+": 1 - sum(S * p, 1) * max(w, 1)")
	d.terms = append(d.terms, fmt.Sprintf("equation: {name: shared1, value: \"0.2 * mean(%s)\"}", name),
		fmt.Sprintf("equation: {name: shared2, value: \"0.1 * mean(%s * %s)\"}", name, name))
}
