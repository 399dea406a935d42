// Bags with any number of labels: what a spec must then say.

package language

import (
	"cmp"
	"fmt"
	"go/ast"
	"slices"
	"strings"

	"github.com/miplc/miplc/data/measure"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/language/schema"
)

// Values of data.labels. Without it, bags have a true label and candidate labels.
const (
	KnownLabels = "known" // the true label of a bag is its only candidate
	MultiLabels = "multi" // a bag has any number of true labels
	NoisyLabels = "noisy" // the true label may be outside of the candidates
)

// sigmoidLink is the link of the classifier for several labels.
const sigmoidLink = "sigmoid"

// Multi reports whether a bag has any number of true labels.
func (s *Spec) Multi() bool { return s.Data.Labels.V == MultiLabels }

// resolveMulti checks the settings that depend on the number of labels of a bag. With several
// labels, inherited and default ones for one label are replaced.
func (c *checker) resolveMulti() {
	c.resolveLink()
	c.resolveSoftmax()
	c.resolveClassTerms()
	c.checkMeasures()
	s := c.spec
	if !s.Multi() {
		c.useless("model.threshold", s.Model.Threshold.Pos, s.Data.Labels.Pos, ": the most probable class is predicted",
			"data.labels: multi predicts every class above the threshold")
		return
	}
	for i := range weightsRows {
		name := "weights." + weightsRows[i].Name
		c.needsOneLabel(c.KeyPos(name), name)
	}
	s.Weights = Weights{}
	if t := &s.Export.Temperature; t.V != (Temperature{}) {
		c.needsOneLabel(t.Pos, "export.temperature")
		t.V = Temperature{}
	}
	if t := &s.Train.Sampling; t.V == "balanced" {
		c.needsOneLabel(t.Pos, "train.sampling: balanced")
		t.V = "shuffle"
	}
}

// needsOneLabel reports a setting that has no meaning with several labels, unless it is inherited.
func (c *checker) needsOneLabel(pos diag.Pos, what string) {
	if c.writtenWith(pos, c.spec.Data.Labels.Pos) {
		note(c.add(pos, "%s needs one label per bag, but data.labels is multi", what), "data.labels is set at %s",
			c.spec.Data.Labels.Pos)
	}
}

// needsWeights completes d, the diagnostic of a name of the label weights in an equation for several labels.
// It moves the diagnostic of an inherited equation to data.labels, the setting of the user.
func (c *checker) needsWeights(eq *Equation, d diag.Diagnostic, name string) diag.Diagnostic {
	labels := c.spec.Data.Labels.Pos
	if !c.ExtendedBy(eq.Text.Pos, labels) {
		d.Text = fmt.Sprintf("%s belongs to the label weights, which data.labels: multi does not have", name)
		return d
	}
	d = c.AddSource(d)
	return diag.Errorf(labels, "the inherited losses need label weights, which data.labels: multi does not have").
		WithNote("inherited from %s: %s", d.Pos, strings.TrimSpace(d.Line))
}

// resolveLink checks the link of the classifier, and replaces the default one.
func (c *checker) resolveLink() {
	for i := range c.spec.Model.Blocks {
		link, ok := c.spec.Model.Blocks[i].Args["link"]
		isSigmoid := link.Str() == sigmoidLink
		if c.spec.Model.Blocks[i].Kind.V != "classifier" || !ok || isSigmoid == c.spec.Multi() {
			continue
		}
		switch {
		case !c.spec.Multi():
			note(c.add(link.Pos, "the link sigmoid is for bags with several labels"),
				"add data: {labels: multi}, or use softmax")
		case !link.Pos.IsZero() && !c.ExtendedBy(link.Pos, c.spec.Data.Labels.Pos):
			note(c.add(link.Pos, "the probabilities of %s sum to 1, but data.labels is multi", link.Str()),
				"use classifier: sigmoid")
		default:
			c.spec.Model.Blocks[i].Args["link"] = schema.Arg{V: sigmoidLink}
		}
	}
}

// resolveSoftmax replaces the softmax of inherited equations of the probabilities and of their logarithm by
// the sigmoid of each class. Package compile rejects that of other equations.
func (c *checker) resolveSoftmax() {
	m := &c.spec.Model
	for i := range m.Let {
		eq, form := &m.Let[i], ""
		switch eq.Name.V {
		case cmp.Or(m.Probabilities.V, "p"):
			form = "sigmoid("
		case cmp.Or(m.LogProbabilities.V, "logp"):
			form = "log(sigmoid("
		}
		call, ok := eq.Expr.(*ast.CallExpr)
		if !ok || form == "" || !c.spec.Multi() || !c.ExtendedBy(eq.Text.Pos, c.spec.Data.Labels.Pos) {
			continue
		}
		if name, ok := call.Fun.(*ast.Ident); !ok || name.Name != "softmax" && name.Name != "log_softmax" {
			continue
		}
		start, end := offsetOf(call.Args[0].Pos()), offsetOf(call.Args[0].End())
		eq.replace(form+eq.Text.V[start:end]+strings.Repeat(")", strings.Count(form, "(")), start-len(form))
	}
}

// resolveClassTerms checks the loss terms that depend on the number of labels of a bag, and replaces inherited and
// default ones for one label.
func (c *checker) resolveClassTerms() {
	several := c.spec.Multi()
	instead, replaced := classTerm(several), false
	kept := c.spec.Loss[:0:0]
	for _, l := range c.spec.Loss {
		switch {
		case l.Row().Fits(several):
		case !several:
			note(c.add(l.Kind.Pos, "the loss term %s is for bags with several labels", l.Kind.V),
				"add data: {labels: multi}, or use %s", instead)
		case l.Kind.Written() && !c.ExtendedBy(l.Kind.Pos, c.spec.Data.Labels.Pos):
			note(c.add(l.Kind.Pos, "the loss term %s needs one label per bag, but data.labels is multi", l.Kind.V), "use %s",
				instead)
		case replaced:
			continue
		default:
			l.Kind.V, replaced = instead, true
		}
		kept = append(kept, l)
	}
	c.spec.Loss = kept
}

// checkMeasures checks that the measures of validation bags fit the labels.
func (c *checker) checkMeasures() {
	for _, w := range c.spec.WatchedMeasures() {
		m := measure.Find(w.Measure.V)
		if m == nil || m.Fits(c.spec.Multi()) {
			continue
		}
		labels := "bags with one label"
		if c.spec.Multi() {
			labels = "bags with several labels"
		}
		names := slices.DeleteFunc(measure.BagNames(), func(name string) bool {
			return !measure.Find(name).Fits(c.spec.Multi())
		})
		note(c.clash([]diag.Pos{w.Measure.Pos, c.spec.Data.Labels.Pos}, "%s: %s does not fit %s", w.Key, w.Measure.V, labels),
			"measures that do: loss, %s", diag.Words(names))
	}
}
