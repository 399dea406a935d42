// The key export.temperature.

package language

import (
	"gopkg.in/yaml.v3"

	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/language/schema"
)

// Temperature is export.temperature. The zero value does not change the probabilities.
type Temperature struct {
	T          float64 // divides the logits; 0: Validation, or no temperature
	Validation bool    // T is fitted to the validation bags
}

// validationWord requests a temperature that is fitted to the validation bags.
const validationWord = "validation"

var temperatureRow = schema.Row{Type: schema.Real, In: schema.Closed(0.01, 100)}

var temperatureType = schema.CustomType{
	Noun: "a number between 0.01 and 100, or validation",
	Schema: schema.Object{"anyOf": []any{schema.Object{"type": "number", "minimum": 0.01, "maximum": 100},
		schema.Object{"const": validationWord}}},
	Read: func(r *schema.Reader, path string, _, n *schema.Node, to any) {
		value := to.(*schema.Value[Temperature])
		value.Pos = n.Pos()
		if n.IsValue() && n.Raw() == validationWord {
			value.V.Validation = true
			return
		}
		if !n.IsValue() || !schema.IsNumber(n.Raw()) {
			r.AddFault(n.Errorf("%s must be a number between 0.01 and 100, or validation, not %s", path, n.Describe()))
			return
		}
		a, _ := r.Value(&temperatureRow, path, n)
		value.V.T = a.Float()
	},
	Write: func(from any) *yaml.Node {
		t := from.(*schema.Value[Temperature]).V
		if t.Validation {
			return schema.TextNode(validationWord)
		}
		return schema.FloatNode(t.T)
	},
}

// checkTemperature checks that the validation bags are not training bags too.
func (c *checker) checkTemperature() {
	t, refit := &c.spec.Export.Temperature, &c.spec.Train.Refit
	if t.V.Validation && refit.V {
		note(c.clash([]diag.Pos{t.Pos, refit.Pos}, "export.temperature is fitted to validation bags, and train.refit "+
			"trains the model on them"),
			"remove train.refit, or set export.temperature to a number")
	}
}
