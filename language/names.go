// Names that equations may use and define.

package language

import (
	"fmt"
	"go/token"
	"slices"
	"strings"

	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/language/schema"
)

// lossOnlyNames may be used only in losses and in weights.update, because a prediction has no
// candidates.
var lossOnlyNames = []meaning{
	{"S", "Candidate labels [B, k], or with `data.labels: multi` the true labels: 1 for these labels, else 0."},
	{"w", "Label weights [B, k] that the loss uses; in `weights.update`, the old ones."},
	{"lambda", "Momentum of the label weights in this epoch."},
}

// epochNames may be used in all equations. A prediction uses the values of the last epoch, so that
// values that decay over the epochs keep their final value.
var epochNames = []meaning{
	{"t", "Number of the epoch, starting at `weights.first_epoch`. In the exported model it is that of epoch T, even " +
		"if training stops earlier."},
	{"T", "Number of epochs (`train.epochs`)."},
}

// outputNames are the outputs of the model in losses and weights.update.
var outputNames = []meaning{
	{"p", "Class probabilities [B, k]."},
	{"logp", "Logarithm of p."},
	{"a", "Attention scores [N, 1], if the model has them."},
}

// meaning is a name for equations and its documentation.
type meaning struct{ Name, Doc string }

// sizeNames are the sizes that every spec has.
var sizeNames = []meaning{
	{"d", "Features of an instance, flattened."},
	{"h", "Features of an instance after the feature blocks."},
	{"k", "Classes."},
}

// Word returns the name.
func (m meaning) Word() string { return m.Name }

// refusedName describes why a name that a spec defines is not allowed, with an explanation if there
// is one. The text is empty if it is allowed.
func refusedName(name, what string) (text, why string) {
	switch {
	case !schema.IsIdentifier(name):
		return fmt.Sprintf("%q cannot be the name of %s", name, what),
			"a name has letters, digits and _, and starts with a letter"
	case token.IsKeyword(name), name == "_":
		return fmt.Sprintf("%s is a reserved word and cannot name %s", name, what), ""
	case schema.Find(Functions, name) != nil:
		return fmt.Sprintf("%s is a function and cannot name %s", name, what), ""
	case slices.Contains(schema.Words(sizeNames), name):
		return fmt.Sprintf("the size %s is already defined", name), "d, h and k are given by data and blocks"
	case slices.Contains(schema.Words(lossOnlyNames), name), slices.Contains(schema.Words(epochNames), name):
		return fmt.Sprintf("%s is already defined and cannot name %s", name, what),
			"losses and weights.update can use " + strings.Join(append(schema.Words(lossOnlyNames), schema.Words(epochNames)...),
				", ")
	}
	return "", ""
}

// scope contains the names that an equation may use.
type scope struct {
	known     vocabulary
	later     map[string]diag.Pos      // defined further down
	uses      map[string][]string      // names used, by the definition that uses them; "": losses and weights.update
	functions map[string]*UserFunction // of the spec, as far as they are known
	inside    bool                     // an equation of the model, not of the loss
	function  bool                     // an equation of a function
}

// vocabulary is a set of names in the order of their definition.
type vocabulary struct {
	list []string
	has  map[string]bool
}

func (v *vocabulary) add(names ...string) {
	if v.has == nil {
		v.has = map[string]bool{}
	}
	for _, n := range names {
		if !v.has[n] {
			v.has[n] = true
			v.list = append(v.list, n)
		}
	}
}

// used returns the set of all names that equations use.
func (sc *scope) used() map[string]bool {
	used := map[string]bool{}
	for _, names := range sc.uses {
		for _, n := range names {
			used[n] = true
		}
	}
	return used
}
