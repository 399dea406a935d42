// Random sections other than the model.

package modeltest

import (
	"fmt"
	"slices"

	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/language"
)

// data draws instances of one of three kinds: rows of features, small tables, small images.
func (d *draw) data() {
	d.classes = d.between(2, 6)
	switch kind := d.IntN(10); {
	case kind < 5:
		d.instance = []int{d.between(1, 8)}
	case kind < 6:
		d.instance = []int{d.between(1, 3), d.between(2, 3)}
	default:
		d.instance = []int{d.between(1, 2), d.between(4, 8), d.between(4, 8)}
	}
	d.shape = d.instance
	d.line("data:")
	d.line("  set: generated:prototypes")
	smallest := d.between(1, 4)
	d.line("  generated: {bags: %d, classes: %d, features: %d, candidates: %d, positives: %s, min_size: %d, max_size: "+
		"%d, noise: %s, seed: %d}",
		d.between(12, 24), d.classes, ndarray.Size(d.instance), d.IntN(d.classes), d.number(0.1, 1),
		smallest, smallest+d.IntN(6), d.number(0, 1), d.IntN(1000))
	if d.multi {
		d.line("  labels: multi")
	}
	if len(d.instance) > 1 || d.chance(0.3) {
		d.line("  shape: %s", list(d.instance))
	}
	if d.chance(0.3) {
		d.line("  classes: %d", d.classes)
	}
	d.line("  normalize: %s", d.one("none", "training", "training", "all"))
	d.line("  split: {train: %s, seed: %d}", d.number(0.5, 0.8), d.IntN(100))
}

const weightless = "attention: {weight: 0.0}"

// loss draws the built-in terms and equations.
func (d *draw) loss() {
	if d.chance(0.1) {
		return // the default terms
	}
	if d.chance(0.85) {
		d.terms = append(d.terms, d.one("disambiguation", "disambiguation: 0.7", "disambiguation: {weight: 1.5}"))
	}
	if d.scored && d.chance(0.6) {
		d.terms = append(d.terms, d.one("attention", "attention: 0.05", weightless))
	}
	equations := d.lossEquations()
	for i := 0; i < 3 && (len(d.terms) == 0 || d.chance(0.35)); i++ {
		d.terms = append(d.terms, fmt.Sprintf("equation: {name: term%d, value: \"%s\"%s}", i+1,
			equations[d.IntN(len(equations))](), d.one("", ", weight: 0.3", ", weight: 1e-2")))
	}
	if len(d.terms) == 1 && d.terms[0] == weightless {
		d.terms[0] = "attention" // a loss without any weight is an error
	}
	for _, term := range language.LossTerms { // terms that no draw has, by the seed, so that other specs do not change
		known := []string{"disambiguation", "binary_cross_entropy", "attention", "equation"}
		if !slices.Contains(known, term.Name) && d.seed%8 == 6 && term.Fits(d.multi) &&
			(d.scored || !slices.Contains(term.Reads, "a")) {
			d.terms = append(d.terms, term.Name)
		}
	}
}

// lossEquations returns functions that draw the equation of a loss term.
func (d *draw) lossEquations() []func() string {
	var list []func() string
	plain := func(texts ...string) {
		for _, text := range texts {
			list = append(list, func() string { return text })
		}
	}
	plain("-mean(sum(p * logp, 1))",
		"mean(sum((p - w) * (p - w), 1))",
		"-mean(log(sum(S * p, 1) + 1e-6))",
		"(1 - lambda) * mean(max(p, 1))",
		"t / T * mean(sum(w * abs(logp), -1))",
		"-sum(w * logp) / sum(S)",
		"-mean(sum(stop_gradient(p) * logp, 1)) / k",
		"mean(maximum(0.1 - p, 0))",
		"-mean(sum(masked_softmax(stop_gradient(logp), S) * logp, 1))")
	if d.scored {
		plain("mean(bag_sum(a * (1 - a)))",
			"mean(bag_max(a) - bag_min(a))",
			"sum((bag_max(a) - 0.3) * (bag_max(a) - 0.3))",
			"mean(a) * mean(sum(p * p, 1))")
		list = append(list, func() string {
			return fmt.Sprintf("mean(relu(bag_max(a) - %s))", d.named(0.1, 0.5))
		})
	}
	list = append(list, func() string { return fmt.Sprintf("-%s * mean(sum(p * logp, 1))", d.named(0.1, 0.3)) })
	for _, name := range d.learned {
		plain(fmt.Sprintf("0.01 * sum(%s * %s)", name, name))
	}
	return list
}

// weights draws the update of the label weights, which bags with one label have. An update without
// lambda has no schedule.
func (d *draw) weights() {
	if d.multi {
		return
	}
	d.line("weights:")
	d.line("  order: %s", d.one("before_loss", "after_loss", "after_step"))
	d.line("  first_epoch: %d", d.IntN(2))
	if d.update != "" {
		d.line("  update: \"%s\"", d.update)
		d.line("  schedule: %s", d.one("linear", "progressive", "averaging"))
		return
	}
	if d.chance(0.15) {
		d.line("  update: \"%s\"", d.one("w", "S / sum(S, 1)", "softmax(logp - 100 * (1 - S))",
			"maximum(w, 0.5 * S) / sum(maximum(w, 0.5 * S), 1)"))
		return
	}
	if d.chance(0.3) {
		d.line("  update: \"%s\"", d.one(
			"lambda * w + (1 - lambda) * S * p / (sum(S * p, 1) + 1e-9)",
			"(w + lambda * S * p) / sum(w + lambda * S * p, 1)",
			"lambda * w + (1 - lambda) * softmax(logp - 1e30 * (1 - S))",
			"lambda * w + (1 - lambda) * masked_softmax(logp, S)"))
	}
	d.line("  schedule: %s", d.one("linear", "linear", "progressive", "averaging"))
}

func (d *draw) train() {
	d.line("train:")
	d.line("  epochs: %d", d.between(1, 4))
	d.line("  batch: %d", d.between(1, 6))
	d.line("  seed: %d", d.IntN(1000))
	d.line("  lr: %s", d.number(0.01, 0.1))
	if d.chance(0.25) {
		d.line("  momentum: 0.0")
		d.line("  nesterov: false")
	} else {
		d.line("  momentum: %s", d.number(0.1, 0.95))
		d.line("  nesterov: %s", d.one("true", "false"))
	}
	d.line("  weight_decay: %s", d.one("0.0", "0.0001", "0.01"))
	d.line("  schedule: %s", d.one("cosine", "constant"))
	d.line("  eval_every: %d", d.between(1, 2))
	if d.chance(0.3) {
		d.line("  clip: %s", d.number(0.1, 1))
	}
}

func (d *draw) export() {
	d.line("export: {signature: %s, opset: %d}", d.one("bag", "bag", "batch"), d.between(language.MinOpset,
		language.MaxOpset))
}
