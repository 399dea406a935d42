// YAML as a tree whose nodes keep their positions, and queries on its nodes.

package schema

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"github.com/miplc/miplc/internal/diag"
)

// Limits of a file. A spec has some hundred lines. The limits bound the memory and time of wrong or
// hostile files.
const (
	maxBytes  = 1 << 20
	maxDepth  = 24
	maxValues = 50_000
)

type nodeKind uint8

const (
	scalarNode nodeKind = iota
	listNode
	mapNode
)

func (k nodeKind) String() string {
	return [...]string{"a value", "a list", "a map"}[k]
}

// Node is a value of the YAML text with its position. Unlike yaml.Node it contains its file, so
// that trees of several files can be merged.
type Node struct {
	kind  nodeKind
	tag   string     // of a scalar: !!str, !!int, !!float, !!bool, !!null, ...
	text  string     // of a scalar
	style yaml.Style // of a scalar; 0: without quotes, in the line of its key
	pos   diag.Pos
	src   *source
	keys  []*Node // of a map
	items []*Node // of a list; of a map, the values in the order of keys
}

// Errorf returns a diagnostic that shows the line of the node and underlines it.
func (n *Node) Errorf(format string, args ...any) diag.Diagnostic {
	width := 0
	if n.isPlain() && !strings.ContainsFunc(n.text, IsBreak) {
		width = utf8.RuneCountInString(n.text)
	}
	return n.src.diagnose(n.pos, width, fmt.Sprintf(format, args...))
}

// Describe returns a description of the node for messages: "the number 3", "a list".
func (n *Node) Describe() string {
	if n.kind != scalarNode {
		return n.kind.String()
	}
	switch n.tag {
	case "!!int", "!!float":
		return "the number " + n.text
	case "!!bool":
		return n.text
	case "!!null":
		return "nothing"
	case "!!timestamp":
		return "the date " + n.text
	}
	if utf8.RuneCountInString(n.text) > 30 {
		return "text"
	}
	return fmt.Sprintf("the text %q", n.text)
}

const emptyFile = "the file is empty"

// parseYAML reads one document. When it returns nil, errs has the reason.
func parseYAML(file string, src []byte, errs *diag.List) *Node {
	if d, ok := checkEncoding(file, src); !ok {
		errs.Add(d)
		return nil
	}
	text := strings.TrimPrefix(string(src), "\ufeff")
	s := &source{file: file, lines: splitLines(text)}
	if mostValues(s.lines) > maxValues {
		errs.Add(diag.Errorf(diag.Pos{File: file}, "the file is too long: its lines may contain more than %d values",
			maxValues).
			WithNote("specs and experiments are some hundred lines"))
		return nil
	}
	doc, err := decodeYAML([]byte(text))
	if err != nil {
		errs.Add(syntaxError(s, err))
		return nil
	}
	if doc == nil {
		errs.Add(diag.Errorf(diag.Pos{File: file}, emptyFile))
		return nil
	}
	c := converter{src: s, errs: errs}
	return c.convert(doc, 0)
}

