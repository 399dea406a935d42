package language

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/extent"
)

// rules checks what no single key can: how settings fit each other. Shapes are
// checked by package compile, which knows the data.
func (r *Reader) rules() {
	r.dataRules()
	if r.data > 0 {
		r.spec.Data.Set.V = "" // unknown
	}
	if r.spec.fitted() {
		r.learnerRules()
		r.resetUnheld(language)
		return
	}
	before := len(r.errs)
	r.blockRules()
	r.outputRules()
	r.model += len(r.errs) - before
	r.lossRules()
	r.equationRules()
	r.resetUnheld(language)
}

func (r *Reader) add(pos diag.Pos, format string, args ...any) *diag.Diagnostic {
	r.errs.Add(r.files[pos.File].diagnose(pos, 0, fmt.Sprintf(format, args...)))
	return &r.errs[len(r.errs)-1]
}

func note(d *diag.Diagnostic, format string, args ...any) { *d = d.WithNote(format, args...) }

// pointless reports whether a setting was written although cause, written in
// the same file or one that it extends, leaves it without effect. A setting
// that is merely inherited is no mistake.
func (r *Reader) pointless(setting, cause diag.Pos) bool {
	return !setting.IsZero() && !r.below(setting, cause)
}

// below reports whether a place is in a file that the file of other extends.
func (r *Reader) below(pos, other diag.Pos) bool {
	return r.layers[pos.File] < r.layers[other.File]
}

// clash reports settings that do not fit each other, at the one that was written
// last, in the file that extends the others; the places of the others are noted.
// A default has no place.
func (r *Reader) clash(places []diag.Pos, format string, args ...any) *diag.Diagnostic {
	var last diag.Pos
	for _, p := range places {
		if last.IsZero() || !p.IsZero() && r.below(last, p) {
			last = p
		}
	}
	d := r.add(last, format, args...)
	for _, p := range places {
		if !p.IsZero() && p.File != last.File {
			note(d, "against %s: %s", p, strings.TrimSpace(r.Show(diag.Diagnostic{Pos: p}).Line))
		}
	}
	return d
}

func (r *Reader) dataRules() {
	d, before := &r.spec.Data, len(r.errs)
	defer func() { r.data += len(r.errs) - before }()
	switch set := d.Set.V; {
	case strings.HasPrefix(set, generatedPrefix):
		name := strings.TrimPrefix(set, generatedPrefix)
		if !slices.Contains(generators, name) {
			e := r.add(d.Set.Pos, "there is no generator %q", name)
			if e.Suggestion = suggest(name, generators); e.Suggestion == "" {
				note(e, "known: %s%s", generatedPrefix, strings.Join(generators, ", "+generatedPrefix))
			} else {
				e.Suggestion = generatedPrefix + e.Suggestion
			}
		}
		r.generatedRules()
	case set != "" && !hasSuffix(set, ".npz", ".mat", ".csv", ".csv.gz"):
		e := r.add(d.Set.Pos, "data.set %q is no known kind of data set", set)
		note(e, "generated:prototypes, or a file that ends in .npz, .mat, .csv or .csv.gz")
		if s := suggest(set, []string{"generated:prototypes"}); s != "" {
			e.Suggestion = s
		}
	default:
		for i := range generatedRows {
			row := &generatedRows[i]
			if pos := posOf(row.To(r.spec)); r.pointless(pos, d.Set.Pos) {
				note(r.add(pos, "data.generated.%s has no effect: data.set is a file", row.Name), "data.set is %q", set)
			}
		}
	}
	if _, ok := extent.Within(d.Shape.V, maxCount); !ok {
		r.add(d.Shape.Pos, "an instance of data.shape %v would hold more than %d numbers", d.Shape.V, maxCount)
	}
	r.splitRules()
}

func hasSuffix(s string, suffixes ...string) bool {
	return slices.ContainsFunc(suffixes, func(suffix string) bool { return strings.HasSuffix(strings.ToLower(s), suffix) })
}

func (r *Reader) generatedRules() {
	d, g := &r.spec.Data, &r.spec.Data.Generated
	if g.MinSize.V > g.MaxSize.V {
		r.clash([]diag.Pos{g.MinSize.Pos, g.MaxSize.Pos}, "min_size %d is above max_size %d", g.MinSize.V, g.MaxSize.V)
	}
	if g.Candidates.V >= g.Classes.V {
		note(r.clash([]diag.Pos{g.Candidates.Pos, g.Classes.Pos}, "%d false candidates do not fit %d classes", g.Candidates.V, g.Classes.V),
			"one class is the true one, so at most %d can be false candidates", g.Classes.V-1)
	}
	if g.Bags.V < g.Classes.V {
		r.clash([]diag.Pos{g.Bags.Pos, g.Classes.Pos}, "%d bags cannot show %d classes", g.Bags.V, g.Classes.V)
	}
	if d.Classes.V != 0 && d.Classes.V != g.Classes.V {
		r.clash([]diag.Pos{d.Classes.Pos, g.Classes.Pos}, "data.classes is %d, the generator makes %d", d.Classes.V, g.Classes.V)
	}
	r.shareRule()
	if volume, ok := extent.Within(d.Shape.V, maxCount); len(d.Shape.V) > 0 && ok && volume != g.Features.V {
		r.clash([]diag.Pos{d.Shape.Pos, g.Features.Pos}, "data.shape %v holds %d numbers, the generator makes %d features", d.Shape.V, volume, g.Features.V)
	}
}

