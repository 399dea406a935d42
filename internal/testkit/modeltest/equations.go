// Random equations.

package modeltest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/language"
)

// value is the name and the number of columns of a value of the equations. Its rows are instances or
// bags.
type value struct {
	name    string
	columns int
}

// maxColumns is the maximum number of columns of a concat.
const maxColumns = 12

// equations draws the rest of the model after the feature blocks: scores unless an attention block computes them,
// pooling, probabilities.
func (d *draw) equations(hasScores bool) {
	if len(d.shape) > 1 {
		d.flatten()
	}
	x := value{"H", d.shape[0]}
	if len(d.blocks) == 0 && d.chance(0.5) {
		x.name = "X"
	}
	for moves := d.IntN(4); moves > 0; moves-- {
		x = d.instanceMove(x)
	}
	x = d.widened(d.called(d.composed(x)))
	attention, logarithm := "", ""
	if hasScores {
		attention, logarithm = "a", "loga"
	} else if d.chance(0.85) {
		attention, logarithm = d.scores(x)
	}
	z := d.pool(x, attention, logarithm)
	for moves := d.IntN(3); moves > 0; moves-- {
		z = d.bagMove(z)
	}
	d.link(z)
}

// instanceMove computes new features of the instances from x, all from one bag.
func (d *draw) instanceMove(x value) value {
	y, c := value{d.name("x"), x.columns}, x.columns
	to := func(format string, args ...any) value { d.let(y.name, format, args...); return y }
	width := d.between(1, 8)
	switch d.IntN(23) {
	case 0, 1, 2:
		y.columns = width
		return to("%s(matmul(%s, %s) + %s)", d.one("tanh", "sigmoid", "softplus", "relu"), x.name,
			d.param("V", []int{c, width}, ""), d.param("o", []int{width}, "fan_in: 4"))
	case 3:
		y.columns = width
		return to("tanh(matmul(%s, transpose(%s)) - %s)", x.name, d.param("V", []int{width, c}, ""),
			d.param("o", nil, "init: zeros"))
	case 4:
		return to("relu(%s) + 0.1 * bag_attention(%s, %s, %s)", x.name, x.name, x.name, x.name)
	case 5:
		return to("sqrt(abs(%s) + 0.25)", x.name)
	case 6:
		return to("exp(clamp(0.5 * %s - 1, -3, 1))", x.name)
	case 7:
		return to("log(softplus(%s) + 0.5)", x.name)
	case 8:
		return to("maximum(%s, -0.3 * %s)", x.name, x.name)
	case 9:
		return to("minimum(%s, 1.5) + 0.1 * erf(%s)", x.name, x.name)
	case 10:
		if 2*c > maxColumns {
			return x
		}
		y.columns = 2 * c
		return to("concat(%s, tanh(%s))", x.name, x.name)
	case 11:
		return to("%s - of_bag(bag_mean(%s))", x.name, x.name)
	case 12:
		return to("%s / (1 + of_bag(bag_max(abs(%s))))", x.name, x.name)
	case 13:
		return to("%s * of_bag(tanh(bag_min(%s)))", x.name, x.name)
	case 14, 15:
		if c == 1 { // a softmax of one column is 1
			return to("tanh(%s)", x.name)
		}
		return to(d.one("%s + log_softmax(%[1]s) * 0.1", "softmax(%s)"), x.name)
	case 16:
		return to("%s - mean(%s, %s)", x.name, x.name, d.one("1", "-1"))
	case 17:
		return to("%s / (0.5 + sum(abs(%s), 1))", x.name, x.name)
	case 18:
		return to("%s - max(%s, 1)", x.name, x.name)
	case 19:
		return to("%s * %s", x.name, d.param("g", d.rowOrNumber(c), "init: ones"))
	case 20:
		return to("tanh(%s * (%s + 0.5 * t / T))", x.name, d.named(0.2, 0.6))
	case 21:
		return to("%s * of_bag(1 + 1 / bag_count(%s))", x.name, x.name)
	default:
		return to("%s + 0.5 * stop_gradient(tanh(%s))", x.name, x.name)
	}
}

// wide reports whether the spec has layers that are wider than the compiler follows column by column (1,024). It
// depends on the seed and not on a draw, so that other specs do not change.
func (d *draw) wide() bool { return d.seed%16 == 9 }

// otherFunctions lists the functions of one number that no other draw calls.
var otherFunctions = slices.DeleteFunc(graph.AllOps(), func(op graph.Op) bool {
	switch op {
	case graph.OpExp, graph.OpLog, graph.OpSqrt, graph.OpAbs, graph.OpTanh, graph.OpSigmoid, graph.OpSoftplus,
		graph.OpRelu, graph.OpErf:
		return true
	}
	return op.Function() == nil || language.FunctionNamed(strings.ToLower(op.String())) == nil
})

// called adds a function that no other draw calls. Like wide, it depends on the seed.
func (d *draw) called(x value) value {
	if len(otherFunctions) == 0 || d.seed%8 != 7 {
		return x
	}
	y, op := value{d.name("x"), x.columns}, otherFunctions[int(d.seed/8)%len(otherFunctions)]
	d.let(y.name, "tanh(%s(%s))", strings.ToLower(op.String()), x.name)
	return y
}

