// Package plot draws the figures of a training run as SVG: loss and accuracy, attention scores,
// label weights, confusion matrix. Equal input gives equal bytes.
package plot

import (
	"bytes"
	"fmt"
	"image/color"
	"slices"
	"strconv"
	"strings"

	xfont "golang.org/x/image/font"
	gonum "gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/miplc/miplc/internal/diag"
)

// Colours that are distinguishable with any kind of colour vision (Okabe and Ito 2008), and greys
// for everything that is not data.
var (
	blue   = color.NRGBA{0x00, 0x72, 0xB2, 0xFF}
	orange = color.NRGBA{0xD5, 0x5E, 0x00, 0xFF}
	green  = color.NRGBA{0x00, 0x9E, 0x73, 0xFF}
	ink    = color.NRGBA{0x22, 0x22, 0x22, 0xFF}
	frame  = color.NRGBA{0x88, 0x88, 0x88, 0xFF}
	grid   = color.NRGBA{0xE6, 0xE6, 0xE6, 0xFF}
)

// Font sizes in points.
const (
	titleSize = 14
	labelSize = 11.5
	tickSize  = 10.5
	margin    = 10
)

// figure is a page that is being drawn: a title, a row of legend entries below it, and panels.
type figure struct {
	canvas *recorder
	page   draw.Canvas // the free part
}

// recorder records the width of every text that it draws.
type recorder struct {
	*vgsvg.Canvas
	widths []vg.Length
}

// FillString draws a text and records its width.
func (r *recorder) FillString(f font.Face, at vg.Point, s string) {
	r.widths = append(r.widths, f.Width(s))
	r.Canvas.FillString(f, at, s)
}

// newFigure starts a page of the given size in points, wider if the title needs it.
func newFigure(width, height float64, title string, legend []legendEntry) *figure {
	style := textStyle(titleSize, draw.XLeft, draw.YTop)
	style.Font.Weight = xfont.WeightBold
	width = max(width, style.Width(title).Points()+2*margin)
	c := &recorder{Canvas: vgsvg.New(vg.Length(width), vg.Length(height))}
	page := draw.New(c)
	page.FillPolygon(color.White, corners(page.Rectangle))
	f := &figure{canvas: c, page: draw.Crop(page, margin, -margin, margin, -margin)}
	if title != "" {
		f.page.FillText(style, vg.Point{X: f.page.Min.X, Y: f.page.Max.Y}, title)
		f.page.Max.Y -= titleSize + 8
	}
	if len(legend) > 0 {
		f.legend(legend)
	}
	return f
}

// drawPanels returns a figure of rows of plots, see newFigure and panels.
func drawPanels(width, height float64, title string, rows [][]*panel, legend []legendEntry) []byte {
	f := newFigure(width, height, title, legend)
	f.panels(rows)
	return f.svg()
}

// inRows returns panels in rows of equal length. The last one may have empty places.
func inRows(panels []*panel, columns int) [][]*panel {
	empty := make([]*panel, (columns-len(panels)%columns)%columns)
	return slices.Collect(slices.Chunk(append(panels, empty...), columns))
}

// legendEntry is an entry of a legend: a line or, with fill, an area or, with dot, a dot.
type legendEntry struct {
	name      string
	line      draw.LineStyle
	fill, dot color.Color
}

