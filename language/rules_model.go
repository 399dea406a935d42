// Rules of blocks and of the outputs of a model.

package language

import (
	"cmp"
	"slices"

	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/language/schema"
)

// checkBlocks checks the order of the blocks.
func (c *checker) checkBlocks() {
	var attention, pool, classifier *Block
	for i := range c.spec.Model.Blocks {
		b := &c.spec.Model.Blocks[i]
		kind := schema.Find(Blocks, b.Kind.V)
		if kind == nil {
			continue
		}
		pos, before := b.Kind.Pos, len(c.faults)
		switch {
		case classifier != nil:
			note(c.add(pos, "%s is after the classifier, which must be the last block", kind.Name), "the classifier is at %s",
				classifier.Kind.Pos)
		case kind.Role == RoleFeature && pool != nil && !kind.AfterPool:
			note(c.add(pos, "%s works on instances and must be before the pool", kind.Name), "the pool is at %s", pool.Kind.Pos)
		case kind.Role == RoleFeature && attention != nil && pool == nil:
			note(c.add(pos, "%s must be before the attention, which scores the features", kind.Name), "the attention is at %s",
				attention.Kind.Pos)
		case kind.Role == RoleAttention && attention != nil:
			note(c.add(pos, "a second attention"), "the first is at %s", attention.Kind.Pos)
		case kind.Role == RoleAttention && pool != nil:
			note(c.add(pos, "attention must be before the pool"), "the pool is at %s", pool.Kind.Pos)
		case kind.Role == RolePool && pool != nil:
			note(c.add(pos, "a second pool"), "the first is at %s", pool.Kind.Pos)
		case kind.Role == RolePool && b.Args["kind"].Str() == "attention" && attention == nil && !c.broken():
			note(c.add(b.Args["kind"].Pos, "pool: attention needs an attention block before it"),
				"or pool with mean, max or maxmin")
		case kind.Role == RoleClassifier && pool == nil && !c.broken():
			note(c.add(pos, "the classifier needs a pool before it"), "a pool turns the instances of a bag into one embedding")
		}
		if len(c.faults) > before {
			b.Args = nil // in drafts
		}
		switch kind.Role {
		case RoleAttention:
			attention = b
		case RolePool:
			pool = b
		case RoleClassifier:
			classifier = b
		}
	}
}

// broken reports whether a block could not be read. Rules about missing blocks are then skipped.
func (c *checker) broken() bool {
	return slices.ContainsFunc(c.spec.Model.Blocks, func(b Block) bool { return b.Kind.V == "" })
}

// instanceNames are the names of the instances, before and after the blocks.
var instanceNames = []string{"X", "H"}

// resultNames returns the names of the results of the blocks for equations.
func (c *checker) resultNames() []string {
	list := slices.Clone(instanceNames)
	for i := range Blocks {
		kind := &Blocks[i]
		if c.broken() || slices.ContainsFunc(c.spec.Model.Blocks, func(b Block) bool { return b.Kind.V == kind.Name }) {
			list = append(list, kind.Results...)
		}
	}
	return list
}

// resolveOutputs determines the attention, the probabilities and their logarithm: the named values, or
// those called a, p and logp.
func (c *checker) resolveOutputs() {
	m := &c.spec.Model
	known := c.resultNames()
	for i := range m.Let {
		known = append(known, m.Let[i].Name.V)
	}
	if len(m.Blocks) == 0 && len(m.Let) == 0 {
		if c.inModel == 0 {
			note(c.add(m.Pos, "the model is missing"), "give model blocks, or equations under let")
		}
		return
	}
	for _, out := range []struct {
		key, name string
		to        *schema.Str
	}{{"attention", "a", &m.Attention}, {"class_attention", "", &m.ClassAttention}, {"probabilities", "p",
		&m.Probabilities}, {"log_probabilities", "logp", &m.LogProbabilities}} {
		c.resolveOutput(out.key, out.name, out.to, known)
	}
	if m.Probabilities.V == "" && !slices.Contains(known, "p") && !c.broken() && c.inModel == 0 {
		note(c.add(m.Pos, "the model has no class probabilities"), "end the blocks in a classifier, or name an equation "+
			"with probabilities:")
	}
}

func (c *checker) resolveOutput(key, name string, to *schema.Str, known []string) {
	let := c.letNamed(name)
	switch {
	case to.V == "" && let != nil:
		to.V = name // the default; it has no position
	case to.V == "":
	case !slices.Contains(known, to.V) && c.Inherited(to.Pos):
		*to = schema.Str{} // of a model that was replaced
		c.resolveOutput(key, name, to, known)
	case !slices.Contains(known, to.V):
		d := c.add(to.Pos, "model.%s names %s, which nothing defines", key, to.V)
		*d = d.SuggestOr(Dialect.Suggest(to.V, known), "known: %s", diag.Words(known))
	case let != nil && to.V != name:
		note(c.clash([]diag.Pos{let.Name.Pos, to.Pos}, "%s is defined but model.%s names %s", name, key, to.V),
			"in losses and weights.update %s means model.%s: give this equation another name", name, key)
	}
}

func (c *checker) letNamed(name string) *Equation {
	for i := range c.spec.Model.Let {
		if eq := &c.spec.Model.Let[i]; eq.Name.V == name {
			return eq
		}
	}
	return nil
}

// hasAttention reports whether the model has attention scores.
func (c *checker) hasAttention() bool {
	return c.spec.Model.Attention.V != "" || slices.Contains(c.resultNames(), "a")
}

// modelPos is the position of the key that decides what the model computes.
func (c *checker) modelPos() diag.Pos {
	return cmp.Or(c.KeyPos("model.blocks"), c.KeyPos("model.let"), c.spec.Model.Pos)
}
