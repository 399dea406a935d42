// The table of optimizers, and which settings each has.

package language

import (
	"fmt"
	"slices"
	"strings"

	"github.com/miplc/miplc/language/schema"
)

// optimizer is one choice of train.optimizer.
type optimizer struct {
	name string
	// numbers are the defaults of its numeric settings by key of train, PyTorch's except
	// those of sgd, which the authors' program uses.
	numbers map[string]float64
	flags   []string // its other settings
}

var optimizers = []optimizer{
	{"sgd", map[string]float64{"lr": 0.01, "momentum": 0.9, "weight_decay": 0.0001}, []string{"nesterov"}},
	{"adam", map[string]float64{"lr": 0.001, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8, "weight_decay": 0}, nil},
	{"adamw", map[string]float64{"lr": 0.001, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8, "weight_decay": 0.01}, nil},
	{"rmsprop", map[string]float64{"lr": 0.01, "alpha": 0.99, "epsilon": 1e-8, "momentum": 0, "weight_decay": 0}, nil},
}

// Word returns the name.
func (o optimizer) Word() string { return o.name }

func (o optimizer) has(key string) bool {
	_, number := o.numbers[key]
	return number || slices.Contains(o.flags, key)
}

// hasSetting returns the condition that a key of train is a setting of the optimizer.
func hasSetting(key string) func(any) bool {
	return schema.When(func(s *Spec) bool {
		o := schema.Find(optimizers, s.Train.Optimizer.V)
		return s.trained() && o != nil && o.has(key)
	})
}

// resolveOptimizer reports settings of other optimizers and fills in the defaults of this
// one. Settings that were inherited by a file that chooses the optimizer belong to the
// optimizer of its base: they do not count.
func (c *checker) resolveOptimizer() {
	t := &c.spec.Train
	o := schema.Find(optimizers, t.Optimizer.V)
	if o == nil {
		return // reported
	}
	uselessSettings(c, optimizers, "optimizer", t.Optimizer)
	for i := range trainRows {
		row := &trainRows[i]
		if !o.has(row.Name) {
			continue
		}
		pos := row.PosOf(c.spec)
		if pos.IsZero() && o.name != "sgd" || !pos.IsZero() && t.Optimizer.Written() && c.ExtendedBy(pos, t.Optimizer.Pos) {
			if v, ok := row.Field(c.spec).(*schema.Float); ok {
				*v = schema.Float{V: o.numbers[row.Name]}
			}
		}
	}
}

// uselessSettings reports keys of train that are settings only of other rows of a table than the chosen one.
func uselessSettings[T interface {
	Word() string
	has(key string) bool
}](c *checker, table []T, noun string, chosen schema.Str) {
	for i := range trainRows {
		row := &trainRows[i]
		owners := schema.Words(slices.DeleteFunc(slices.Clone(table), func(one T) bool { return !one.has(row.Name) }))
		if len(owners) > 0 && !slices.Contains(owners, chosen.V) {
			c.useless("train."+row.Name, row.PosOf(c.spec), chosen.Pos, fmt.Sprintf(" with the %s %s", noun, chosen.V),
				"it is a setting of %s", strings.Join(owners, ", "))
		}
	}
}
