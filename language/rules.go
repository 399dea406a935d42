// The checker of the rules across keys.

package language

import (
	"strings"

	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/language/schema"
)

// checker checks the rules across the keys of a spec. Package compile checks shapes, because they
// depend on the data.
type checker struct {
	*schema.Origin
	spec    *Spec
	faults  diag.List
	inModel int // faults of the model; rules that would follow from them are skipped
	inData  int // faults of the data, whose shapes are then unknown
}

// resolve completes a spec and reports settings that do not fit each other. The functions named check
// only report; those named resolve also fill in defaults, drop inherited settings without effect, and
// replace inherited ones that data.labels or the learner excludes. The order matters: resolveOutputs
// finds the outputs that resolveLosses and resolveEquations look up.
func (c *checker) resolve() {
	c.checkData()
	c.checkTemperature()
	c.resolveSearch()
	if c.inData > 0 {
		c.spec.Data.Set.V = "" // unknown
	}
	if c.spec.Fitted() {
		c.resolveLearner()
		schema.ResetInapplicable(specRows, c.spec)
		c.spec.Train.Epochs.V = c.spec.Learner.Args["iterations"].Int()
		if !c.spec.usesEngine() {
			c.spec.Train.Engine.V = NoEngine
		}
		return
	}
	before := len(c.faults)
	c.checkBlocks()
	c.resolveOutputs()
	c.inModel += len(c.faults) - before
	c.resolveMulti()
	c.resolveLosses()
	c.resolveOptimizer()
	c.resolveRate()
	c.checkWarmStart()
	c.resolveEquations()
	c.checkBest()
	c.checkClassWeights()
	schema.ResetInapplicable(specRows, c.spec)
}

func (c *checker) add(pos diag.Pos, format string, args ...any) *diag.Diagnostic {
	d := c.AddSource(diag.Errorf(pos, format, args...))
	if c.full() {
		return &d // dropped
	}
	c.faults = append(c.faults, d)
	return &c.faults[len(c.faults)-1]
}

// full reports that further faults are not kept, so that rules with suggestions need not be checked.
func (c *checker) full() bool { return len(c.faults) >= diag.MaxFound }

func note(d *diag.Diagnostic, format string, args ...any) { *d = d.WithNote(format, args...) }

// writtenWith reports whether a setting was written in the file of cause or in a file that extends it.
// Otherwise it is inherited, and cause may make it useless.
func (c *checker) writtenWith(setting, cause diag.Pos) bool {
	return !setting.IsZero() && !c.ExtendedBy(setting, cause)
}

// useless reports a key without effect if it was written with its cause, see writtenWith; why continues the message.
func (c *checker) useless(key string, pos, cause diag.Pos, why, format string, args ...any) {
	if c.writtenWith(pos, cause) {
		note(c.add(pos, "%s has no effect%s", key, why), format, args...)
	}
}

// uselessSection reports the keys of a section that has no effect, like useless.
func (c *checker) uselessSection(section string, rows []schema.Row, cause diag.Pos, why, format string, args ...any) {
	for i := range rows {
		c.useless(section+"."+rows[i].Name, rows[i].PosOf(c.spec), cause, why, format, args...)
	}
}

// clash reports settings that conflict, at the one that was written last, in the file that extends
// the others. Notes have the positions of the others. Defaults have no position.
func (c *checker) clash(positions []diag.Pos, format string, args ...any) *diag.Diagnostic {
	var last diag.Pos
	for _, p := range positions {
		if last.IsZero() || !p.IsZero() && c.ExtendedBy(last, p) {
			last = p
		}
	}
	d := c.add(last, format, args...)
	for _, p := range positions {
		switch {
		case p.IsZero() || p.SameSource(last):
		case p.File == "": // its position is its text
			note(d, "against %s", p)
		case p.Setting != "":
			note(d, "against %s: %s", p, strings.Replace(p.Setting, "=", ": ", 1))
		default:
			note(d, "against %s: %s", p, strings.TrimSpace(c.AddSource(diag.Diagnostic{Pos: p}).Line))
		}
	}
	return d
}
