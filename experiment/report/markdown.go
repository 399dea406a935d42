// A report in Markdown, as GitHub shows it.

package report

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/miplc/miplc/internal/diag"
)

// markdown returns the report in GitHub's Markdown; figures are separate files in the same folder.
func (d *document) markdown() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# %s\n\n", mdEscape(d.Title))
	for _, text := range []string{d.Description, d.Status} {
		if text != "" {
			fmt.Fprintf(&b, "%s\n\n", mdEscape(text))
		}
	}
	for _, p := range d.Parts {
		if p.Figure != nil {
			fmt.Fprintf(&b, "**Figure %d.** %s\n\n![%s](%s/%s.svg)\n\n", p.Number, mdEscape(p.Figure.Title),
				mdEscape(p.Figure.Title), FiguresFolder, p.Figure.Name)
			continue
		}
		fmt.Fprintf(&b, "**Table %d.** %s\n\n", p.Number, mdEscape(p.Table.Title))
		p.Table.markdown(&b)
		for _, n := range p.Table.Notes {
			fmt.Fprintf(&b, "\n%s\n", mdEscape(n))
		}
		b.WriteString("\n")
	}
	for _, f := range d.Facts {
		fmt.Fprintf(&b, "%s\n\n", mdEscape(f))
	}
	if len(d.Failures) > 0 {
		b.WriteString("## Failed cells\n\n")
		for _, f := range d.Failures {
			fmt.Fprintf(&b, "- %s\n", mdEscape(f))
		}
	}
	return append(bytes.TrimRight(b.Bytes(), "\n"), '\n')
}

// markdown writes a table. Markdown supports one heading line and no spans, so the lines of a
// heading are joined, and the name of a group has its own row.
func (t *Table) markdown(b *bytes.Buffer) {
	heads := make([]string, t.Columns())
	for _, line := range t.Head {
		at := 0
		for _, h := range line {
			for range h.Span {
				if h.Text != "" {
					heads[at] = strings.TrimSpace(heads[at] + " " + mdEscape(h.Text))
				}
				at++
			}
		}
	}
	right := make([]bool, len(heads))
	for _, r := range t.Rows {
		for i, c := range r.Cells {
			right[i] = right[i] || c.Right
		}
	}
	fmt.Fprintf(b, "| %s |\n|", strings.Join(heads, " | "))
	for _, r := range right {
		b.WriteString(map[bool]string{true: "---:|", false: "---|"}[r])
	}
	b.WriteString("\n")
	for _, r := range t.Rows {
		cells := make([]string, len(heads))
		if r.Group != "" {
			cells[0] = "*" + mdEscape(r.Group) + "*"
		}
		for i, c := range r.Cells {
			cells[i] = c.markdown()
		}
		fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | "))
	}
}

func (c *Entry) markdown() string {
	switch {
	case c.Down < 0:
		return ""
	case c.Value == nil:
		return mdEscape(c.Text)
	}
	text := c.Value.String()
	if c.Value.Best {
		text = "**" + text + "**"
	}
	return strings.TrimSpace(text + " " + symbols[c.Value.Mark])
}

var symbols = map[Significance]string{None: "", FirstBetter: "•", FirstWorse: "◦"}

// mdEscape escapes markup in names.
func mdEscape(s string) string {
	return diag.CleanLine(strings.NewReplacer(`\`, `\\`, "|", `\|`, "*", `\*`, "_", `\_`, "`", "\\`", "<", "&lt;", "$",
		"&#36;", "[", `\[`, "]", `\]`, "\n", " ").Replace(s))
}
