// A report as Markdown, LaTeX and one HTML page that needs no other file: a template for each, and how texts are
// escaped.

package report

import (
	"bytes"
	"embed"
	"fmt"
	html "html/template"
	"io"
	"strings"
	"text/template"
	"unicode"

	"github.com/miplc/miplc/internal/diag"
)

//go:embed *.tmpl
var templates embed.FS

// functions are those of all templates.
var functions = template.FuncMap{
	"md": mdEscape, "tex": latexEscape, "rules": headRules,
	"symbol": func(s Significance) string { return map[Significance]string{FirstBetter: "•", FirstWorse: "◦"}[s] },
	// All texts in the figures were escaped when they were drawn. The XML declaration before the
	// svg element is not allowed inside a page.
	"inline": func(svg []byte) html.HTML { return html.HTML(svg[max(0, bytes.Index(svg, []byte("<svg"))):]) },
}

var (
	page     = html.Must(html.New("page.html.tmpl").Funcs(html.FuncMap(functions)).ParseFS(templates, "page.html.tmpl"))
	markdown = template.Must(template.New("report.md.tmpl").Funcs(functions).ParseFS(templates, "report.md.tmpl"))
	// Other delimiters, because LaTeX uses braces itself.
	latex = template.Must(template.New("report.tex.tmpl").Delims("<<", ">>").Funcs(functions).ParseFS(templates,
		"report.tex.tmpl"))
)

// as returns the document in the format of a template.
func (d *document) as(format interface{ Execute(io.Writer, any) error }) []byte {
	var b bytes.Buffer
	if err := format.Execute(&b, d); err != nil {
		panic("bug: " + err.Error())
	}
	return append(bytes.TrimRight(b.Bytes(), "\n"), '\n')
}

// column describes a column for formats with one heading for each.
type column struct {
	Heading string // its lines, joined
	Right   bool   // an entry is aligned to the right
	Numbers bool   // an entry is a number that is not measured; measured values start alike, and have marks at their ends
}

// Columns returns the columns.
func (t *Table) Columns() (list []column) {
	for _, h := range t.Head[0] {
		list = append(list, make([]column, h.Span)...)
	}
	for _, line := range t.Head {
		at := 0
		for _, h := range line {
			for range h.Span {
				list[at].Heading = strings.TrimSpace(list[at].Heading + " " + h.Text)
				at++
			}
		}
	}
	for _, row := range t.Rows {
		for i, c := range row.Cells {
			list[i].Right = list[i].Right || c.Right
			list[i].Numbers = list[i].Numbers || c.Right && !c.Measured()
		}
	}
	return list
}

// headRules returns the LaTeX commands for the rules below a line of a heading.
func headRules(head [][]Head, line int) (rules string) {
	if line == len(head)-1 {
		return ` \midrule`
	}
	at := 1
	for _, h := range head[line] {
		if h.Span > 1 {
			rules += fmt.Sprintf(` \cmidrule(lr){%d-%d}`, at, at+h.Span-1)
		}
		at += h.Span
	}
	return rules
}

// mdEscape escapes the markup of Markdown in a text.
func mdEscape(s string) string {
	return diag.CleanLine(strings.NewReplacer(`\`, `\\`, "|", `\|`, "*", `\*`, "_", `\_`, "`", "\\`", "<", "&lt;", "$",
		"&#36;", "[", `\[`, "]", `\]`, "\n", " ").Replace(s))
}

var latexReplacer = strings.NewReplacer(`\`, `\textbackslash{}`, "&", `\&`, "%", `\%`, "$", `\$`, "#", `\#`, "_", `\_`,
	"{", `\{`, "}", `\}`, "~", `\textasciitilde{}`, "^", `\textasciicircum{}`, "<", `\textless{}`, ">", `\textgreater{}`,
	"[", "{[}", "*", "{*}", "|", `\textbar{}`,
	"–", "--", "±", `$\pm$`, "•", `$\bullet$`, "◦", `$\circ$`, "†", `$\dagger$`, "‡", `$\ddagger$`, "§", `\S{}`)

// latexEscape escapes the markup of LaTeX in a text. Control characters become spaces, because few LaTeX fonts
// have symbols for them.
func latexEscape(s string) string {
	return latexReplacer.Replace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s))
}