// shareRule refuses a share of training bags that leaves none to train or to test.
func (r *Reader) shareRule() {
	share, bags := r.spec.Data.Split.Train, r.spec.Data.Generated.Bags
	if n := int(math.Round(share.V * float64(bags.V))); r.spec.drawn() && (n < 1 || n >= bags.V) {
		note(r.clash([]diag.Pos{share.Pos, bags.Pos}, "a share of %v of %d bags leaves %d for training and %d for testing", share.V, bags.V, n, bags.V-n), "both need at least one bag")
	}
}

func (r *Reader) splitRules() {
	s := &r.spec.Data.Split
	if s.Index.V == "" {
		if s.Part.Set() {
			note(r.add(s.Part.Pos, "data.split.part has no effect without index"), "name the file of splits with index")
		}
		return
	}
	for _, other := range []struct {
		name string
		pos  diag.Pos
	}{{"train", s.Train.Pos}, {"seed", s.Seed.Pos}} {
		if r.pointless(other.pos, s.Index.Pos) {
			note(r.add(other.pos, "data.split.%s has no effect beside index", other.name), "the index file says which bags train")
		}
	}
	switch {
	case !hasSuffix(s.Index.V, ".mat", ".csv", ".csv.gz"):
		note(r.add(s.Index.Pos, "data.split.index %q is no known kind of index file", s.Index.V), "a .mat with trainIndex and testIndex, or a .csv of splits")
	case hasSuffix(s.Index.V, ".mat") && r.pointless(s.Part.Pos, s.Index.Pos):
		r.add(s.Part.Pos, "data.split.part has no effect: a .mat file holds one split")
	}
}

