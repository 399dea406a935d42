// A report as one HTML page that needs no other file.

package report

import (
	"bytes"
	_ "embed"
	"html/template"
)

//go:embed page.html.tmpl
var pageText string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"symbol": func(m Significance) string { return symbols[m] },
	// All texts in the figures were escaped when they were drawn. The XML declaration before the
	// svg element is not allowed inside a page.
	"inline": func(svg []byte) template.HTML { return template.HTML(svg[max(0, bytes.Index(svg, []byte("<svg"))):]) },
}).Parse(pageText))

// html returns one page that needs no other file.
func (d *document) html() ([]byte, error) {
	var b bytes.Buffer
	err := page.Execute(&b, d)
	return b.Bytes(), err
}
