// Random models.

package modeltest

import (
	"fmt"
	"strings"

	"github.com/miplc/miplc/internal/ndarray"
)

// model draws blocks, blocks followed by equations, or equations.
func (d *draw) model() {
	style := d.IntN(3)
	if style == 0 || len(d.instance) > 1 || d.chance(0.5) {
		d.featureBlocks()
	}
	switch style {
	case 0:
		d.bagBlocks()
	case 1:
		if d.chance(0.5) {
			d.bagBlocks()
			d.mixture()
		} else {
			d.equations(d.attentionBlock(true))
		}
	default:
		d.equations(false)
	}
}

// write writes the sections model and loss.
func (d *draw) write() {
	if d.multi {
		multiTerms(d.terms)
		multiTerms(d.shared)
	}
	d.line("model:")
	d.section("  blocks:", "    - ", d.blocks)
	d.section("  sizes:", "    ", d.sizes)
	d.section("  numbers:", "    ", d.numbers)
	d.section("  params:", "    ", d.params)
	d.section("  functions:", "    ", d.functions)
	d.section("  let:", "    ", d.lets)
	for _, l := range d.outputs {
		d.line("  %s", l)
	}
	d.section("let:", "  ", d.shared)
	d.section("loss:", "  - ", d.terms)
}

// section writes lines below a key, if there are any.
func (d *draw) section(key, indent string, lines []string) {
	if len(lines) == 0 {
		return
	}
	d.line("%s", key)
	for _, l := range lines {
		d.line("%s%s", indent, l)
	}
}

// featureBlocks draws blocks that compute one row of features per instance.
func (d *draw) featureBlocks() {
	d.convolutions()
	if len(d.shape) > 1 || d.chance(0.1) {
		d.flatten()
	}
	for layers := d.IntN(3); layers > 0; layers-- {
		d.shape = []int{d.between(1, 8)}
		d.blocks = append(d.blocks, fmt.Sprintf("dense: %d", d.shape[0]))
		if d.seed%6 == 5 { // by the seed and not by a draw, so that other specs do not change
			d.blocks = append(d.blocks, "batch_norm")
		}
		d.activation()
		d.dropout()
	}
	if d.wide() && len(d.shape) == 1 {
		d.shape = []int{4}
		d.blocks = append(d.blocks, "dense: 1100", "relu", "dense: 4", "tanh")
	}
}

func (d *draw) flatten() {
	d.blocks = append(d.blocks, "flatten")
	d.shape = []int{ndarray.Size(d.shape)}
}

func (d *draw) activation() {
	d.blocks = append(d.blocks, d.one("relu", "tanh", "sigmoid", "softplus"))
}

func (d *draw) dropout() {
	if d.chance(0.3) {
		d.blocks = append(d.blocks, fmt.Sprintf("dropout: %s", d.one("0.25", "0.5", "0.0")))
	}
}

// convolutions draws up to two rounds over images, as far as they fit.
func (d *draw) convolutions() {
	for rounds := 2; rounds > 0 && len(d.shape) == 3 && d.shape[1] >= 3 && d.shape[2] >= 3; rounds-- {
		kernel, stride, pad, channels := d.between(1, 3), d.between(1, 2), d.IntN(2), d.between(1, 4)
		d.blocks = append(d.blocks, fmt.Sprintf("conv2d: {channels: %d, kernel: %d, stride: %d, pad: %d}", channels, kernel,
			stride, pad))
		d.shape = []int{channels, (d.shape[1]+2*pad-kernel)/stride + 1, (d.shape[2]+2*pad-kernel)/stride + 1}
		d.activation()
		if d.chance(0.2) {
			d.dropout()
		}
		if window := d.between(1, 3); d.chance(0.7) && d.shape[1] >= window && d.shape[2] >= window {
			stride := d.between(1, 2)
			d.blocks = append(d.blocks, d.pooling(window, stride))
			d.shape = []int{channels, (d.shape[1]-window)/stride + 1, (d.shape[2]-window)/stride + 1}
		}
	}
}

func (d *draw) pooling(window, stride int) string {
	if window == stride {
		return fmt.Sprintf("maxpool2d: %d", window)
	}
	return fmt.Sprintf("maxpool2d: {kernel: %d, stride: %d}", window, stride)
}

