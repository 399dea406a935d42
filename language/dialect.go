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
)

// Dialect is one of the YAML languages of miplc: that of specs or that of
// experiments. Both are read, overridden by --set, described by a JSON Schema and
// explained by tables alike; what differs stands here.
type Dialect struct {
	Noun   string // "spec", with its article in An: "a spec"
	An     string
	Start  string // what a file has at least, for messages
	About  string // what a file is, for the schema
	Rows   []Row
	Names  func() []string // of the files that ship
	Source func(name string) ([]byte, bool)
	// Literal tells the maps whose keys are kept as they are, dots included, such
	// as set: {train.epochs: 5} of an experiment; may be nil.
	Literal func(key string) bool
}

// Options change how a file is read.
type Options struct {
	// Set holds overrides such as "train.epochs=5"; the value is YAML, lists in
	// flow syntax. Later ones win.
	Set []string
}

// Document is a file of a dialect, and where everything in it was written.
type Document struct {
	Origin
	File string // path or "builtin:name", for messages
	// Text is the file as it was written, or with overrides and all that is
	// inherited where there are any.
	Text []byte
}

// Load reads a file of the dialect, or one that ships by its name, into to, which
// the rows set. All that is wrong with single values is returned in one diag.List.
func (d *Dialect) Load(name string, o Options, to any) (*Document, error) {
	file, src, err := d.open(name)
	if err != nil {
		return nil, err
	}
	return d.Parse(file, src, o, to)
}

// Parse is Load for a text. file is its name for messages; extends is looked up
// beside it.
func (d *Dialect) Parse(file string, src []byte, o Options, to any) (*Document, error) {
	l := newLoader(d)
	var root *Node
	collect(func() { root = l.merged(file, src, o.Set) })
	if root == nil || l.broken {
		return nil, l.errs.Err()
	}
	doc := &Document{Origin: l.Origin, File: file, Text: src}
	r := Reader{Origin: &doc.Origin, dialect: d, errs: l.errs}
	collect(func() {
		applyDefaults(d.Rows, to)
		r.section(root, d.Rows, "", to)
	})
	if err := r.errs.Err(); err != nil {
		return nil, err
	}
	if len(o.Set) > 0 || len(doc.files) > 1 {
		doc.Text = encode(root.plain())
	}
	return doc, nil
}

// Fits counts the keys at the top of a file, and of what it extends, that the
// dialect knows; -1 says that there is no such file. So a file tells which language
// it is written in.
func (d *Dialect) Fits(name string) int { return d.fits(name, "", maxExtends) }

func (d *Dialect) fits(name, from string, more int) int {
	file, src, err := d.lookUp(name, from)
	if err != nil {
		return -1
	}
	var errs faults
	var root *Node
	collect(func() { root = parseYAML(file, src, &errs) })
	if root == nil {
		return 0
	}
	known := 0
	for _, key := range root.keys {
		if find(d.Rows, key.text) != nil {
			known++
		}
	}
	if base := root.get(extendsRow.Name); base != nil && more > 0 {
		known += max(0, d.fits(base.text, file, more-1))
	}
	return known
}

// builtin is the prefix of the names of files that ship in messages.
const builtin = "builtin:"

// maxExtends bounds the length of a chain of extends.
const maxExtends = 16

// extendsRow is read before all others and is not part of a complete file.
var extendsRow = Row{Name: "extends", Type: Text,
	Doc: "What to inherit from: a file, relative to this one, or the name of a shipped one. Maps merge key by key; lists and single values replace."}

// open finds the file that a user names.
func (d *Dialect) open(name string) (file string, src []byte, err error) {
	if file, src, err = d.lookUp(name, ""); err != nil {
		return "", nil, diag.List{diag.Diagnostic{Text: err.Error(), Suggestion: d.suggest(name),
			Notes: []string{"shipped " + d.Noun + "s: " + strings.Join(d.Names(), ", ")}}}
	}
	return file, src, nil
}

