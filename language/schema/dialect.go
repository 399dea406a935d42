// Package schema reads, writes and documents YAML files that are described by tables of typed keys.
// It keeps the position of every value for messages. It does not depend on specs.
package schema

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
	"github.com/miplc/miplc/internal/fileio"
)

// Dialect is a YAML language that is described by tables of keys. The same code reads the files of
// every dialect, applies --set, and generates the JSON Schema and the reference.
type Dialect struct {
	Noun         string // such as "spec"
	WithArticle  string // the noun with its article, such as "a spec"
	Start        string // minimal content of a file, for messages
	About        string // description of a file, for the schema
	Rows         []Row
	ShippedNames func() []string // of the shipped files
	Source       func(name string) ([]byte, bool)
	// Literal reports whether the keys of a map stay as they are, even with dots: set: {train.epochs: 5} of an experiment
	// is not set: {train: {epochs: 5}}. If Literal is nil, all keys with dots are split.
	Literal func(key string) bool
	// Synonyms maps words of other programs to words of the dialect, for suggestions. Its keys are in lower case without -
	// and _.
	Synonyms map[string][]string
	// Advice has notes for keys of other programs that the dialect does without, by their names in
	// lower case without - and _.
	Advice map[string]string
	// Related lists the top-level sections that must fit each other, by the section in which a conflict shows up; may be
	// nil.
	Related map[string][]string
	// Arguments returns the arguments of the entry of a list by its word, if entries have words.
	Arguments func(word string) []Row
	// Defs returns the shared definitions of the JSON Schema; may be nil.
	Defs func() Object
}

// Document is a file of a dialect with the position of everything in it.
type Document struct {
	Origin
	File   string   // path or "builtin:name", for messages
	Pos    diag.Pos // of the first key
	source []byte
	merged *Node // if the file extends another or has overrides
}

// Text returns the file as written. If it extends another file or has overrides, Text
// returns the merged document.
func (d *Document) Text() []byte {
	if d.merged == nil {
		return d.source
	}
	return encodeTree(d.merged.yaml())
}

// Load reads a file of the dialect, or a shipped one by its name, and sets the fields of to.
// Overrides are applied in order. All errors are returned in one diag.List.
func (d *Dialect) Load(name string, overrides []Override, to any) (*Document, error) {
	file, src, err := d.ReadNamed(name)
	if err != nil {
		return nil, err
	}
	return d.Parse(file, src, overrides, to)
}

// Parse is Load for text. file is its name for messages; the path in extends is relative to it.
func (d *Dialect) Parse(file string, src []byte, overrides []Override, to any) (*Document, error) {
	doc, r, err := d.Read(file, src, overrides, to)
	if err != nil {
		return nil, err
	}
	if err := r.Faults().Err(); err != nil {
		return nil, err
	}
	return doc, nil
}

// Read is Parse for callers that use the correct parts of a document with errors. The Reader has
// these errors. err has the errors if a part of the document is missing: a file cannot be found or
// parsed, or an override cannot be applied.
func (d *Dialect) Read(file string, src []byte, overrides []Override, to any) (*Document, *Reader, error) {
	l := &loader{dialect: d, Origin: Origin{files: map[string]*source{}, layers: map[string]int{}, related: d.Related}}
	root := l.merged(file, src, overrides)
	if root == nil || l.broken {
		return nil, nil, l.faults.Err()
	}
	doc := &Document{Origin: l.Origin, File: file, Pos: root.pos, source: src}
	r := &Reader{Origin: &doc.Origin, dialect: d, faults: l.faults, faultCounts: map[string]int{}}
	applyDefaults(d.Rows, to)
	r.section(root, d.Rows, "", to)
	if l.skipped {
		return nil, nil, r.faults.Err()
	}
	if len(overrides) > 0 || len(doc.files) > 1 {
		doc.merged = root
	}
	return doc, r, nil
}

// Faults returns the faults found so far.
func (r *Reader) Faults() diag.List { return r.faults }

// CountKnownKeys returns the number of top-level keys of a file and of the files it extends that
// the dialect has, -1 if the file does not exist. The larger count of two dialects shows the
// dialect of a file.
func (d *Dialect) CountKnownKeys(name string) int { return d.countKnownKeys(name, "", maxExtends) }

func (d *Dialect) countKnownKeys(name, from string, more int) int {
	file, src, err := d.lookUp(name, from)
	if err != nil {
		return -1
	}
	root := parseYAML(file, src, new(diag.List))
	if root == nil {
		return 0
	}
	known := 0
	for _, key := range root.keys {
		if Find(d.Rows, key.text) != nil {
			known++
		}
	}
	if base := root.Get(ExtendsRow.Name); base != nil && more > 0 {
		known += max(0, d.countKnownKeys(base.text, file, more-1))
	}
	return known
}

// Builtin is the prefix of the names of shipped files.
const Builtin = "builtin:"

// maxExtends is the maximum length of a chain of extends.
const maxExtends = 16