// legend draws the entries in a row above the panels, where they cannot cover data.
func (f *figure) legend(entries []legendEntry) {
	const sample, gap, space = 22, 6, 22
	style := textStyle(labelSize, draw.XLeft, draw.YCenter)
	x, y := f.page.Min.X, f.page.Max.Y-labelSize/2
	for _, e := range entries {
		width := sample + gap + style.Width(e.name)
		if x > f.page.Min.X && x+width > f.page.Max.X {
			x, y = f.page.Min.X, y-labelSize-5
		}
		if e.fill != nil {
			box := vg.Rectangle{Min: vg.Point{X: x, Y: y - 5}, Max: vg.Point{X: x + sample, Y: y + 5}}
			f.page.FillPolygon(e.fill, corners(box))
		}
		if e.line.Width > 0 {
			f.page.StrokeLine2(e.line, x, y, x+sample, y)
		}
		if e.dot != nil {
			dot := draw.GlyphStyle{Color: e.dot, Radius: 3, Shape: draw.CircleGlyph{}}
			f.page.DrawGlyph(dot, vg.Point{X: x + sample/2, Y: y})
		}
		f.page.FillText(style, vg.Point{X: x + sample + gap, Y: y}, e.name)
		x += width + space
	}
	f.page.Max.Y = y - labelSize/2 - 8
}

// panel is one plot of a figure with a heading.
type panel struct {
	*gonum.Plot
	heading string
}

// panels draws rows of plots whose data areas have the same size and are aligned. A nil panel
// leaves an empty place.
func (f *figure) panels(rows [][]*panel) {
	const between, headingHeight = 14, labelSize + 6
	tiles := draw.Tiles{Rows: len(rows), Cols: len(rows[0]), PadX: between, PadY: between}
	plots := make([][]*gonum.Plot, len(rows))
	for i, row := range rows {
		plots[i] = make([]*gonum.Plot, len(row))
		for j, p := range row {
			switch {
			case p == nil:
				continue
			case p.heading != "" && i == 0:
				tiles.PadTop = headingHeight
			case p.heading != "":
				tiles.PadY = between + headingHeight
			}
			plots[i][j] = p.Plot
		}
	}
	for i, row := range gonum.Align(plots, tiles, f.page) {
		for j, at := range row {
			if rows[i][j] != nil {
				rows[i][j].drawIn(at)
			}
		}
	}
}

// drawIn draws the plot in a canvas and its heading above.
func (p *panel) drawIn(c draw.Canvas) {
	if p.heading != "" {
		style, data := textStyle(labelSize, draw.XCenter, draw.YBottom), p.DataCanvas(c)
		c.FillText(style, vg.Point{X: (data.Min.X + data.Max.X) / 2, Y: c.Max.Y + 5}, shorten(p.heading, style,
			data.Max.X-data.Min.X+2*margin))
	}
	p.Draw(c)
}

// svg returns the page. It adds fonts of equal width to the font family and the width to every
// text, so that figures look the same on machines without the font.
func (f *figure) svg() []byte {
	var drawn, page bytes.Buffer
	_, _ = f.canvas.WriteTo(&drawn) // a buffer gives no error
	for i, part := range bytes.Split(drawn.Bytes(), []byte("<text ")) {
		if i > 0 {
			page.WriteString("<text ")
			if at := i - 1; at < len(f.canvas.widths) && f.canvas.widths[at] > 0 {
				fmt.Fprintf(&page, "textLength=\"%.5g\" lengthAdjust=\"spacingAndGlyphs\" ", f.canvas.widths[at].Points())
			}
		}
		page.Write(part)
	}
	text := strings.NewReplacer(
		"font-family:Liberation Sans;", "font-family:'Liberation Sans',Arial,Helvetica,sans-serif;",
		`"data:image/jpg;base64,`, `"data:image/png;base64,`, // vgsvg names the wrong type: it writes PNG
	).Replace(page.String())
	return []byte(diag.CleanText(text)) // XML does not allow control characters
}

// shorten returns s, cut and with an ellipsis if it is wider than width points, so that the titles
// of adjacent panels do not overlap.
func shorten(s string, style draw.TextStyle, width vg.Length) string {
	if style.Width(s) <= width {
		return s
	}
	runes := []rune(s)
	for len(runes) > 0 && style.Width(string(runes)+"…") > width {
		runes = runes[:len(runes)-1]
	}
	return string(runes) + "…"
}

