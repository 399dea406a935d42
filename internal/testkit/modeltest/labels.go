// Random specs for bags with several labels.

package modeltest

import (
	"regexp"
	"strings"

	"github.com/miplc/miplc/internal/ndarray"
)

// drawsMulti reports whether the bags of a spec have several labels. It draws from a separate stream,
// so that the specs with one label per bag do not change.
func drawsMulti(seed uint64) bool {
	return ndarray.NewStream(seed, "random spec labels").Float64() < 0.12
}

// weightNames are the names of loss equations that specs with several labels a bag do not have.
var weightNames = regexp.MustCompile(`\b(w|lambda)\b`)

// multiTerms replaces the terms and names that need one label per bag in equations of losses.
func multiTerms(lines []string) {
	for i, line := range lines {
		line = strings.Replace(line, "disambiguation", "binary_cross_entropy", 1)
		lines[i] = weightNames.ReplaceAllStringFunc(line, func(name string) string {
			return map[string]string{"w": "S", "lambda": "0.4"}[name]
		})
	}
}

// multiLink computes the probability of each class by itself.
func (d *draw) multiLink() {
	switch d.IntN(4) {
	case 0:
		d.let("logp", "-softplus(-v)")
		d.let("p", "exp(logp)")
	case 1:
		d.let("p", "sigmoid(v)")
	case 2:
		d.let("p", "clamp(sigmoid(v), 1e-5, 0.99999)")
	default:
		d.let("e", "softplus(v) + 0.01")
		d.let("q", "e / (1 + e)")
		d.outputs = append(d.outputs, "probabilities: q")
	}
}

// multiMixture adds equations after a classifier that change its probabilities.
func (d *draw) multiMixture() {
	switch d.IntN(3) {
	case 0:
		d.let("q", "0.9 * p + 0.05")
	case 1:
		d.let("q", "sigmoid(logits * %s)", d.param("g", nil, "init: ones"))
	default:
		d.let("lq", "-softplus(-(logits + %s))", d.param("u", []int{d.classes}, "init: zeros"))
		d.let("q", "exp(lq)")
		d.outputs = append(d.outputs, "log_probabilities: lq")
	}
	d.outputs = append(d.outputs, "probabilities: q")
}
