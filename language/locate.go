package language

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/miplc/miplc/internal/diag"
)

// keyAt is one key of the spec with the place that it was last written at.
type keyAt struct {
	path string // dotted, such as model.let.p
	pos  diag.Pos
}

// Origin knows where everything in a document was written.
type Origin struct {
	files  map[string]*source // all that were read
	layers map[string]int     // of the files: a later layer overrides earlier ones
	sound  map[string]bool    // files that are right by themselves
	keys   []keyAt            // all that are written, in the order of the tables
}

// Files lists all files that were read, by their names as in messages.
func (o *Origin) Files() []string { return slices.Sorted(maps.Keys(o.files)) }

// Locate is Show for values that do not fit each other. A place that is merely
// inherited is no fault of its file then, but a clash with what the user wrote: the
// diagnostic moves to that line and notes the other.
func (o *Origin) Locate(d diag.Diagnostic) diag.Diagnostic {
	d = o.Show(d)
	key, ok := o.overriding(d.Pos)
	if !ok {
		return d
	}
	moved := d.WithNote("inherited from %s: %s", d.Pos, strings.TrimSpace(d.Line))
	moved.Pos, moved.Line, moved.Width = key.pos, "", 0
	moved.Text = fmt.Sprintf("%s does not fit what is inherited: %s", key.path, d.Text)
	return o.Show(moved)
}

// Show completes a diagnostic at a place in the spec's files, so that later stages
// report errors as the reader does: it adds the source line and the width of the
// underline.
func (o *Origin) Show(d diag.Diagnostic) diag.Diagnostic {
	in := o.files[d.Pos.File]
	if in == nil {
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

// overriding finds the key that most likely clashes with an inherited place:
// the only one that overrides its section, or the section itself; for a part of
// the model, failing that, one of the other sections that models are made of.
func (o *Origin) overriding(pos diag.Pos) (keyAt, bool) {
	if !o.sound[pos.File] {
		return keyAt{}, false
	}
	sections := []string{o.sectionAt(pos)}
	if slices.Contains([]string{"model", "learner", "loss", "weights"}, sections[0]) {
		sections = append(sections, "model", "data", "learner", "loss", "weights")
	}
	for _, section := range sections {
		if key, ok := o.overridden(section, o.layers[pos.File]); ok {
			return key, true
		}
	}
	return keyAt{}, false
}

// overridden gives the key of a section that stands in a layer above, the
// section itself where there are several.
func (o *Origin) overridden(section string, layer int) (keyAt, bool) {
	var whole keyAt
	var leaves []keyAt
	for i, k := range o.keys {
		if o.layers[k.pos.File] <= layer || k.path != section && !strings.HasPrefix(k.path, section+".") {
			continue
		}
		if k.path == section {
			whole = k
		}
		if i+1 == len(o.keys) || !strings.HasPrefix(o.keys[i+1].path, k.path+".") {
			leaves = append(leaves, k)
		}
	}
	if len(leaves) == 1 {
		return leaves[0], true
	}
	return whole, whole.path != ""
}

// sectionAt is the key at the top level that a place in a file belongs to.
func (o *Origin) sectionAt(pos diag.Pos) string {
	var last keyAt
	for _, k := range o.keys {
		before := k.pos.Line < pos.Line || k.pos.Line == pos.Line && k.pos.Col <= pos.Col
		after := k.pos.Line > last.pos.Line || k.pos.Line == last.pos.Line && k.pos.Col > last.pos.Col
		if k.pos.File == pos.File && before && after {
			last = k
		}
	}
	section, _, _ := strings.Cut(last.path, ".")
	return section
}

// keyPos is the place of a key, the zero place when it was not written.
func (o *Origin) keyPos(path string) diag.Pos {
	for _, k := range o.keys {
		if k.path == path {
			return k.pos
		}
	}
	return diag.Pos{}
}
