// The key train.class_weights.

package language

import (
	"slices"

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

var classWeightsType = wordOr(balancedWord, "a list of numbers, one for each class, or balanced",
	schema.Row{Type: schema.RealList, In: schema.Above(0)},
	func(w *ClassWeights) (*bool, *[]float64) { return &w.Balanced, &w.List })

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
