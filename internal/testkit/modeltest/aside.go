// Equations beside the model, for random specs.

package modeltest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/miplc/miplc/internal/ndarray"
)

// Prefixes of the names of parameters that predictions do not depend on.
const (
	ofLoss     = "gl"
	ofUpdate   = "gu"
	ofLogProbs = "gp"
)

// Aside returns what depends on a parameter that predictions do not depend on, by its name. ok is
// false for other parameters.
func Aside(name string) (use string, ok bool) {
	for head, use := range map[string]string{
		ofLoss: "only a loss", ofUpdate: "only the update", ofLogProbs: "only log_probabilities",
	} {
		if strings.HasPrefix(name, head) {
			return use, true
		}
	}
	return "", false
}

// aside adds parameters that predictions do not depend on: of a loss, of the update of the label
// weights, of log_probabilities. They come from a separate stream, so that the other draws do not
// change.
func (d *draw) aside(seed uint64) {
	rest := d.Rand
	defer func() { d.Rand = rest }()
	d.Rand = ndarray.NewStream(seed, "random spec aside")
	if d.chance(0.15) {
		d.lossParam()
	}
	if !d.multi && d.chance(0.15) {
		g := d.asideParam(ofUpdate, d.perClass())
		d.update = fmt.Sprintf("lambda * w + (1 - lambda) * masked_softmax(logp + %s, S)", g)
	}
	d.rawScores()
	if p, ok := d.withoutLogarithm(); ok && d.chance(0.25) {
		d.let("logs", "log(%s + 1e-6) * (1 + 0.1 * %s)", p, d.asideParam(ofLogProbs, d.perClass()))
		d.outputs = append(d.outputs, "log_probabilities: logs")
	}
	d.share()
}

// rawScores may declare the input of the scores as the attention, if no loss needs scores between 0
// and 1.
func (d *draw) rawScores() {
	at := slices.Index(d.outputs, "attention: score")
	for _, term := range d.terms {
		if strings.HasPrefix(term, "attention") || strings.Contains(term, "(a") || strings.Contains(term, "* a") {
			return
		}
	}
	if at < 0 || len(d.terms) == 0 || d.chance(0.3) {
		return
	}
	raw := "s"
	if slices.ContainsFunc(d.lets, func(l string) bool { return strings.HasPrefix(l, "loga:") }) {
		raw = "loga"
	}
	d.outputs[at] = "attention: " + raw
}

// withoutLogarithm returns the name of the probabilities if the model does not define their
// logarithm.
func (d *draw) withoutLogarithm() (p string, ok bool) {
	p = "p"
	for _, line := range append(d.outputs, d.lets...) {
		name, value, _ := strings.Cut(line, ": ")
		switch name {
		case "probabilities":
			p = value
		case "logp", "log_probabilities":
			return "", false
		}
	}
	return p, true
}

// lossParam adds a loss term of predictions and a parameter.
func (d *draw) lossParam() {
	text := ""
	if d.chance(0.5) {
		text = fmt.Sprintf("-mean(sum(S * log_softmax(logp + %s), 1))", d.asideParam(ofLoss, d.perClass()))
	} else {
		shapes := [][]int{nil, {1}, {3}, {2, 3}, {2, 1, 3}}
		text = fmt.Sprintf("0.1 * mean(max(p, 1)) * sum(%s * %[1]s)", d.asideParam(ofLoss, shapes[d.IntN(len(shapes))]))
	}
	d.terms = append(d.terms, fmt.Sprintf("equation: {name: aside, value: %q}", text))
}

// perClass returns the shape of a parameter with one row per class.
func (d *draw) perClass() []int {
	shapes := [][]int{nil, {1}, {d.classes}, {1, d.classes}}
	return shapes[d.IntN(len(shapes))]
}

// asideParam declares a parameter that starts near 0.
func (d *draw) asideParam(letter string, shape []int) string {
	return d.param(letter, shape, "init: normal, scale: 0.3")
}