// newPanel returns an empty plot in the style of all figures.
func newPanel(heading, x, y string) *panel {
	p := gonum.New()
	p.BackgroundColor = nil // the SVG canvas divides by alpha, so a transparent colour would be undefined
	p.X.Label.Text, p.Y.Label.Text = x, y
	for _, axis := range []*gonum.Axis{&p.X, &p.Y} {
		axis.Label.TextStyle = textStyle(labelSize, draw.XCenter, draw.YBottom)
		axis.Label.Padding = 4
		axis.LineStyle = draw.LineStyle{Color: frame, Width: 0.8}
		axis.Tick.LineStyle = axis.LineStyle
		axis.Tick.Length, axis.Tick.Marker = 4, gonum.TickerFunc(ticksWithin)
		axis.Padding = 0
	}
	p.X.Tick.Label = textStyle(tickSize, draw.XCenter, draw.YTop)
	p.Y.Tick.Label = textStyle(tickSize, draw.XRight, draw.YCenter)
	return &panel{p, heading}
}

// addGrid draws a line at every tick of the y axis, behind the data.
func (p *panel) addGrid() {
	lines := plotter.NewGrid()
	lines.Vertical.Width = 0
	lines.Horizontal = draw.LineStyle{Color: grid, Width: 0.8}
	p.Add(lines)
}

func textStyle(size float64, x text.XAlignment, y text.YAlignment) text.Style {
	return text.Style{
		Color:   ink,
		Font:    font.Font{Typeface: "Liberation", Variant: "Sans", Size: vg.Length(size)},
		XAlign:  x,
		YAlign:  y,
		Handler: text.Plain{Fonts: font.DefaultCache},
	}
}

func corners(r vg.Rectangle) []vg.Point {
	return []vg.Point{r.Min, {X: r.Max.X, Y: r.Min.Y}, r.Max, {X: r.Min.X, Y: r.Max.Y}}
}

// stroke returns the style of a data line; dashes distinguish lines without colour.
func stroke(c color.Color, dashes ...vg.Length) draw.LineStyle {
	return draw.LineStyle{Color: c, Width: 1.8, Dashes: dashes}
}

// addLine draws points as a line, with dots if there are few points.
func (p *panel) addLine(points plotter.XYs, style draw.LineStyle) {
	if len(points) == 0 {
		return
	}
	p.Add(&plotter.Line{XYs: points, LineStyle: style})
	if len(points) <= 25 {
		p.addDotsAt(points, style.Color, 2.2)
	}
}

// addDotsAt draws dots.
func (p *panel) addDotsAt(points plotter.XYs, c color.Color, radius vg.Length) {
	if len(points) > 0 {
		p.Add(&plotter.Scatter{XYs: points, GlyphStyle: draw.GlyphStyle{Color: c, Radius: radius, Shape: draw.CircleGlyph{}}})
	}
}

// epochTicks returns ticks at whole epochs: the first, the last and round numbers between them.
func epochTicks(first, last int) (ticks gonum.ConstantTicks) {
	add := func(v int) { ticks = append(ticks, gonum.Tick{Value: float64(v), Label: strconv.Itoa(v)}) }
	add(first)
	if last <= first {
		return ticks
	}
	step := roundStep(float64(last-first) / 5)
	for v := step; v < last; v += step {
		if v-first >= step*2/3 && last-v >= step*2/3 && v > first {
			add(v)
		}
	}
	add(last)
	return ticks
}

// roundStep returns the smallest of 1, 2, 5, 10, 20, ... that is at least v.
func roundStep(v float64) int {
	for power := 1; ; power *= 10 {
		for _, m := range []int{1, 2, 5} {
			if float64(m*power) >= v {
				return m * power
			}
		}
	}
}

// spanEpochs sets the x axis to the epochs from first to last.
func (p *panel) spanEpochs(first, last int) {
	p.X.Min, p.X.Max = float64(first), float64(last)
	if last <= first { // an axis needs a positive length
		p.X.Min, p.X.Max = float64(first)-0.5, float64(first)+0.5
	}
	p.X.Tick.Marker = epochTicks(first, last)
}
