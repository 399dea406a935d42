// Messages for mistakes in YAML that people make often.

package schema

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/miplc/miplc/internal/diag"
)

var yamlMessage = regexp.MustCompile(`(?s)^yaml: (?:line (\d+): )?(.*)$`)

// plainWords replace messages of the YAML library.
var plainWords = []struct{ found, text, note string }{
	{"did not find expected key", "the indentation of this line does not fit the lines above",
		"keys of one map start in one column"},
	{"did not find expected '-' indicator", "the indentation of this line does not fit the list above",
		"the dashes of one list start in one column"},
	{"did not find expected ',' or ']'", "a list in brackets is not closed, or a comma is missing", ""},
	{"did not find expected ',' or '}'", "a map in braces is not closed, or a comma is missing", ""},
	{"found unexpected end of stream", "a quoted text is not closed", ""},
	{"mapping values are not allowed", "a key and its value are not allowed here",
		"check the indentation; text with a colon and a space needs quotes"},
	{"could not find expected ':'", "a key without a colon", ""},
	{"found character that cannot start any token", "a value cannot start with this character", "put the text in quotes"},
	{"found incompatible YAML document", "this version of YAML is not supported", "remove the line %YAML"},
	{"exceeded max depth", "nested too deep", ""},
}

// syntaxError turns an error of the YAML library, which has the line of the surroundings at best, into a diagnostic.
func syntaxError(s *source, err error) diag.Diagnostic {
	if errors.Is(err, errSeveral) {
		return secondDocument(s)
	}
	reported, text := 1, err.Error()
	if m := yamlMessage.FindStringSubmatch(text); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil {
			reported = n
		}
		text = m[2]
	}
	line := brokenLine(s, reported)
	indent := indentOf(s.line(line))
	if i := strings.IndexByte(indent, '\t'); i >= 0 {
		return s.diagnose(diag.Pos{File: s.file, Line: line, Col: i + 1}, 1, "a tab in the indentation").
			WithNote("YAML requires spaces")
	}
	if d, ok := commonSlip(s, line); ok {
		return d
	}
	pos := diag.Pos{File: s.file, Line: line, Col: utf8.RuneCountInString(indent) + 1}
	width := len(s.line(line))
	for _, p := range plainWords {
		if strings.HasPrefix(text, p.found) {
			return s.diagnose(pos, width, p.text).WithNote("%s", p.note)
		}
	}
	return s.diagnose(pos, width, "YAML syntax: "+strings.TrimSuffix(text, "."))
}

// slips are lines that YAML reads otherwise than they are meant, so that an error shows in them or in the line after.
var slips = []struct {
	line       *regexp.Regexp
	text, note string
}{
	{regexp.MustCompile(`^ *(//|/\*|--[^-]|%[^YT])`), "this is not a YAML comment", "comments start with #"},
	{regexp.MustCompile(`^ *[\w.-]+ *= *[^=]`), "a key and its value are joined by a colon", "write key: value"},
	{regexp.MustCompile(`^ *(- *)?[A-Za-z_]\w*:[^ :/\\]`), "a space is missing after the colon", ""},
	{regexp.MustCompile(`[\]}] *, *(#.*)?$`), "a comma at the end of a line is only allowed in brackets", ""},
	{regexp.MustCompile(`^ *-[A-Za-z]`), "a space is missing after the dash", ""},
}

// commonSlip looks for such a line at a broken one and just above it.
func commonSlip(s *source, broken int) (diag.Diagnostic, bool) {
	for _, line := range []int{broken, broken - 1} {
		for _, slip := range slips {
			text := s.line(line)
			if at := slip.line.FindStringIndex(text); at != nil {
				col := len(indentOf(text))
				return s.diagnose(diag.Pos{File: s.file, Line: line, Col: col + 1}, len(text)-col, slip.text).
					WithNote("%s", slip.note), true
			}
		}
	}
	return diag.Diagnostic{}, false
}

func indentOf(line string) string {
	return line[:len(line)-len(strings.TrimLeft(line, " \t"))]
}

// maxRetries bounds the bytes that brokenLine reads again.
const maxRetries = 4 << 20

// brokenLine returns the line with the syntax error: the first line after the longest start of the
// file that is valid YAML. For a bracket or quote that is never closed, it is the line that opens it.
func brokenLine(s *source, reported int) int {
	reported = max(1, min(reported, len(s.lines)))
	size := 0
	for _, l := range s.lines {
		size += len(l) + 1
	}
	if size*len(s.lines) > maxRetries {
		return reported
	}
	for n := len(s.lines) - 1; n > 0; n-- {
		if _, err := decodeYAML([]byte(strings.Join(s.lines[:n], "\n"))); err == nil {
			for n < len(s.lines)-1 && strings.TrimSpace(s.lines[n]) == "" {
				n++
			}
			return n + 1
		}
	}
	return 1
}

// secondDocument points at the mark that starts a second document.
func secondDocument(s *source) diag.Diagnostic {
	content := false
	for i, l := range s.lines {
		if content && (strings.HasPrefix(l, "---") || strings.HasPrefix(l, "...")) {
			return s.diagnose(diag.Pos{File: s.file, Line: i + 1, Col: 1}, 3, "a second YAML document starts here").
				WithNote("a file contains one document: remove the line, or use two files and extends")
		}
		trimmed := strings.TrimSpace(l)
		content = content || trimmed != "" && trimmed[0] != '#' && trimmed[0] != '%'
	}
	return diag.Errorf(diag.Pos{File: s.file}, "the file contains several YAML documents").
		WithNote("a file contains one document")
}