// attentionBlock may add an attention block. It reports whether it did.
func (d *draw) attentionBlock(likely bool) bool {
	if !likely && d.chance(0.8) || len(d.shape) > 1 || d.chance(0.15) {
		return false
	}
	args := ""
	if d.chance(0.5) {
		args = fmt.Sprintf(", hidden: %d", d.between(1, 6))
	}
	d.blocks = append(d.blocks, d.one("attention", "attention: disambiguation",
		fmt.Sprintf("attention: {gates: %s, scorer: %s%s, width: %d}", d.one("separate", "shared"), d.one("linear", "mlp"),
			args, d.IntN(5))))
	d.scored = true
	return true
}

// bagBlocks draws attention, pool and classifier.
func (d *draw) bagBlocks() {
	if len(d.shape) > 1 {
		d.flatten()
	}
	pools := []string{"mean", "max", "maxmin"}
	if d.attentionBlock(true) {
		pools = append(pools, "attention", "attention", "attention", "attention")
	}
	d.blocks = append(d.blocks, "pool: "+d.one(pools...))
	if d.chance(0.25) { // layers on the embedding of the bag
		d.blocks = append(d.blocks, fmt.Sprintf("dense: %d", d.between(1, 6)))
		d.activation()
		d.dropout()
	}
	if d.multi {
		d.blocks = append(d.blocks, "classifier"+d.one("", ": sigmoid"))
		return
	}
	d.blocks = append(d.blocks, "classifier"+d.one("", ": softmax", ": bounded_sigmoid",
		": {link: bounded_sigmoid, epsilon: 0.001}"))
}

// mixture adds equations after a classifier that change its probabilities.
func (d *draw) mixture() {
	if d.multi {
		d.multiMixture()
		return
	}
	switch d.IntN(3) {
	case 0:
		d.let("q", "0.9 * p + %g", 0.1/float64(d.classes))
	case 1:
		g := d.param("g", nil, "init: ones")
		d.let("q", "softmax(logits * %s)", g)
	default:
		u := d.param("u", []int{d.classes}, "init: zeros")
		d.let("lq", "log_softmax(logp + %s)", u)
		d.let("q", "exp(lq)")
		d.outputs = append(d.outputs, "log_probabilities: lq")
	}
	d.outputs = append(d.outputs, "probabilities: q")
}

// let adds an equation.
func (d *draw) let(name, format string, args ...any) {
	d.lets = append(d.lets, fmt.Sprintf("%s: \"%s\"", name, fmt.Sprintf(format, args...)))
}

// param declares a parameter of a shape. An empty init is drawn.
func (d *draw) param(letter string, shape []int, init string) string {
	name := d.name(letter)
	extents := make([]string, len(shape))
	for i, e := range shape {
		extents[i] = d.extent(e)
	}
	if init == "" {
		init = d.one("", "init: fan_in", "init: normal, scale: 0.4", "init: uniform, scale: 0.6")
	}
	text := "[" + strings.Join(extents, ", ") + "]"
	switch {
	case init != "":
		text = "{shape: " + text + ", " + init + "}"
	case d.chance(0.5):
		text = "{shape: " + text + "}"
	}
	d.params = append(d.params, name+": "+text)
	d.learned = append(d.learned, name)
	return name
}

// named writes a number from lo to hi, or a name for it.
func (d *draw) named(lo, hi float64) string {
	if d.chance(0.5) {
		return d.number(lo, hi)
	}
	name := d.name("beta")
	d.numbers = append(d.numbers, name+": "+d.number(lo, hi))
	return name
}

// extent writes a number, or a name for it.
func (d *draw) extent(n int) string {
	switch {
	case n == d.classes && d.chance(0.6):
		return "k"
	case len(d.shape) == 1 && n == d.shape[0] && d.chance(0.6):
		return "h"
	case n == ndarray.Size(d.instance) && d.chance(0.6):
		return "d"
	case d.chance(0.3):
		name := d.name("m")
		d.sizes = append(d.sizes, fmt.Sprintf("%s: %d", name, n))
		return name
	}
	return fmt.Sprint(n)
}