// blockRules checks the order of the blocks.
func (r *Reader) blockRules() {
	var attention, pool, classifier *Block
	for i := range r.spec.Model.Blocks {
		b := &r.spec.Model.Blocks[i]
		kind := find(Blocks, b.Kind.V)
		if kind == nil {
			continue
		}
		pos, before := b.Kind.Pos, len(r.errs)
		switch {
		case classifier != nil:
			note(r.add(pos, "%s stands after the classifier, which ends the blocks", kind.Name), "the classifier is at %s", classifier.Kind.Pos)
		case kind.Role == RoleFeature && pool != nil && !kind.Embeddings:
			note(r.add(pos, "%s works on instances and must stand before the pool", kind.Name), "the pool is at %s", pool.Kind.Pos)
		case kind.Role == RoleFeature && attention != nil && pool == nil:
			note(r.add(pos, "%s must stand before the attention, which scores the features", kind.Name), "the attention is at %s", attention.Kind.Pos)
		case kind.Role == RoleAttention && attention != nil:
			note(r.add(pos, "a second attention"), "the first is at %s", attention.Kind.Pos)
		case kind.Role == RoleAttention && pool != nil:
			note(r.add(pos, "attention must stand before the pool"), "the pool is at %s", pool.Kind.Pos)
		case kind.Role == RolePool && pool != nil:
			note(r.add(pos, "a second pool"), "the first is at %s", pool.Kind.Pos)
		case kind.Role == RolePool && b.Args["kind"].Str() == "attention" && attention == nil && !r.broken():
			note(r.add(b.Args["kind"].Pos, "pool: attention needs an attention block before it"), "or pool with mean, max or maxmin")
		case kind.Role == RoleClassifier && pool == nil && !r.broken():
			note(r.add(pos, "the classifier needs a pool before it"), "a pool turns the instances of a bag into one embedding")
		}
		if len(r.errs) > before {
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

// broken reports whether a block could not be read, so that rules about what
// is absent must hold back.
func (r *Reader) broken() bool {
	return slices.ContainsFunc(r.spec.Model.Blocks, func(b Block) bool { return b.Kind.V == "" })
}

// made lists the names that the blocks give to equations.
func (r *Reader) made() []string {
	list := []string{"X", "H"}
	for i := range Blocks {
		kind := &Blocks[i]
		if r.broken() || slices.ContainsFunc(r.spec.Model.Blocks, func(b Block) bool { return b.Kind.V == kind.Name }) {
			list = append(list, kind.Makes...)
		}
	}
	return list
}

// outputRules settles which values are attention, probabilities and their
// logarithm: those named, else those called a, p and logp.
func (r *Reader) outputRules() {
	m := &r.spec.Model
	known := r.made()
	for i := range m.Let {
		known = append(known, m.Let[i].Name.V)
	}
	if len(m.Blocks) == 0 && len(m.Let) == 0 {
		if r.model == 0 {
			note(r.add(m.Pos, "the model is missing"), "give model blocks, or equations under let")
		}
		return
	}
	for _, out := range []struct {
		key, name string
		to        *Str
	}{{"attention", "a", &m.Attention}, {"probabilities", "p", &m.Probabilities}, {"log_probabilities", "logp", &m.LogProbabilities}} {
		r.output(out.key, out.name, out.to, known)
	}
	if m.Probabilities.V == "" && !slices.Contains(known, "p") && !r.broken() && r.model == 0 {
		note(r.add(m.Pos, "the model has no class probabilities"), "end the blocks in a classifier, or name an equation with probabilities:")
	}
}

func (r *Reader) output(key, name string, to *Str, known []string) {
	let := r.letNamed(name)
	switch {
	case to.V == "" && let != nil:
		to.V = name // the default; it has no place
	case to.V == "":
	case !slices.Contains(known, to.V) && r.inherited(to.Pos):
		*to = Str{} // of a model that was replaced
		r.output(key, name, to, known)
	case !slices.Contains(known, to.V):
		d := r.add(to.Pos, "model.%s names %s, which nothing defines", key, to.V)
		if d.Suggestion = suggest(to.V, known); d.Suggestion == "" {
			note(d, "known: %s", diag.Words(known))
		}
	case let != nil && to.V != name:
		note(r.clash([]diag.Pos{let.Name.Pos, to.Pos}, "%s is defined but model.%s names %s", name, key, to.V),
			"in losses and weights.update %s means model.%s: give this equation another name", name, key)
	}
}

func (r *Reader) letNamed(name string) *Equation {
	for i := range r.spec.Model.Let {
		if eq := &r.spec.Model.Let[i]; eq.Name.V == name {
			return eq
		}
	}
	return nil
}

// scores reports whether the model has attention scores.
func (r *Reader) scores() bool {
	return r.spec.Model.Attention.V != "" || slices.Contains(r.made(), "a")
}

func (r *Reader) lossRules() {
	seen := map[string]diag.Pos{}
	kept := r.spec.Loss[:0:0]
	for i := range r.spec.Loss {
		l := &r.spec.Loss[i]
		if l.Kind.V == "attention" && !r.scores() {
			if !l.Kind.Set() || r.below(l.Kind.Pos, r.modelPos()) {
				continue // neither the default loss nor that of another model asks for scores
			}
			note(r.add(l.Kind.Pos, "the attention loss needs attention scores, which this model lacks"),
				"add an attention block, name an equation with model.attention, or leave the term out")
		}
		kept = append(kept, *l)
		name, pos := l.Kind.V, l.Kind.Pos
		if name == "equation" {
			name, pos = l.Name.V, l.Name.Pos
			if name == "" {
				continue
			}
			if !identifier.MatchString(name) {
				note(r.add(pos, "%q cannot be the name of a loss term", name), "a name has letters, digits and _, and starts with a letter")
			} else if find(lossKinds, name) != nil {
				r.add(pos, "%s is the name of a built-in loss term; take another", name)
				continue
			}
		}
		if first, ok := seen[name]; ok {
			note(r.add(pos, "a second loss term %s", name), "the first is at %s", first)
		}
		seen[name] = pos
	}
	if len(kept) == 0 && len(r.spec.Loss) > 0 {
		l := r.spec.Loss[0].Kind
		note(r.add(r.modelPos(), "no term of the loss is left: %s needs attention scores, which this model lacks", l.V), "the loss is at %s", l.Pos)
	}
	r.spec.Loss = kept
}

// modelPos is the place that decides what the model computes.
func (r *Reader) modelPos() diag.Pos {
	for _, key := range []string{"model.blocks", "model.let"} {
		if pos := r.keyPos(key); !pos.IsZero() {
			return pos
		}
	}
	return r.spec.Model.Pos
}

// resetUnheld gives keys that say nothing in this spec their defaults, so that
// equal models have equal specs whatever they inherited.
func (r *Reader) resetUnheld(rows []Row) {
	for i := range rows {
		row := &rows[i]
		switch {
		case row.holds == nil || row.holds(r.spec):
			r.resetUnheld(row.Rows)
		case row.To != nil:
			assign(row.To(r.spec), row.defaultArg())
		default:
			applyDefaults(row.Rows, r.spec)
		}
	}
}