// widened computes features from wide values.
func (d *draw) widened(x value) value {
	if !d.wide() {
		return x
	}
	y, first := value{d.name("x"), 3}, 600
	second := []int{424, 425, 500, 600}[d.seed/16%4] // 1,024 to 1,200 together
	d.let("wide", "concat(softmax(matmul(%s, %s)), tanh(matmul(%s, %s)))", x.name,
		d.param("V", []int{x.columns, first}, "init: fan_in"), x.name, d.param("V", []int{x.columns, second}, "init: fan_in"))
	d.let(y.name, "tanh(matmul(wide, %s)) * (1 + max(wide, 1) - mean(abs(wide), 1))",
		d.param("V", []int{first + second, y.columns}, "init: fan_in"))
	return y
}

// rowOrNumber draws the shape of a factor for c columns.
func (d *draw) rowOrNumber(c int) []int {
	if d.chance(0.5) {
		return nil
	}
	return []int{c}
}

// scores draws attention scores from the features. It returns their name and the name of their
// logarithm, or "".
func (d *draw) scores(x value) (attention, logarithm string) {
	d.scored = true
	h, c := x.name, x.columns
	if d.chance(0.4) { // gated, Eq. 2
		width := d.between(1, 5)
		h, c = "gated", width
		d.let(h, "tanh(matmul(%s, %s) + %s) * sigmoid(matmul(%s, %s) + %s)",
			x.name, d.param("V", []int{x.columns, width}, ""), d.param("o", []int{width}, "init: zeros"),
			x.name, d.param("V", []int{x.columns, width}, ""), d.param("o", []int{width}, "init: ones"))
	}
	u := d.param("u", []int{c, 1}, "")
	if d.chance(0.5) {
		d.let("s", "matmul(%s, %s)", h, u)
	} else {
		d.let("s", "matmul(%s, %s) + %s", h, u, d.param("e", d.rowOrNumber(1), "init: zeros"))
	}
	attention = d.one("a", "score")
	if attention != "a" {
		d.outputs = append(d.outputs, "attention: "+attention)
	}
	switch d.IntN(3) {
	case 0:
		d.let("loga", "-softplus(-s)")
		d.let(attention, "exp(loga)")
		return attention, "loga"
	case 1:
		d.let(attention, "sigmoid(s)")
	default:
		d.let(attention, "bag_softmax(s)")
	}
	return attention, ""
}

// pool computes one row per bag.
func (d *draw) pool(x value, attention, logarithm string) value {
	z, c := value{"z", x.columns}, x.columns
	to := func(format string, args ...any) value { d.let(z.name, format, args...); return z }
	kind := d.IntN(9)
	if attention != "" && kind < 5 {
		switch {
		case logarithm != "" && kind < 3:
			return to("bag_sum(bag_softmax(%s) * %s)", logarithm, x.name)
		case kind < 2:
			return to("bag_sum(%s * %s) / (0.1 + bag_sum(%s))", attention, x.name, attention)
		case kind < 4:
			return to("bag_mean(%s * %s)", attention, x.name)
		}
		return to("bag_max(%s * %s)", attention, x.name)
	}
	switch kind % 4 {
	case 0:
		return to("bag_mean(%s)", x.name)
	case 1:
		return to("bag_max(%s)", x.name)
	case 2:
		return to("log(1 + bag_sum(abs(%s)))", x.name)
	}
	z.columns = 2 * c
	return to("concat(bag_max(%s), bag_min(%s))", x.name, x.name)
}

// bagMove computes a new row for each bag from z.
func (d *draw) bagMove(z value) value {
	y := value{d.name("y"), z.columns}
	to := func(format string, args ...any) value { d.let(y.name, format, args...); return y }
	switch d.IntN(7) {
	case 0, 1:
		y.columns = d.between(1, 8)
		return to("%s(matmul(%s, %s) + %s)", d.one("tanh", "relu", "softplus"), z.name,
			d.param("V", []int{z.columns, y.columns}, ""), d.param("o", []int{y.columns}, "init: zeros"))
	case 2:
		return to("abs(%s)", z.name)
	case 3:
		if 2*z.columns > 2*maxColumns {
			return z
		}
		y.columns = 2 * z.columns
		return to("concat(%s, sigmoid(%s))", z.name, z.name)
	case 4:
		return to("%s / sqrt(0.1 + sum(%s * %s, 1))", z.name, z.name, z.name)
	case 5:
		return to("%s * %s", z.name, d.param("g", d.rowOrNumber(z.columns), "init: ones"))
	default:
		return to("minimum(maximum(%s, -1), 2)", z.name)
	}
}

// link computes the probabilities.
func (d *draw) link(z value) {
	d.let("v", "matmul(%s, %s) + %s", z.name, d.param("C", []int{z.columns, d.classes}, "init: fan_in"),
		d.param("c", []int{d.classes}, fmt.Sprintf("init: fan_in, fan_in: %d", z.columns)))
	if d.multi {
		d.multiLink()
		return
	}
	switch d.IntN(5) {
	case 0:
		d.let("logp", "log_softmax(v)")
		d.let("p", "exp(logp)")
	case 1:
		d.let("p", "softmax(v)")
	case 2:
		d.let("p", "softmax(clamp(sigmoid(v), 1e-5, 0.99999))")
	case 3:
		d.let("q", "softmax(v)")
		d.let("lq", "log_softmax(v)")
		d.outputs = append(d.outputs, "probabilities: q", "log_probabilities: lq")
	default:
		d.let("e", "softplus(v) + 0.01")
		d.let("p", "e / sum(e, 1)")
	}
}
