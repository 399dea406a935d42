// The key export.temperature, and keys that are a word or a value.

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

var temperatureType = wordOr(validationWord, "a number between 0.01 and 100, or validation",
	schema.Row{Type: schema.Real, In: schema.Closed(0.01, 100)},
	func(t *Temperature) (*bool, *float64) { return &t.Validation, &t.T })

// wordOr describes a key whose value is a word or a value of a row. parts returns where they are in a T.
func wordOr[T, V any](word, noun string, row schema.Row, parts func(*T) (is *bool, value *V)) schema.CustomType {
	return schema.CustomType{
		Noun:   noun,
		Schema: schema.Object{"anyOf": []any{schema.Object{"const": word}, row.Schema()}},
		Read: func(r *schema.Reader, path string, _, n *schema.Node, to any) {
			found := to.(*schema.Value[T])
			found.Pos = n.Pos()
			is, value := parts(&found.V)
			switch *is = n.IsValue() && n.Raw() == word; {
			case *is:
			case n.IsList() != (row.Type == schema.RealList), !n.IsList() && !schema.IsNumber(n.Raw()):
				r.AddFault(n.Errorf("%s must be %s, not %s", path, noun, n.Describe()))
			case n.IsList() && len(n.Items()) == 0:
				r.AddFault(n.Errorf("%s is empty", path).WithNote("give it %s, or leave it out", noun))
			default:
				a, _ := r.Value(&row, path, n)
				*value, _ = a.V.(V)
			}
		},
		Write: func(from any) *yaml.Node {
			is, value := parts(&from.(*schema.Value[T]).V)
			if *is {
				return schema.TextNode(word)
			}
			return schema.ValueNode(*value)
		},
	}
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
