package language

import (
	"slices"
	"strings"

	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/specs"
)

// specDialect is the language of specs.
var specDialect = &Dialect{
	Noun: "spec", An: "a spec", Start: "a spec starts with name: and has at least model: beside it",
	About: "A model for multi-instance partial-label learning: data, network, loss, training and export.",
	Names: specs.Models, Source: specs.Model,
}

func init() { specDialect.Rows = language } // the rows read by it

// Fits counts the keys at the top of a file that specs have, as Dialect.Fits.
func Fits(name string) int { return specDialect.Fits(name) }

// TrainedNames lists the shipped specs with a model that package compile takes,
// which is all but those of learners.
func TrainedNames() []string {
	return slices.DeleteFunc(specs.Models(), func(name string) bool {
		s, err := Load(builtin+name, Options{})
		return err == nil && s.Learner != nil
	})
}

// Load reads a spec: a file, or a shipped spec by its name. All that is wrong
// with it is returned in one diag.List.
func Load(name string, o Options) (*Spec, error) {
	file, src, err := specDialect.open(name)
	if err != nil {
		return nil, err
	}
	return Parse(file, src, o)
}

// Parse reads the spec src. name is its file for messages; extends is looked up
// beside it.
func Parse(name string, src []byte, o Options) (*Spec, error) {
	s, err := draft(name, src, o)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Draft is Load, but gives what could be read of a spec with errors too, so that
// its shapes can be checked as well (compile.Check). What has an error is left
// out of a draft: blocks lack kind or arguments, equations their expression,
// extents their text, and data with an error its set. The spec is nil where the
// file is none.
func Draft(name string, o Options) (*Spec, error) {
	file, src, err := specDialect.open(name)
	if err != nil {
		return nil, err
	}
	return draft(file, src, o)
}

func draft(name string, src []byte, o Options) (*Spec, error) {
	s, read, clashes, err := parse(name, src, o)
	if err != nil {
		return nil, err
	}
	s.sound = s.soundFiles(len(clashes) > 0)
	for _, d := range clashes {
		read = append(read, s.Locate(d))
	}
	return s, diag.List(read).Err()
}

// parse reads a spec. Its faults are those of single values and those of values
// that do not fit each other; the error is that of a file without a spec.
func parse(name string, src []byte, o Options) (s *Spec, read, clashes faults, err error) {
	l := newLoader(specDialect)
	var root *Node
	collect(func() { root = l.merged(name, src, o.Set) })
	if root == nil || l.broken {
		return nil, nil, nil, l.errs.Err()
	}
	s = &Spec{File: name, Origin: l.Origin}
	r := Reader{Origin: &s.Origin, dialect: specDialect, spec: s, errs: l.errs}
	collect(func() { r.read(root) })
	n := len(r.errs)
	if n < diag.MaxFound {
		collect(r.rules)
	}
	return s, r.errs[:n:n], r.errs[n:], nil
}

// soundFiles tells the files that are right by themselves, so that an error at a
// place in them is a clash with what lies over them. Files of the user are
// read for that, and only when there are errors.
func (o *Origin) soundFiles(errs bool) map[string]bool {
	sound := map[string]bool{}
	for file, layer := range o.layers {
		switch {
		case strings.HasPrefix(file, builtin):
			sound[file] = true
		case layer < 0:
			sound[file] = !errs || isSound(file)
		}
	}
	return sound
}

func isSound(name string) bool {
	file, src, err := specDialect.open(name)
	if err != nil {
		return false
	}
	_, read, clashes, err := parse(file, src, Options{})
	return err == nil && len(read)+len(clashes) == 0
}