// ExtendsRow is the key extends of every dialect. It is read before all others and is not part of a
// complete document.
var ExtendsRow = Row{Name: "extends", Type: Text,
	Doc: "The file (relative to this one) or shipped spec to inherit from. Maps are merged key by key; lists and " +
		"single values replace."}

// ReadNamed finds and reads the file that a user names.
func (d *Dialect) ReadNamed(name string) (file string, src []byte, err error) {
	if file, src, err = d.lookUp(name, ""); err != nil {
		return "", nil, diag.List{diag.Diagnostic{Text: err.Error(), Suggestion: d.suggestFile(name),
			Notes: []string{"shipped " + d.Noun + "s: " + strings.Join(d.ShippedNames(), ", ")}}}
	}
	return file, src, nil
}

// suggestFile returns the shipped file with the most similar name, or "".
func (d *Dialect) suggestFile(name string) string {
	if strings.ContainsAny(name, `/\`) {
		return ""
	}
	name = strings.TrimSuffix(name, ".yaml")
	if _, ok := d.Source(name); ok {
		return name
	}
	return diag.Suggest(name, d.ShippedNames())
}

// notAMap returns the error for a document that is not a map.
func (d *Dialect) notAMap(root *Node) diag.Diagnostic {
	return root.Errorf("%s is a map of keys and values, not %s", d.WithArticle, root.Describe()).WithNote("%s", d.Start)
}

// loader reads the files of one document.
type loader struct {
	Origin
	dialect *Dialect
	faults  diag.List
	broken  bool // a part is missing, so that the rest is not read
	skipped bool // an override could not be applied, so that rules about the whole document are skipped
}

// skip reports an override that cannot be applied.
func (l *loader) skip(d diag.Diagnostic) {
	l.skipped = true
	l.faults.Add(d)
}

// fail reports an error after which a part of the document is missing.
func (l *loader) fail(d diag.Diagnostic) {
	l.broken = true
	l.faults.Add(d)
}

// merged returns the tree of a file merged over the files it extends, with the overrides applied.
func (l *loader) merged(file string, src []byte, overrides []Override) *Node {
	root := l.tree(file, src, nil)
	if root != nil {
		for _, o := range overrides {
			root = l.override(root, o)
		}
	}
	return root
}

// tree parses a file and merges it over the file it extends. chain contains the files that extend
// it. The result is nil after an error.
func (l *loader) tree(file string, src []byte, chain []string) *Node {
	root := parseYAML(file, src, &l.faults)
	if root == nil {
		l.broken = true
		if n := len(l.faults); n > 0 && l.faults[n-1].Text == emptyFile {
			l.faults[n-1] = l.faults[n-1].WithNote("%s", l.dialect.Start).WithNote("shipped %ss: %s", l.dialect.Noun,
				strings.Join(l.dialect.ShippedNames(), ", "))
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
	base := root.Get(ExtendsRow.Name)
	if base == nil {
		return root
	}
	over := root.WithoutKey(ExtendsRow.Name)
	if base.kind != scalarNode || base.tag != "!!str" || base.text == "" {
		l.fail(base.Errorf("extends must be a file or the name of a shipped %s, not %s", l.dialect.Noun, base.Describe()))
		return over
	}
	chain = append(slices.Clip(chain), file)
	if under := l.base(base, file, chain); under != nil {
		return l.dialect.merge(under, over, false)
	}
	return over
}

// base reads the file named by extends.
func (l *loader) base(n *Node, from string, chain []string) *Node {
	file, src, err := l.dialect.lookUp(n.text, from)
	if err != nil {
		d := noteStrangeCharacter(n.Errorf("%v", err), n.text).WithNote("extends names a file relative to %s or a shipped "+
			"%s: %s", path.Base(from), l.dialect.Noun, strings.Join(l.dialect.ShippedNames(), ", "))
		d.Suggestion = l.dialect.suggestFile(n.text)
		l.fail(d)
		return nil
	}
	for i, f := range chain {
		if f == file {
			l.fail(n.Errorf("extends forms a cycle").
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

// lookUp finds a file by path or name and reads it. from is the file that extends it, or "". Files
// take precedence over shipped ones, but shipped files extend only shipped files. A user who names
// demipl.yaml means a file, not the shipped spec demipl; files extend demipl.yaml as demipl does,
// because shipped files do.
func (d *Dialect) lookUp(name, from string) (file string, src []byte, err error) {
	if !strings.HasPrefix(from, Builtin) && !strings.HasPrefix(name, Builtin) {
		file = name
		if from != "" && !filepath.IsAbs(name) {
			file = filepath.Join(filepath.Dir(from), name)
		}
		src, err = d.readFile(file)
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return file, src, err
		}
	}
	short := strings.TrimPrefix(name, Builtin)
	if from != "" {
		short = strings.TrimSuffix(short, ".yaml")
	}
	if src, ok := d.Source(short); ok {
		return Builtin + short, src, nil
	}
	return "", nil, fmt.Errorf("there is no file %s and no shipped %s of that name", name, d.Noun)
}

// readFile reads a regular file, at most one byte more than the limit.
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
	f, _, err := fileio.Open(file)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w", file, errors.Unwrap(err))
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxBytes+1))
}
