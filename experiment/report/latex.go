// The tables of a report in LaTeX, ready for a paper.

package report

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
)

const latexHead = `%% Tables of the experiment %s. Compiles without changes; the tables can be copied
%% into a paper that loads multirow and booktabs.
\documentclass{article}
\usepackage[utf8]{inputenc}
\usepackage[margin=2cm]{geometry}
\usepackage{amsmath,amssymb}
\usepackage{multirow,booktabs}
\begin{document}
`

// latex returns the tables; figures are only in the other formats.
func (d *document) latex() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, latexHead, strings.ReplaceAll(d.Title, "\n", " "))
	if d.Status != "" {
		fmt.Fprintf(&b, "\\noindent %s\n", latexEscape(d.Status))
	}
	for _, p := range d.Parts {
		if p.Table != nil {
			p.Table.latex(&b)
		}
	}
	for _, f := range d.Facts {
		fmt.Fprintf(&b, "\n\\noindent %s\n", latexEscape(f))
	}
	for _, f := range d.Failures {
		fmt.Fprintf(&b, "\n\\noindent Failed: %s\n", latexEscape(f))
	}
	b.WriteString("\\end{document}\n")
	return b.Bytes()
}

func (t *Table) latex(b *bytes.Buffer) {
	n := t.Columns()
	fmt.Fprintf(b, "\n\\begin{table}[!ht]\n\\centering \\footnotesize\n\\caption{%s}\n\\begin{tabular}{%s}\n\\toprule\n",
		latexEscape(t.Title), t.latexColumns(n))
	for i, line := range t.Head {
		var cells []string
		at := 1
		rules := ""
		for _, h := range line {
			switch {
			case h.Down > 1:
				cells = append(cells, fmt.Sprintf("\\multirow{%d}{*}{%s}", h.Down, latexEscape(h.Text)))
			case h.Span > 1:
				cells = append(cells, fmt.Sprintf("\\multicolumn{%d}{c}{%s}", h.Span, latexEscape(h.Text)))
				rules += fmt.Sprintf(" \\cmidrule(lr){%d-%d}", at, at+h.Span-1)
			default:
				cells = append(cells, latexEscape(h.Text))
			}
			at += h.Span
		}
		if i == len(t.Head)-1 {
			rules = " \\midrule"
		}
		fmt.Fprintf(b, "%s \\\\%s\n", strings.Join(cells, " & "), rules)
	}
	for i, r := range t.Rows {
		if r.Rule && i > 0 {
			b.WriteString("\\midrule\n")
		}
		if r.Group != "" {
			fmt.Fprintf(b, "\\multicolumn{%d}{c}{%s} \\\\\n", n, latexEscape(r.Group))
			continue
		}
		cells := make([]string, len(r.Cells))
		for j, c := range r.Cells {
			cells[j] = c.latex()
		}
		fmt.Fprintf(b, "%s \\\\\n", strings.Join(cells, " & "))
	}
	b.WriteString("\\bottomrule\n\\end{tabular}\n\\end{table}\n")
	for _, note := range t.Notes {
		fmt.Fprintf(b, "\n\\noindent %s\n", latexEscape(note))
	}
}

// latexColumns aligns columns of numbers to the right. Values start alike and have marks at their ends, so they are
// aligned to the left.
func (t *Table) latexColumns(n int) string {
	align := []byte(strings.Repeat("l", n))
	for _, r := range t.Rows {
		for i, c := range r.Cells {
			if c.Right && c.Value == nil && c.Text != dash {
				align[i] = 'r'
			} else if c.Value != nil {
				align[i] = 'l'
			}
		}
	}
	return string(align)
}

func (c *Entry) latex() string {
	switch {
	case c.Down < 0:
		return ""
	case c.Value != nil:
		text := latexEscape(c.Value.String())
		if c.Value.Best {
			text = "\\textbf{" + text + "}"
		}
		return text + map[Significance]string{None: "", FirstBetter: "$\\bullet$",
			FirstWorse: "$\\circ$"}[c.Value.Mark]
	case c.Down > 1:
		return fmt.Sprintf("\\multirow{%d}{*}{%s}", c.Down, latexEscape(c.Text))
	}
	return latexEscape(c.Text)
}

var latexReplacer = strings.NewReplacer(`\`, `\textbackslash{}`, "&", `\&`, "%", `\%`, "$", `\$`, "#", `\#`, "_", `\_`,
	"{", `\{`, "}", `\}`, "~", `\textasciitilde{}`, "^", `\textasciicircum{}`, "<", `\textless{}`, ">", `\textgreater{}`,
	"[", "{[}", "*", "{*}", "|", `\textbar{}`,
	"–", "--", "±", `$\pm$`, "•", `$\bullet$`, "◦", `$\circ$`, "†", `$\dagger$`, "‡", `$\ddagger$`, "§", `\S{}`)

// latexEscape escapes markup in names. Control characters become spaces, because few LaTeX fonts
// have symbols for them.
func latexEscape(s string) string {
	return latexReplacer.Replace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s))
}
