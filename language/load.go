package language

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/specs"
)

// builtin is the prefix of the file names of shipped specs in messages.
const builtin = "builtin:"

// maxExtends bounds the length of a chain of extends.
const maxExtends = 16

// Options change how a spec is read.
type Options struct {
	// Set holds overrides such as "train.epochs=5"; the value is YAML, lists in
	// flow syntax. Later ones win.
	Set []string
}

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
	file, src, err := open(name)
	if err != nil {
		return nil, err
	}
	return Parse(file, src, o)
}

// open finds the spec that a user names.
func open(name string) (file string, src []byte, err error) {
	if file, src, err = lookUp(name, ""); err != nil {
		return "", nil, diag.List{diag.Diagnostic{Text: err.Error(), Suggestion: suggestSpec(name),
			Notes: []string{"shipped specs: " + strings.Join(specs.Models(), ", ")}}}
	}
	return file, src, nil
}

func suggestSpec(name string) string {
	if strings.ContainsAny(name, `/\`) {
		return ""
	}
	return diag.Suggest(strings.TrimSuffix(name, ".yaml"), specs.Models())
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
	file, src, err := open(name)
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
	l := loader{origin: origin{sources: map[string][]string{}, layers: map[string]int{}}, files: map[string]*source{}}
	var root *node
	collect(func() { root = l.merged(name, src, o.Set) })
	if root == nil || len(l.errs) > 0 {
		return nil, nil, nil, l.errs.Err()
	}
	if root.kind != mapNode {
		return nil, nil, nil, diag.List{notASpec(root)}
	}
	r := reader{spec: &Spec{File: name, origin: l.origin}, files: l.files}
	collect(func() { r.read(root) })
	n := len(r.errs)
	if n < diag.MaxFound {
		collect(r.rules)
	}
	return r.spec, r.errs[:n:n], r.errs[n:], nil
}

// soundFiles tells the files that are right by themselves, so that an error at a
// place in them is a clash with what lies over them. Files of the user are
// read for that, and only when there are errors.
func (o *origin) soundFiles(errs bool) map[string]bool {
	sound := map[string]bool{}
	for file, layer := range o.layers {
		switch {
		case strings.HasPrefix(file, builtin):
			sound[file] = true
		case layer < 0:
			sound[file] = true
			if errs {
				sound[file] = isSound(file)
			}
		}
	}
	return sound
}

func isSound(name string) bool {
	file, src, err := open(name)
	if err != nil {
		return false
	}
	_, read, clashes, err := parse(file, src, Options{})
	return err == nil && len(read)+len(clashes) == 0
}

func notASpec(root *node) diag.Diagnostic {
	return root.errorf("a spec is a map of keys and values, not %s", root.describe()).
		WithNote("it starts with name: and has at least model: beside it")
}

// loader gathers the files of one spec.
type loader struct {
	origin
	errs  faults
	files map[string]*source
}

// merged is the tree of a file over what it extends, with the overrides on top.
func (l *loader) merged(file string, src []byte, sets []string) *node {
	root := l.tree(file, src, nil)
	if root != nil {
		for _, set := range sets {
			root = l.override(root, set)
		}
	}
	return root
}

// tree parses a file and lays it over what it extends. chain holds the files
// that led here. The result is nil after an error.
func (l *loader) tree(file string, src []byte, chain []string) *node {
	root := parseYAML(file, src, &l.errs)
	if root == nil {
		return nil
	}
	l.files[file], l.sources[file] = root.src, root.src.lines
	l.layers[file] = -len(chain)
	if root.kind != mapNode {
		return root
	}
	base := root.get(extendsRow.name)
	if base == nil {
		return root
	}
	over := withoutKey(root, extendsRow.name)
	if base.kind != scalarNode || base.tag != "!!str" || base.text == "" {
		l.errs.Add(base.errorf("extends must be a file or the name of a shipped spec, not %s", base.describe()))
		return over
	}
	chain = append(chain[:len(chain):len(chain)], file)
	if under := l.base(base, file, chain); under != nil {
		return merge(under, over)
	}
	return over
}

// base reads the file that an extends names.
func (l *loader) base(n *node, from string, chain []string) *node {
	file, src, err := lookUp(n.text, from)
	if err != nil {
		d := n.errorf("%v", err).WithNote("extends names a file beside %s or a shipped spec: %s", path.Base(from), strings.Join(specs.Models(), ", "))
		d.Suggestion = suggestSpec(n.text)
		l.errs.Add(d)
		return nil
	}
	for i, f := range chain {
		if f == file {
			l.errs.Add(n.errorf("extends goes round in a circle").
				WithNote("%s", strings.Join(append(chain[i:len(chain):len(chain)], file), " extends ")))
			return nil
		}
	}
	if len(chain) > maxExtends {
		l.errs.Add(n.errorf("more than %d specs extend each other", maxExtends))
		return nil
	}
	root := l.tree(file, src, chain)
	if root != nil && root.kind != mapNode {
		l.errs.Add(notASpec(root))
		return nil
	}
	return root
}

// lookUp finds a spec by path or name and reads it. from is the file that
// extends it, or "". Files come before shipped specs, except that shipped specs
// see no files.
func lookUp(name, from string) (file string, src []byte, err error) {
	if !strings.HasPrefix(from, builtin) && !strings.HasPrefix(name, builtin) {
		file = name
		if from != "" && !filepath.IsAbs(name) {
			file = filepath.Join(filepath.Dir(from), name)
		}
		src, err = readFile(file)
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return file, src, err
		}
	}
	short := strings.TrimSuffix(strings.TrimPrefix(name, builtin), ".yaml")
	if src, ok := specs.Model(short); ok {
		return builtin + short, src, nil
	}
	return "", nil, fmt.Errorf("there is no file %s and no shipped spec of that name", name)
}

// readFile reads a regular file up to just over the limit of a spec.
func readFile(file string) ([]byte, error) {
	info, err := os.Stat(file)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		return nil, fmt.Errorf("%s cannot be read: %w", file, errors.Unwrap(err))
	}
	if !info.Mode().IsRegular() {
		if info.IsDir() {
			if _, ok := specs.Model(file); ok { // a run's folder named like a shipped spec
				return nil, fs.ErrNotExist
			}
		}
		return nil, fmt.Errorf("%s is not a file", file)
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w", file, errors.Unwrap(err))
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxBytes+1))
}
