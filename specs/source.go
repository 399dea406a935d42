package specs

import (
	"strings"
	"unicode/utf8"

	"github.com/miplc/miplc/internal/diag"
)

// source is the text of one file, split into lines for messages.
type source struct {
	file  string
	lines []string
}

func newSource(file, text string) *source {
	return &source{file: file, lines: splitLines(text)}
}

// splitLines breaks text where the YAML scanner does, so that its line numbers
// are indices into the result plus one.
func splitLines(text string) []string {
	var lines []string
	start := 0
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		if r == '\r' && strings.HasPrefix(text[i+1:], "\n") {
			size = 2
		}
		if isBreak(r) {
			lines = append(lines, text[start:i])
			start = i + size
		}
		i += size
	}
	return append(lines, text[start:])
}

func isBreak(r rune) bool {
	return r == '\n' || r == '\r' || r == '\u0085' || r == '\u2028' || r == '\u2029'
}

func isSpace(r rune) bool { return r == ' ' || r == '\t' || isBreak(r) }

// line returns the text of a line counted from 1, or "".
func (s *source) line(n int) string {
	if s == nil || n < 1 || n > len(s.lines) {
		return ""
	}
	return s.lines[n-1]
}

// diagnose makes a diagnostic at pos that shows its line and underlines width
// characters, or the token that starts there when width is 0.
func (s *source) diagnose(pos diag.Pos, width int, text string) diag.Diagnostic {
	line := s.line(pos.Line)
	if width == 0 {
		width = tokenWidth(line, pos.Col)
	}
	rest := utf8.RuneCountInString(line) - (pos.Col - 1)
	return diag.Diagnostic{Pos: pos, Width: max(1, min(width, rest)), Text: text, Line: line}
}

// tokenWidth measures the YAML token that starts at column col of a line.
func tokenWidth(line string, col int) int {
	runes := []rune(line)
	if col < 1 || col > len(runes) {
		return 1
	}
	runes = runes[col-1:]
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

// locate maps the byte offsets 0 to len(n.text) of a scalar to places in its
// file. Only characters that are not white space are matched, so that folding
// and indentation of multi-line scalars need no care: they add and remove
// nothing else. Where the text does not match (it should), nil is returned and
// callers fall back to the start of the scalar.
func locate(n *node) []diag.Pos {
	if n.src == nil || n.pos.Line == 0 {
		return nil
	}
	c := newCursor(n)
	places := make([]diag.Pos, len(n.text)+1)
	last := n.pos
	for i, want := range n.text {
		if isSpace(want) {
			continue
		}
		got, pos, ok := c.next()
		if !ok || got != want {
			return nil
		}
		places[i] = pos
		last = pos
		last.Col++
	}
	places[len(n.text)] = last
	for i := len(n.text) - 1; i >= 0; i-- {
		if places[i].IsZero() {
			places[i] = places[i+1]
		}
	}
	return places
}

// cursor walks over the characters of a scalar as written, skipping white
// space and undoing the escapes of its style.
type cursor struct {
	src       *source
	line, col int // next character; col counts from 0 in runes
	runes     []rune
	style     scalarStyle
}

func newCursor(n *node) *cursor {
	c := &cursor{src: n.src, line: n.pos.Line, col: n.pos.Col - 1, style: n.style}
	c.runes = []rune(n.src.line(c.line))
	switch n.style {
	case styleBlock: // the text starts on the line after the indicator
		c.col = len(c.runes)
	case styleSingle, styleDouble:
		c.col++
	}
	return c
}

func (c *cursor) next() (rune, diag.Pos, bool) {
	for {
		for c.col >= len(c.runes) {
			if c.line >= len(c.src.lines) {
				return 0, diag.Pos{}, false
			}
			c.line++
			c.col, c.runes = 0, []rune(c.src.line(c.line))
		}
		pos := diag.Pos{File: c.src.file, Line: c.line, Col: c.col + 1}
		r := c.runes[c.col]
		c.col++
		switch {
		case isSpace(r):
			continue
		case c.style == styleSingle && r == '\'':
			c.col++ // two quotes stand for one
		case c.style == styleDouble && r == '\\':
			if r = c.escape(); isSpace(r) {
				continue
			}
		}
		return r, pos, true
	}
}

// escape reads the rest of a backslash escape of a double-quoted scalar. A
// backslash at the end of a line joins lines and counts as white space.
func (c *cursor) escape() rune {
	if c.col >= len(c.runes) {
		return ' '
	}
	r := c.runes[c.col]
	c.col++
	digits := map[rune]int{'x': 2, 'u': 4, 'U': 8}[r]
	if digits > 0 {
		var v rune
		for i := 0; i < digits && c.col < len(c.runes); i++ {
			v = v*16 + hexDigit(c.runes[c.col])
			c.col++
		}
		return v
	}
	if i := strings.IndexRune(`0abtnvfre_NLP`, r); i >= 0 {
		return []rune("\x00\a\b\t\n\v\f\r\x1b\u00a0\u0085\u2028\u2029")[i]
	}
	return r
}

func hexDigit(r rune) rune {
	switch {
	case '0' <= r && r <= '9':
		return r - '0'
	case 'a' <= r && r <= 'f':
		return r - 'a' + 10
	case 'A' <= r && r <= 'F':
		return r - 'A' + 10
	}
	return 0
}
