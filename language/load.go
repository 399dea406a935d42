// Loading of specs by path or name.

package language

import (
	"slices"
	"sync"

	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/language/schema"
	"github.com/miplc/miplc/specs"
)

// Dialect is the language of specs.
var Dialect = &schema.Dialect{
	Noun: "spec", WithArticle: "a spec", Start: "a spec starts with name: and has at least model:",
	About:        "A model for multi-instance partial-label learning: data, network, loss, training and export.",
	ShippedNames: specs.Models, Source: specs.Model, Synonyms: Synonyms, Advice: advice,
	Arguments: entryArguments, Defs: schemaDefs, Literal: func(key string) bool { return key == "grid" },
	Related: map[string][]string{"model": modelSections, "learner": modelSections, "let": modelSections,
		"loss": modelSections, "weights": modelSections},
}

func init() { Dialect.Rows = specRows } // the readers of the rows refer to Dialect

// modelSections are the sections that determine what a model computes.
var modelSections = []string{"model", "data", "learner", "let", "loss", "weights"}

// entryArguments returns the arguments of a block or loss term.
func entryArguments(word string) []schema.Row {
	if k := schema.Find(Blocks, word); k != nil {
		return k.args
	}
	if k := schema.Find(LossTerms, word); k != nil {
		return k.args
	}
	return nil
}

// schemaDefs are the shared definitions of the JSON Schema.
func schemaDefs() schema.Object {
	describe := func(k Kind) (word, doc string, args []schema.Row) { return k.Name, schema.Plain(k.Doc), k.args }
	return schema.Object{"block": schema.EntrySchema(Blocks, describe), "loss": schema.EntrySchema(LossTerms, describe),
		"param": schema.PartialSchema(paramRows), "function": schema.PartialSchema(functionRows)}
}

// TrainedNames returns the shipped specs with a model that package compile accepts: all except
// fitted learners. It is for tests.
func TrainedNames() []string {
	return slices.DeleteFunc(specs.Models(), func(name string) bool {
		s, err := Load(schema.Builtin + name)
		return err == nil && s.Fitted()
	})
}

// Load reads a spec: a file, or a shipped spec by its name. Overrides such as "train.epochs=5" are
// applied in order. All errors are returned in one diag.List.
func Load(name string, overrides ...string) (*Spec, error) {
	s, err := LoadWith(name, schema.Overrides(overrides))
	if err != nil {
		_, err = Draft(name, overrides...) // all errors
	}
	return s, err
}

// LoadWith is Load with overrides that may be values of another file.
func LoadWith(name string, overrides []schema.Override) (*Spec, error) {
	file, src, err := Dialect.ReadNamed(name)
	if err != nil {
		return nil, err
	}
	return complete(draft(file, src, overrides))
}

// Parse reads the spec src. name is its file for messages; the path in extends is relative to it.
func Parse(name string, src []byte, overrides ...string) (*Spec, error) {
	return complete(draft(name, src, schema.Overrides(overrides)))
}

// with returns the spec with more overrides.
func (s *Spec) with(more []schema.Override) (*Spec, error) {
	return complete(draft(s.File, s.source, slices.Concat(s.overrides, more)))
}

// complete returns a draft without errors.
func complete(s *Spec, err error) (*Spec, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Draft is like Load, but also returns the correct parts of a spec with errors, so that
// compile.Check can check its shapes. Wrong parts are missing in a draft: blocks have no kind or
// arguments, equations no expression, sizes no text, and data no set. The spec is nil if the file
// is not a spec.
func Draft(name string, overrides ...string) (*Spec, error) {
	file, src, err := Dialect.ReadNamed(name)
	if err != nil {
		return nil, err
	}
	s, err := draft(file, src, schema.Overrides(overrides))
	if s == nil {
		return nil, err
	}
	var all diag.List
	all.AddError(diag.Pos{}, err)
	s.searchFaults(name, overrides, &all)
	return s, all.Err()
}

// ReadFaults returns the errors of single values of a spec with overrides and with the values of a grid, but not those
// of values that do not fit each other.
func ReadFaults(name string, overrides []schema.Override, grid []Axis) (all diag.List) {
	const most = 20 // values of a key
	file, src, err := Dialect.ReadNamed(name)
	if err != nil {
		all.AddError(diag.Pos{}, err)
		return all
	}
	for i := range most {
		set := nth(grid, i)
		if i > 0 && len(set) == 0 {
			break
		}
		with := slices.Clip(overrides)
		for _, one := range set {
			with = append(with, one.Override())
		}
		_, found, _, err := parse(file, src, with)
		found.AddError(diag.Pos{}, err)
		for _, d := range found {
			if !slices.ContainsFunc(all, func(had diag.Diagnostic) bool {
				return had.Text == d.Text && (had.Pos == d.Pos || d.Pos.Setting != "")
			}) {
				all.Add(d)
			}
		}
	}
	return all
}

func draft(name string, src []byte, overrides []schema.Override) (*Spec, error) {
	s, read, conflicts, err := parse(name, src, overrides)
	if err != nil {
		return nil, err
	}
	s.MarkSound(func(file string) bool {
		if len(conflicts) == 0 {
			return true
		}
		file, src, err := Dialect.ReadNamed(file)
		return err == nil && correct(file, src)
	})
	for _, d := range conflicts {
		read = append(read, s.AtUserLine(d))
	}
	return s, read.Err()
}

// parse reads a spec. read are the faults of single values, conflicts those of values that do not fit each other; err
// reports a file that is not a spec.
func parse(name string, src []byte, overrides []schema.Override) (s *Spec, read, conflicts diag.List, err error) {
	s = &Spec{File: name, source: src, overrides: overrides}
	doc, r, err := Dialect.Read(name, src, overrides, s)
	if err != nil {
		return nil, nil, nil, err
	}
	s.Origin = doc.Origin
	if len(overrides) > 0 {
		s.CheckAlone(sync.OnceValue(func() bool { return correct(name, src) }))
	}
	if s.Model.Pos = doc.Pos; !s.KeyPos("model").IsZero() {
		s.Model.Pos = s.KeyPos("model")
	}
	read = r.Faults()
	n := len(read)
	if n >= diag.MaxFound {
		return s, read, nil, nil
	}
	c := checker{Origin: &s.Origin, spec: s, faults: read[:n:n], inModel: r.FaultsIn("model"), inData: r.FaultsIn("data")}
	c.resolve()
	return s, read, c.faults[n:], nil
}

// correct reports whether a spec has no errors.
func correct(name string, src []byte) bool {
	_, read, conflicts, err := parse(name, src, nil)
	return err == nil && len(read)+len(conflicts) == 0
}
