// Rules of the loss and of the schedule of the label weights.

package language

import (
	"go/ast"
	"slices"

	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/language/schema"
)

func (c *checker) resolveLosses() {
	seen := map[string]diag.Pos{}
	kept := c.spec.Loss[:0:0]
	for i := range c.spec.Loss {
		l := &c.spec.Loss[i]
		if slices.Contains(l.Row().Reads, "a") && !c.hasAttention() {
			if !l.Kind.Written() || c.ExtendedBy(l.Kind.Pos, c.modelPos()) {
				continue // the user did not request scores: the term is a default or inherited
			}
			note(c.add(l.Kind.Pos, "the %s loss needs attention scores, which this model lacks", l.Kind.V),
				"add an attention block, name an equation with model.attention, or leave the term out")
		}
		kept = append(kept, *l)
		name, pos := l.Kind.V, l.Kind.Pos
		if name == "equation" {
			name, pos = l.Name.V, l.Name.Pos
			if name == "" {
				continue
			}
			if !schema.IsIdentifier(name) {
				note(c.add(pos, "%q cannot be the name of a loss term", name),
					"a name has letters, digits and _, and starts with a letter")
			} else if schema.Find(LossTerms, name) != nil {
				c.add(pos, "%s is the name of a built-in loss term; take another", name)
				continue
			}
		}
		if first, ok := seen[name]; ok {
			note(c.add(pos, "a second loss term %s", name), "the first is at %s", first)
		}
		seen[name] = pos
	}
	if len(kept) == 0 && len(c.spec.Loss) > 0 {
		l := c.spec.Loss[0].Kind
		note(c.add(c.modelPos(), "no term of the loss is left: %s needs attention scores, which this model lacks", l.V),
			"the loss is at %s", l.Pos)
	}
	c.spec.Loss = kept
}

// checkSchedule reports a schedule of lambda that an update without lambda ignores.
func (c *checker) checkSchedule() {
	w := &c.spec.Weights
	if !c.spec.usesLambda() {
		c.useless("weights.schedule", w.Schedule.Pos, w.Update.Text.Pos, ": weights.update does not use lambda",
			"the update is at %s", w.Update.Text.Pos)
	}
}

// usesLambda reports whether any equation or Eq. 7 reads the momentum lambda.
func (s *Spec) usesLambda() bool {
	if s.Weights.Update == nil || s.Weights.Update.Expr == nil {
		return true
	}
	found := false
	look := func(eq *Equation) {
		if eq.Expr != nil {
			eq.names(func(x *ast.Ident) { found = found || x.Name == "lambda" })
		}
	}
	look(s.Weights.Update)
	for i := range s.Loss {
		look(&s.Loss[i].Equation)
	}
	for i := range s.Let {
		look(&s.Let[i])
	}
	return found
}
