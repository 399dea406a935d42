// Inputs that loss terms share.

package compile

import (
	"testing"

	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/language"
)

// All terms that weigh classes read the same input.
func TestTermsShareClassWeights(t *testing.T) {
	spec, err := language.Parse("t.yaml", []byte("name: t\nmodel: {blocks: [attention, pool: attention, classifier]}\n"+
		"train: {class_weights: [1, 2]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	l := newLowerer(&Program{Spec: spec, Signature: Signature{Instance: []int{3}, Classes: 2}}, true)
	w := l.b.Input("w", graph.Float, graph.Shape{graph.B, 2})
	if x, y := l.classWeighted(w), l.classWeighted(w); x.In[0] != y.In[0] || x.In[0].Name != InClassWeights {
		t.Errorf("the terms read %v and %v", x.In[0], y.In[0])
	}
}
