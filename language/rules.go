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
	faults  schema.Faults
	inModel int // faults of the model; rules that would follow from them are skipped
	inData  int // faults of the data, whose shapes are then unknown
}

// rules checks how settings fit each other.
func (c *checker) rules() {
	c.dataRules()
	c.temperatureRules()
	if c.inData > 0 {
		c.spec.Data.Set.V = "" // unknown
	}
	if c.spec.Fitted() {
		c.multiLearnerRule()
		c.learnerRules()
		schema.ResetInapplicable(specRows, c.spec)
		c.spec.learnerDefaults()
		return
	}
	before := len(c.faults)
	c.blockRules()
	c.outputRules()
	c.inModel += len(c.faults) - before
	c.multiRules()
	c.lossRules()
	c.optimizerRules()
	c.rateRules()
	c.warmStartRules()
	c.equationRules()
	c.bestRules()
	c.classWeightRules()
	schema.ResetInapplicable(specRows, c.spec)
}

func (c *checker) add(pos diag.Pos, format string, args ...any) *diag.Diagnostic {
	c.faults.Add(c.Show(diag.Errorf(pos, format, args...)))
	return &c.faults[len(c.faults)-1]
}

func note(d *diag.Diagnostic, format string, args ...any) { *d = d.WithNote(format, args...) }

// pointless reports whether a setting has no effect because of cause, and was written in the same
// file as cause or in a file that extends it. Inherited settings without effect are allowed.
func (c *checker) pointless(setting, cause diag.Pos) bool {
	return !setting.IsZero() && !c.Below(setting, cause)
}

// clash reports settings that conflict, at the one that was written last, in the file that extends
// the others. Notes have the positions of the others. Defaults have no position.
func (c *checker) clash(places []diag.Pos, format string, args ...any) *diag.Diagnostic {
	var last diag.Pos
	for _, p := range places {
		if last.IsZero() || !p.IsZero() && c.Below(last, p) {
			last = p
		}
	}
	d := c.add(last, format, args...)
	for _, p := range places {
		if !p.IsZero() && p.File != last.File {
			line := strings.TrimSpace(c.Show(diag.Diagnostic{Pos: p}).Line)
			note(d, "against %s", strings.TrimSuffix(p.String()+": "+line, ": ")) // --set has no line
		}
	}
	return d
}
