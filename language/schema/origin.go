// Origins of settings: the file of the user, a base, or --set.

package schema

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/miplc/miplc/internal/diag"
)

// keyAt is a key of the document and the position of its last occurrence.
type keyAt struct {
	path string // dotted, such as model.let.p
	pos  diag.Pos
}

// Origin maps the keys and values of a document to their positions in its files.
type Origin struct {
	files   map[string]*source // the document and the files it extends
	layers  map[string]int     // of the files, see layer
	sound   map[string]bool    // see MarkSound
	alone   func() bool        // see CheckAlone; nil: there are no overrides
	related map[string][]string
	keys    []keyAt // keys that the files contain, in the order of the tables
}

// MarkSound records the extended files that are correct by themselves, so that an error at a position in them is a
// conflict with the file that extends them. isSound is called for files that do not ship.
func (o *Origin) MarkSound(isSound func(file string) bool) {
	o.sound = map[string]bool{}
	for file, layer := range o.layers {
		switch {
		case strings.HasPrefix(file, Builtin):
			o.sound[file] = true
		case layer < 0:
			o.sound[file] = isSound(file)
		}
	}
}

// CheckAlone sets the function that reports whether the document is correct without its overrides. Overrides then
// are like a file that extends the document.
func (o *Origin) CheckAlone(isSound func() bool) { o.alone = isSound }

// Inherited reports whether a position is in a file that the document extends, or in the document if it has
// overrides and is correct without them.
func (o *Origin) Inherited(pos diag.Pos) bool {
	if o.layer(pos) == 0 {
		_, known := o.layers[pos.File]
		return known && o.alone != nil && o.alone()
	}
	return o.layer(pos) < 0
}

// layer returns the layer of a position: a higher layer overrides lower ones.
func (o *Origin) layer(pos diag.Pos) int {
	if pos.Setting != "" {
		return overrideLayer
	}
	return o.layers[pos.File]
}

// ExtendedBy reports whether pos is in a file that the file of other extends.
func (o *Origin) ExtendedBy(pos, other diag.Pos) bool {
	return o.layer(pos) < o.layer(other)
}

// Files lists the names of all files that were read.
func (o *Origin) Files() []string { return slices.Sorted(maps.Keys(o.files)) }

// AtUserLine is AddSource for values that conflict with each other. If the position is in an inherited
// file that is correct by itself, the diagnostic moves to the line of the user that overrides it, with
// a note about the other.
func (o *Origin) AtUserLine(d diag.Diagnostic) diag.Diagnostic {
	d = o.AddSource(d)
	key, ok := o.overridingKey(d.Pos)
	if !ok {
		return d
	}
	moved := d.WithNote("inherited from %s: %s", d.Pos, strings.TrimSpace(d.Line))
	moved.Pos, moved.Line, moved.Width = key.pos, "", 0
	moved.Text = fmt.Sprintf("%s conflicts with an inherited setting: %s", key.path, d.Text)
	return o.AddSource(moved)
}

// AddSource completes a diagnostic at a position in the files of the document with the source line and
// the width of the underline, so that later stages report errors like the reader.
func (o *Origin) AddSource(d diag.Diagnostic) diag.Diagnostic {
	in := o.files[d.Pos.File]
	if in == nil || d.Pos.Setting != "" && d.Pos.Line == 0 {
		return d
	}
	if d.Line == "" {
		d.Line = in.line(d.Pos.Line)
	}
	if d.Width == 0 && d.Line != "" {
		d.Width = tokenWidth(in.from(d.Pos.Line, d.Pos.Col))
	}
	return d
}

// overridingKey returns the key that most likely conflicts with an inherited position: the only key
// that overrides its section, or the section; otherwise a key in a related section.
func (o *Origin) overridingKey(pos diag.Pos) (keyAt, bool) {
	if !o.sound[pos.File] {
		return keyAt{}, false
	}
	section := o.sectionAt(pos)
	for _, section := range append([]string{section}, o.related[section]...) {
		if key, ok := o.overridingKeyIn(section, o.layer(pos)); ok {
			return key, true
		}
	}
	return keyAt{}, false
}

// overridingKeyIn returns the key of a section that a higher layer sets. If there are several, it returns the deepest
// key that contains them all.
func (o *Origin) overridingKeyIn(section string, layer int) (keyAt, bool) {
	set, common := map[string]keyAt{}, ""
	parent := func(path string) string { return path[:max(0, strings.LastIndexByte(path, '.'))] }
	for i, k := range o.keys {
		if o.layer(k.pos) <= layer || k.path != section && !strings.HasPrefix(k.path, section+".") {
			continue
		}
		set[k.path] = k
		if i+1 < len(o.keys) && strings.HasPrefix(o.keys[i+1].path, k.path+".") {
			continue // not a leaf
		}
		if common == "" {
			common = k.path
		}
		for k.path != common && !strings.HasPrefix(k.path, common+".") {
			common = parent(common)
		}
	}
	for common != "" && set[common].path == "" {
		common = parent(common)
	}
	return set[common], common != ""
}

// sectionAt returns the top-level key that contains a position.
func (o *Origin) sectionAt(pos diag.Pos) string {
	var last keyAt
	for _, k := range o.keys {
		before := k.pos.Line < pos.Line || k.pos.Line == pos.Line && k.pos.Col <= pos.Col
		after := k.pos.Line > last.pos.Line || k.pos.Line == last.pos.Line && k.pos.Col > last.pos.Col
		if k.pos.SameSource(pos) && before && after {
			last = k
		}
	}
	section, _, _ := strings.Cut(last.path, ".")
	return section
}

// KeyPos returns the position of a key by its dotted path, or the zero position if it
// was not written.
func (o *Origin) KeyPos(path string) diag.Pos {
	for _, k := range o.keys {
		if k.path == path {
			return k.pos
		}
	}
	return diag.Pos{}
}
