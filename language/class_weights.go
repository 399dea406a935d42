// The key train.class_weights.

package language

import (
	"slices"

	"gopkg.in/yaml.v3"

	"github.com/miplc/miplc/language/schema"
)

// ClassWeights is train.class_weights. The zero value weighs all classes alike.
type ClassWeights struct {
	Balanced bool      // by the inverse of the number of training bags of the class
	List     []float64 // a number for each class
}

// Any reports whether classes are weighed.
func (w ClassWeights) Any() bool { return w.Balanced || len(w.List) > 0 }

// balancedWord asks for weights by the inverse of the number of bags.
const balancedWord = "balanced"

var classWeightRow = schema.Row{Type: schema.Real, In: schema.Above(0)}

var classWeightsType = schema.CustomType{
	Noun:   "a list of numbers, one for each class, or balanced",
	Schema: schema.Object{"anyOf": []any{schema.Object{"const": balancedWord}, schema.ListOf(classWeightRow.Schema())}},
	Read: func(r *schema.Reader, path string, _, n *schema.Node, to any) {
		value := to.(*schema.Value[ClassWeights])
		value.Pos = n.Pos()
		switch {
		case n.IsValue() && n.Raw() == balancedWord:
			value.V.Balanced = true
		case !n.IsList():
			r.AddFault(n.Errorf("%s must be a list of numbers, one for each class, or balanced, not %s", path, n.Describe()))
		case len(n.Items()) == 0:
			r.AddFault(n.Errorf("%s is empty", path).WithNote("give it a number for each class, or leave it out"))
		default:
			for i, item := range n.Items() {
				a, _ := r.Value(&classWeightRow, schema.EntryPath(path, i, item), item)
				value.V.List = append(value.V.List, a.Float())
			}
		}
	},
	Write: func(from any) *yaml.Node {
		w := from.(*schema.Value[ClassWeights]).V
		if w.Balanced {
			return schema.TextNode(balancedWord)
		}
		return schema.ListNode(yaml.FlowStyle, w.List, schema.FloatNode)
	},
}

// weighsClasses reports whether train.class_weights has an effect.
func (s *Spec) weighsClasses() bool {
	return s.trained() && s.Train.ClassWeights.V.Any() && slices.ContainsFunc(s.Loss, func(l Loss) bool {
		return l.Row().weighsClasses
	})
}

// checkClassWeights reports class weights that no loss term uses.
func (c *checker) checkClassWeights() {
	if w := &c.spec.Train.ClassWeights; w.V.Any() && !c.spec.weighsClasses() && len(c.spec.Loss) > 0 {
		c.useless("train.class_weights", w.Pos, c.spec.Loss[0].Kind.Pos, ": the loss has no term "+classTerm(c.spec.Multi()),
			"an equation can use a list of model.numbers, such as costs: [1, 2, 0.5]")
	}
}