// checkEncoding rejects text that cannot be a spec before it is parsed.
func checkEncoding(file string, src []byte) (diag.Diagnostic, bool) {
	pos := diag.Pos{File: file}
	switch {
	case len(src) > maxBytes:
		return diag.Errorf(pos, "the file has more than %d bytes, the limit for a spec or an experiment", maxBytes), false
	case bytes.HasPrefix(src, []byte{0xff, 0xfe}), bytes.HasPrefix(src, []byte{0xfe, 0xff}):
		return diag.Errorf(pos, "the file is UTF-16; save it as UTF-8"), false
	}
	pos.Line, pos.Col = 1, 1
	src = bytes.TrimPrefix(src, []byte("\ufeff"))
	for i := 0; i < len(src); {
		r, size := utf8.DecodeRune(src[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			return diag.Errorf(pos, "the file is not UTF-8 text from here on; save it as UTF-8"), false
		case r < ' ' && r != '\t' && r != '\n' && r != '\r', r == 0x7f, r > 0x7f && r < 0xa0 &&
			r != 0x85, r == 0xfffe, r == 0xffff, r == 0xfeff:
			return diag.Errorf(pos, "the character U+%04X is not allowed in this file",
				r).WithNote("the command expects YAML text, not a model or another binary file"), false
		}
		pos.Col++
		if IsBreak(r) && !(r == '\r' && bytes.HasPrefix(src[i+1:], []byte("\n"))) {
			pos.Line, pos.Col = pos.Line+1, 1
		}
		i += size
	}
	return diag.Diagnostic{}, true
}

// mostValues returns an upper bound of the number of values that the YAML parser would create,
// which take a hundred times the memory of the text. A value starts a line or follows one of these
// marks.
func mostValues(lines []string) int {
	n := 0
	for _, line := range lines {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		n++
		for i := range len(line) {
			switch c := line[i]; {
			case strings.IndexByte(",[{:", c) >= 0, (c == '-' || c == '?') && strings.HasPrefix(line[i+1:], " "):
				n++
			}
		}
	}
	return n
}

// errSeveral is returned by decodeYAML when a second document starts.
var errSeveral = errors.New("several documents")

// decodeYAML returns the root of the only document, or nil for an empty text. It returns panics of
// the scanner of the YAML library, which some malformed input causes, as errors.
func decodeYAML(text []byte) (root *yaml.Node, err error) {
	defer func() {
		if p := recover(); p != nil {
			root, err = nil, fmt.Errorf("yaml: malformed input (%v)", p)
		}
	}()
	dec := yaml.NewDecoder(bytes.NewReader(text))
	var doc, second yaml.Node
	if err := dec.Decode(&doc); err != nil {
		if err == io.EOF {
			return nil, nil
		}
		return nil, err
	}
	switch err := dec.Decode(&second); {
	case err == nil:
		return nil, errSeveral
	case err != io.EOF:
		return nil, err
	}
	if len(doc.Content) == 0 || doc.Content[0].ShortTag() == "!!null" && doc.Content[0].Value == "" {
		return nil, nil
	}
	return doc.Content[0], nil
}

// converter converts yaml.Nodes to Nodes. It rejects YAML features that dialects do not support.
type converter struct {
	src  *source
	errs *diag.List
}

// refuse reports a value that is not supported. Errors that follow from it are not reported.
func (c *converter) refuse(d diag.Diagnostic) {
	c.src.damaged = true
	c.errs.Add(d)
}

// convert returns nil if the whole node is rejected; it then adds the reason.
func (c *converter) convert(y *yaml.Node, depth int) *Node {
	n := &Node{pos: diag.Pos{File: c.src.file, Line: y.Line, Col: y.Column}, src: c.src}
	switch {
	case depth > maxDepth:
		c.refuse(n.Errorf("nested more than %d levels deep", maxDepth))
		return nil
	case y.Kind == yaml.AliasNode, y.Anchor != "":
		c.refuse(n.Errorf("anchors and aliases are not part of the language").
			WithNote("write the value out, or move the shared part to a file and use extends"))
		return nil
	case y.Style&yaml.TaggedStyle != 0:
		c.refuse(n.Errorf("type tags such as %s are not part of the language", y.Tag).
			WithNote("every setting has one type; leave the tag out"))
		return nil
	}
	switch y.Kind {
	case yaml.ScalarNode:
		n.text, n.tag, n.style = y.Value, y.ShortTag(), y.Style
		return n
	case yaml.SequenceNode:
		n.kind = listNode
		for _, item := range y.Content {
			if v := c.convert(item, depth+1); v != nil {
				n.items = append(n.items, v)
			}
		}
		return n
	case yaml.MappingNode:
		n.kind = mapNode
		c.convertMap(n, y, depth)
		return n
	}
	c.refuse(n.Errorf("this cannot be read as YAML"))
	return nil
}

func (c *converter) convertMap(n *Node, y *yaml.Node, depth int) {
	first, joined := map[string]*Node{}, map[*Node]bool{}
	for i := 0; i+1 < len(y.Content); i += 2 {
		key := c.convert(y.Content[i], depth+1)
		if key == nil {
			continue
		}
		switch {
		case key.kind != scalarNode:
			c.refuse(key.Errorf("a key must be a word, not %s", key.kind))
			continue
		case key.tag == "!!merge":
			c.refuse(key.Errorf("merge keys are not part of the language").
				WithNote("use extends to inherit from another spec"))
			continue
		case first[key.text] != nil:
			c.errs.Add(key.Errorf("the key %q occurs twice", key.text).
				WithNote("first at %s", first[key.text].pos))
			continue
		}
		if k := len(n.items) - 1; k >= 0 && y.Style&yaml.FlowStyle != 0 && cutByComma(n.items[k], y.Content[i+1]) {
			n.items[k].text += ", " + key.text
			joined[n.items[k]] = true
			continue
		}
		first[key.text] = key
		if value := c.convert(y.Content[i+1], depth+1); value != nil {
			n.keys = append(n.keys, key)
			n.items = append(n.items, value)
		}
	}
	for _, item := range n.items {
		if joined[item] && !tuple.MatchString(item.text) { // a tuple is of the wrong type
			c.errs.Add(item.Errorf("text that contains a comma needs quotes inside braces"))
		}
	}
}

// tuple is a list as Python writes it.
var tuple = regexp.MustCompile(`^\([\w., ]*\)$`)

// cutByComma reports whether a key without a value is the rest of the text before it, such as "W)"
// in {p: matmul(X, W)}.
func cutByComma(before *Node, value *yaml.Node) bool {
	return value.ShortTag() == "!!null" && value.Value == "" && before.isPlain() &&
		strings.Count(before.text, "(") > strings.Count(before.text, ")")
}

// kindKey is the key that distinguishes maps of different kinds.
const kindKey = "kind"

// merge merges over into base: maps are merged key by key. Other values, maps of another kind, and the values in
// Literal maps replace those of base. literal reports whether base is such a map. merge does not change its arguments.
func (d *Dialect) merge(base, over *Node, literal bool) *Node {
	if base.kind != mapNode || over.kind != mapNode {
		return over
	}
	if was, is := base.Get(kindKey), over.Get(kindKey); was != nil && is != nil && was.text != is.text {
		return over
	}
	out := *over
	out.keys = append([]*Node(nil), base.keys...)
	out.items = append([]*Node(nil), base.items...)
	at := make(map[string]int, len(base.keys))
	for j, k := range base.keys {
		at[k.text] = j
	}
	for i, key := range over.keys {
		switch j, found := at[key.text]; {
		case !found:
			out.keys = append(out.keys, key)
			out.items = append(out.items, over.items[i])
		case literal:
			out.keys[j], out.items[j] = key, over.items[i]
		default:
			out.keys[j], out.items[j] = key, d.merge(out.items[j], over.items[i], d.literal(key.text))
		}
	}
	return &out
}

// literal reports whether a key has a Literal map.
func (d *Dialect) literal(key string) bool { return d.Literal != nil && d.Literal(key) }

// IsMap reports whether the node is a map, whose keys and values are Keys and Items.
func (n *Node) IsMap() bool { return n.kind == mapNode }

// IsList reports whether the node is a list, whose entries are Items.
func (n *Node) IsList() bool { return n.kind == listNode }

// IsScalar reports whether the node is a single value, null included.
func (n *Node) IsScalar() bool { return n.kind == scalarNode }

// IsValue reports whether the node is a single value other than null.
func (n *Node) IsValue() bool { return n.kind == scalarNode && !n.IsNull() }

// isPlain reports whether the node is a single value without quotes.
func (n *Node) isPlain() bool { return n.kind == scalarNode && n.style == 0 }

// IsText reports whether the node is a text.
func (n *Node) IsText() bool { return n.kind == scalarNode && n.tag == "!!str" }

// IsNull reports whether the node is null.
func (n *Node) IsNull() bool { return n.kind == scalarNode && n.tag == "!!null" }

// Pos returns where the node begins.
func (n *Node) Pos() diag.Pos { return n.pos }

// Raw returns a single value as written, without quotes; "" for lists and maps.
func (n *Node) Raw() string { return n.text }

// Get returns the value of a key of a map, or nil.
func (n *Node) Get(key string) *Node {
	for i, k := range n.keys {
		if k.text == key {
			return n.items[i]
		}
	}
	return nil
}

// Int returns a whole number that is written without quotes.
func (n *Node) Int() (int, bool) {
	if !n.isPlain() || !integerText.MatchString(n.text) {
		return 0, false
	}
	v, err := strconv.Atoi(n.text)
	return v, err == nil
}

// Keys returns the keys of a map; Items()[i] is the value of Keys()[i].
func (n *Node) Keys() []*Node { return n.keys }

// Items returns the entries of a list or the values of a map.
func (n *Node) Items() []*Node { return n.items }

// Flow writes the node on one line of YAML, as --set accepts it.
func (n *Node) Flow() string {
	var parts []string
	switch n.kind {
	case listNode:
		for _, item := range n.items {
			parts = append(parts, item.Flow())
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case mapNode:
		for i, item := range n.items {
			parts = append(parts, n.keys[i].Flow()+": "+item.Flow())
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	if n.style == 0 && !strings.ContainsAny(n.text, ",[]{}\n") {
		return n.text
	}
	// YAML accepts every escape that Go writes in double quotes.
	return strconv.Quote(n.text)
}

// WithoutKey returns a copy of a map without one key.
func (n *Node) WithoutKey(key string) *Node {
	out := *n
	out.keys, out.items = nil, nil
	for i, k := range n.keys {
		if k.text != key {
			out.keys, out.items = append(out.keys, k), append(out.items, n.items[i])
		}
	}
	return &out
}
