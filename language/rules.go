package language

import (
	"strings"

	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/language/schema"
)

// checker checks the rules across the keys of a spec. Shapes are checked by package
// compile, which knows the data.
type checker struct {
	*schema.Origin
	spec    *Spec
	faults  schema.Faults
	inModel int // faults of the model; rules that would follow from them are skipped
	inData  int // faults of the data, which leave its shapes unknown
}

// rules checks what no single key can: how settings fit each other. Shapes are
// checked by package compile, which knows the data.
func (c *checker) rules() {
	c.dataRules()
	c.temperatureRules()
	if c.inData > 0 {
		c.spec.Data.Set.V = "" // unknown
	}
	if c.spec.Fitted() {
		c.learnerRules()
		schema.ResetInapplicable(specRows, c.spec)
		c.spec.learnerDefaults()
		return
	}
	before := len(c.faults)
	c.blockRules()
	c.outputRules()
	c.inModel += len(c.faults) - before
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

// pointless reports whether a setting was written although cause, written in
// the same file or one that it extends, leaves it without effect. A setting
// that is merely inherited is no mistake.
func (c *checker) pointless(setting, cause diag.Pos) bool {
	return !setting.IsZero() && !c.Below(setting, cause)
}

// clash reports settings that do not fit each other, at the one that was written
// last, in the file that extends the others; the places of the others are noted.
// A default has no place.
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
			note(d, "against %s: %s", p, strings.TrimSpace(c.Show(diag.Diagnostic{Pos: p}).Line))
		}
	}
	return d
}
