// The text of a file: lines, columns and tokens.

package schema

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"github.com/miplc/miplc/internal/diag"
)

// source is the text of one file, split into lines for messages.
type source struct {
	file  string
	lines []string
	// damaged reports that an unsupported part was removed.
	damaged bool
	found   struct{ line, col, offset int } // the last place that from looked up
}

// splitLines splits text where the YAML scanner does, so that its line numbers are indices into the
// result plus one.
func splitLines(text string) []string {
	var lines []string
	start := 0
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		if r == '\r' && strings.HasPrefix(text[i+1:], "\n") {
			size = 2
		}
		if IsBreak(r) {
			lines = append(lines, text[start:i])
			start = i + size
		}
		i += size
	}
	return append(lines, text[start:])
}

// IsBreak reports whether YAML ends a line at r.
func IsBreak(r rune) bool {
	return r == '\n' || r == '\r' || r == '\u0085' || r == '\u2028' || r == '\u2029'
}

func isSpace(r rune) bool { return r == ' ' || r == '\t' || IsBreak(r) }

// line returns the text of a line counted from 1, or "".
func (s *source) line(n int) string {
	if s == nil || n < 1 || n > len(s.lines) {
		return ""
	}
	return s.lines[n-1]
}

// from returns the rest of a line from column col. It continues from the position of the previous
// call if possible, so that a line of a million characters is scanned once.
func (s *source) from(line, col int) string {
	text, at := s.line(line), &s.found
	if at.line != line || at.col > col {
		at.line, at.col, at.offset = line, 1, 0
	}
	for at.col < col && at.offset < len(text) {
		_, size := utf8.DecodeRuneInString(text[at.offset:])
		at.col, at.offset = at.col+1, at.offset+size
	}
	return text[at.offset:]
}

// maxToken is the maximum number of underlined characters.
const maxToken = 500

// diagnose makes a diagnostic at pos that shows its line and underlines width
// characters, or the token that starts there when width is 0.
func (s *source) diagnose(pos diag.Pos, width int, text string) diag.Diagnostic {
	if s == nil || pos.Line == 0 {
		return diag.Diagnostic{Pos: pos, Width: max(1, width), Text: text}
	}
	rest := s.from(pos.Line, pos.Col)
	if width == 0 {
		width = tokenWidth(rest)
	}
	length := utf8.RuneCountInString(rest[:min(len(rest), utf8.UTFMax*maxToken)])
	return diag.Diagnostic{Pos: pos, Width: max(1, min(width, length, maxToken)), Text: text, Line: s.line(pos.Line)}
}

// tokenWidth measures the YAML token that a line begins with.
func tokenWidth(line string) int {
	runes := []rune(line[:min(len(line), utf8.UTFMax*maxToken)])
	if runes = runes[:min(len(runes), maxToken)]; len(runes) == 0 {
		return 1
	}
	switch first := runes[0]; first {
	case '"', '\'':
		for i, r := range runes[1:] {
			if r == first {
				return i + 2
			}
		}
		return len(runes)
	case '[', '{':
		return bracketWidth(runes)
	}
	end := len(runes)
	for i, r := range runes {
		next := ' '
		if i+1 < len(runes) {
			next = runes[i+1]
		}
		if strings.ContainsRune(",]}", r) || r == ':' && next == ' ' || r == ' ' && next == '#' {
			end = i
			break
		}
	}
	return max(1, len([]rune(strings.TrimRight(string(runes[:end]), " \t"))))
}

// bracketWidth measures to the bracket that closes the first one, or to the end.
func bracketWidth(runes []rune) int {
	depth := 0
	for i, r := range runes {
		switch r {
		case '[', '{':
			depth++
		case ']', '}':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return len(runes)
}

// Positions maps the byte offsets 0 to len(n.Raw()) of a scalar to positions in its
// file. It skips white space, because folding and indentation of multi-line scalars
// change nothing else. It returns nil if the text does not match the file; callers then use the start of the scalar.
func (n *Node) Positions() []diag.Pos {
	if n.src == nil || n.pos.Line == 0 {
		return nil
	}
	c := newCursor(n)
	positions := make([]diag.Pos, len(n.text)+1)
	last := n.pos
	for i, want := range n.text {
		if isSpace(want) {
			continue
		}
		got, pos, ok := c.next()
		if !ok || got != want {
			return nil
		}
		positions[i] = pos
		last = pos
		last.Col++
	}
	positions[len(n.text)] = last
	for i := len(n.text) - 1; i >= 0; i-- {
		if positions[i].IsZero() {
			positions[i] = positions[i+1]
		}
	}
	return positions
}

// cursor walks over the characters of a scalar as written, skipping white space and undoing the escapes of its style.
type cursor struct {
	src       *source
	line, col int    // of the next character, counted from 1
	rest      string // of the line, from there on
	style     yaml.Style
}

func newCursor(n *Node) *cursor {
	c := &cursor{src: n.src, line: n.pos.Line, col: n.pos.Col, style: n.style}
	c.rest = n.src.from(c.line, c.col)
	switch n.style {
	case yaml.LiteralStyle, yaml.FoldedStyle: // the text starts on the line after the indicator
		c.rest = ""
	case yaml.SingleQuotedStyle, yaml.DoubleQuotedStyle:
		c.take()
	}
	return c
}

// take reads the next character of the line; ok is false at its end.
func (c *cursor) take() (r rune, ok bool) {
	if c.rest == "" {
		return 0, false
	}
	r, size := utf8.DecodeRuneInString(c.rest)
	c.col, c.rest = c.col+1, c.rest[size:]
	return r, true
}

func (c *cursor) next() (rune, diag.Pos, bool) {
	for {
		for c.rest == "" {
			if c.line >= len(c.src.lines) {
				return 0, diag.Pos{}, false
			}
			c.line++
			c.col, c.rest = 1, c.src.line(c.line)
		}
		pos := diag.Pos{File: c.src.file, Line: c.line, Col: c.col}
		r, _ := c.take()
		switch {
		case isSpace(r):
			continue
		case c.style == yaml.SingleQuotedStyle && r == '\'':
			c.take() // two quotes stand for one
		case c.style == yaml.DoubleQuotedStyle && r == '\\':
			if r = c.escape(); isSpace(r) {
				continue
			}
		}
		return r, pos, true
	}
}

// escape reads the rest of a backslash escape of a double-quoted scalar, which Go writes alike if it is not a character
// itself. A backslash at the end of a line joins lines and counts as white space.
func (c *cursor) escape() rune {
	if r, _, rest, err := strconv.UnquoteChar(`\`+c.rest, '"'); err == nil {
		c.col, c.rest = c.col+len(c.rest)-len(rest), rest
		return r
	}
	if r, ok := c.take(); ok {
		return r
	}
	return ' '
}

// Line returns a line of the file that the node is in, counted from 1, or "".
func (n *Node) Line(number int) string { return n.src.line(number) }