// suggest is the file that ships that was probably meant.
func (d *Dialect) suggest(name string) string {
	if strings.ContainsAny(name, `/\`) {
		return ""
	}
	return diag.Suggest(strings.TrimSuffix(name, ".yaml"), d.Names())
}

// notAMap reports a file that is something else.
func (d *Dialect) notAMap(root *Node) diag.Diagnostic {
	return root.Errorf("%s is a map of keys and values, not %s", d.An, root.Describe()).WithNote("%s", d.Start)
}

// loader gathers the files of one document.
type loader struct {
	Origin
	dialect *Dialect
	errs    faults
	broken  bool // a part is missing, so that nothing can be told of the whole
}

// fail reports what leaves the document without a part.
func (l *loader) fail(d diag.Diagnostic) {
	l.broken = true
	l.errs.Add(d)
}

func newLoader(d *Dialect) *loader {
	return &loader{dialect: d, Origin: Origin{files: map[string]*source{}, layers: map[string]int{}}}
}

// merged is the tree of a file over what it extends, with the overrides on top.
func (l *loader) merged(file string, src []byte, sets []string) *Node {
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
func (l *loader) tree(file string, src []byte, chain []string) *Node {
	root := parseYAML(file, src, &l.errs)
	if root == nil {
		l.broken = true
		if n := len(l.errs); n > 0 && l.errs[n-1].Text == emptyFile {
			l.errs[n-1] = l.errs[n-1].WithNote("%s", l.dialect.Start).WithNote("shipped %ss: %s", l.dialect.Noun, strings.Join(l.dialect.Names(), ", "))
		}
		return nil
	}
	l.files[file] = root.src
	l.broken = l.broken || root.src.damaged
	l.layers[file] = -len(chain)
	if root.kind != mapNode {
		l.fail(l.dialect.notAMap(root))
		return nil
	}
	base := root.get(extendsRow.Name)
	if base == nil {
		return root
	}
	over := withoutKey(root, extendsRow.Name)
	if base.kind != scalarNode || base.tag != "!!str" || base.text == "" {
		l.fail(base.Errorf("extends must be a file or the name of a shipped %s, not %s", l.dialect.Noun, base.Describe()))
		return over
	}
	chain = append(slices.Clip(chain), file)
	if under := l.base(base, file, chain); under != nil {
		return merge(under, over)
	}
	return over
}

// base reads the file that an extends names.
func (l *loader) base(n *Node, from string, chain []string) *Node {
	file, src, err := l.dialect.lookUp(n.text, from)
	if err != nil {
		d := strange(n.Errorf("%v", err), n.text).WithNote("extends names a file beside %s or a shipped %s: %s", path.Base(from), l.dialect.Noun, strings.Join(l.dialect.Names(), ", "))
		d.Suggestion = l.dialect.suggest(n.text)
		l.fail(d)
		return nil
	}
	for i, f := range chain {
		if f == file {
			l.fail(n.Errorf("extends goes round in a circle").
				WithNote("%s", strings.Join(append(chain[i:len(chain):len(chain)], file), " extends ")))
			return nil
		}
	}
	if len(chain) > maxExtends {
		l.fail(n.Errorf("more than %d files extend each other", maxExtends))
		return nil
	}
	return l.tree(file, src, chain)
}

// lookUp finds a file by path or name and reads it. from is the file that
// extends it, or "". Files come before those that ship, except that the latter
// see no files.
func (d *Dialect) lookUp(name, from string) (file string, src []byte, err error) {
	if !strings.HasPrefix(from, builtin) && !strings.HasPrefix(name, builtin) {
		file = name
		if from != "" && !filepath.IsAbs(name) {
			file = filepath.Join(filepath.Dir(from), name)
		}
		src, err = d.readFile(file)
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return file, src, err
		}
	}
	short := strings.TrimSuffix(strings.TrimPrefix(name, builtin), ".yaml")
	if src, ok := d.Source(short); ok {
		return builtin + short, src, nil
	}
	return "", nil, fmt.Errorf("there is no file %s and no shipped %s of that name", name, d.Noun)
}

// readFile reads a regular file up to just over the limit.
func (d *Dialect) readFile(file string) ([]byte, error) {
	info, err := os.Stat(file)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		return nil, fmt.Errorf("%s cannot be read: %w", file, errors.Unwrap(err))
	}
	if !info.Mode().IsRegular() {
		if info.IsDir() {
			if _, ok := d.Source(file); ok { // a folder of results named like a file that ships
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
