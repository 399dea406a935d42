// The reader of equations, and the positions of their parts in the file.

package language

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/miplc/miplc/internal/diag"

	"github.com/miplc/miplc/language/schema"
)

// maxEquation bounds the text of one equation in bytes.
const maxEquation = 16 << 10

// offsetOf is the byte offset into Text.V of a position in the syntax tree Expr.
func offsetOf(p token.Pos) int { return int(p) - 1 }

// errorBetween makes a diagnostic for the bytes from start to end of the equation.
func (e *Equation) errorBetween(start, end int, format string, args ...any) diag.Diagnostic {
	start = max(0, min(start, len(e.Text.V)))
	end = max(start, min(end, len(e.Text.V)))
	part := e.Text.V[start:end]
	if i := strings.IndexFunc(part, schema.IsBreak); i >= 0 {
		part = part[:i]
	}
	line := e.LineAt(start)
	pos := e.At(start)
	width := utf8.RuneCountInString(part)
	if rest := utf8.RuneCountInString(line) - pos.Col + 1; line != "" && width > rest {
		width = rest
	}
	return diag.Diagnostic{Pos: pos, Width: max(1, width), Text: fmt.Sprintf(format, args...), Line: line}
}

// errorAt makes a diagnostic for a part of the syntax tree.
func (e *Equation) errorAt(x ast.Node, format string, args ...any) diag.Diagnostic {
	return e.errorBetween(offsetOf(x.Pos()), offsetOf(x.End()), format, args...)
}

// readEquation reads and parses an expression. It returns nil after an error.
func readEquation(r *schema.Reader, name schema.Str, path string, n *schema.Node) *Equation {
	if !n.IsText() && !(n.IsScalar() && schema.IsNumber(n.Raw())) {
		r.AddFault(n.Errorf("%s must be an equation, not %s", path, n.Describe()))
		return nil
	}
	eq := newEquation(name, n)
	switch {
	case strings.TrimSpace(n.Raw()) == "":
		r.AddFault(n.Errorf("%s is empty", path))
		return nil
	case len(n.Raw()) > maxEquation:
		r.AddFault(n.Errorf("%s has %d bytes, an equation at most %d", path, len(n.Raw()), maxEquation).
			WithNote("split it into several equations"))
		return nil
	}
	expr, err := parseExpression(n.Raw())
	if err != nil {
		r.AddFault(eq.syntaxError(err))
		return nil
	}
	eq.Expr = expr
	syntax := syntaxChecker{Reader: r, eq: eq}
	if syntax.check(expr, 0); syntax.wrong {
		return nil
	}
	return eq
}

// newEquation prepares the mapping from the text to the file.
func newEquation(name schema.Str, n *schema.Node) *Equation {
	positions := n.Positions()
	at := func(offset int) diag.Pos {
		if positions == nil {
			return n.Pos()
		}
		return positions[max(0, min(offset, len(positions)-1))]
	}
	return &Equation{
		Name: name, Text: schema.Str{V: n.Raw(), Pos: n.Pos()}, At: at,
		LineAt: func(offset int) string { return n.Line(at(offset).Line) },
	}
}

// replace sets another valid text. An offset into it, plus shift, is the offset into the text of the file.
func (e *Equation) replace(text string, shift int) {
	expr, err := parseExpression(text)
	if err != nil {
		panic(err)
	}
	at, line := e.At, e.LineAt
	e.Text.V, e.Expr = text, expr
	e.At = func(offset int) diag.Pos { return at(offset + shift) }
	e.LineAt = func(offset int) string { return line(offset + shift) }
}

// comment matches what Go would silently drop as a comment.
var comment = regexp.MustCompile(`//|/\*`)

// parseExpression parses text in Go's expression grammar. Line breaks are spaces, unlike in Go,
// where they may end a statement.
func parseExpression(text string) (ast.Expr, error) {
	if at := comment.FindStringIndex(text); at != nil {
		return nil, scanner.ErrorList{{Pos: token.Position{Offset: at[0]}, Msg: "comment"}}
	}
	flat := []byte(text)
	for i, c := range flat {
		if c == '\n' || c == '\r' {
			flat[i] = ' '
		}
	}
	return parser.ParseExprFrom(token.NewFileSet(), "", flat, parser.SkipObjectResolution)
}

var (
	wantsOperand = regexp.MustCompile(`expected operand, found (.*)$`)
	wantsEnd     = regexp.MustCompile(`expected (?:'EOF'|';'|newline), found (.*)$`)
)

// syntaxError turns an error of go/parser into a diagnostic in the words of the spec language.
func (e *Equation) syntaxError(err error) diag.Diagnostic {
	var list scanner.ErrorList
	if !errors.As(err, &list) || len(list) == 0 {
		return e.errorBetween(0, len(e.Text.V), "the equation cannot be read: %v", err)
	}
	first := list[0]
	at := min(first.Pos.Offset, len(e.Text.V))
	// Errors at the end of the text point behind its last character.
	atEnd := strings.TrimSpace(e.Text.V[at:]) == ""
	if atEnd {
		at = len(strings.TrimRight(e.Text.V, " \t\r\n"))
	}
	end := at + wordLength(e.Text.V[at:])
	switch m := first.Msg; {
	case m == "comment":
		return e.errorBetween(at, at+2, "an equation cannot contain a comment").WithNote("a single / divides")
	case atEnd:
		return e.errorBetween(at, at, "the equation ends too early").WithNote("%s", missing(m))
	case e.Text.V[at] == '=':
		return e.errorBetween(at, at+1, "an equation has no =").
			WithNote("its name is before the colon; arguments of functions have no names, as in sum(x, 0)")
	case e.Text.V[at] == '@':
		return e.errorBetween(at, at+1, "there is no operator @").WithNote("write matmul(a, b)")
	case at > 0 && e.Text.V[at-1] == '.' && strings.IndexByte("*/^", e.Text.V[at]) >= 0:
		return e.errorBetween(at-1, at+1, "there is no operator %s", e.Text.V[at-1:at+1]).
			WithNote("* and / compute element by element; write x * x for a square")
	case strings.Count(e.Text.V[:at+1], "[") > strings.Count(e.Text.V[:at+1], "]"):
		return e.errorBetween(at, end, "indexing is not part of the language")
	case strings.Contains(m, "missing ',' in argument list"):
		return e.errorBetween(at, end, "an operator or a comma is missing before %s", e.Text.V[at:end])
	case wantsOperand.MatchString(m):
		return e.errorBetween(at, end, "a value is missing before %s", e.Text.V[at:end])
	case wantsEnd.MatchString(m):
		return e.errorBetween(at, end, "an operator is missing before %s", e.Text.V[at:end])
	default:
		return e.errorBetween(at, end, "syntax of the equation: %s", m)
	}
}

// missing returns the message for an equation that ends too early. m is the error of the parser.
func missing(m string) string {
	if wantsOperand.MatchString(m) {
		return "a value is missing at the end"
	}
	return "a parenthesis is not closed"
}

// wordLength returns the length of the name or number at the start of text, otherwise 1.
func wordLength(text string) int {
	n := strings.IndexFunc(text, func(c rune) bool {
		return c != '_' && c != '.' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z')
	})
	switch {
	case n > 0:
		return n
	case n < 0:
		return len(text)
	}
	_, size := utf8.DecodeRuneInString(text)
	return size
}
