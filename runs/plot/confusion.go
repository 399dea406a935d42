// Figure of the confusion matrix: bags by true and predicted class.

package plot

import (
	"image/color"
	"math"
	"strconv"

	gonum "gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Confusion draws counts of bags by true class (rows, from the top) and predicted class (columns).
// The colour of a cell is its share of the true class.
func Confusion(title string, matrix [][]int, classes []string) []byte {
	k := len(matrix)
	cell := math.Max(22, math.Min(56, 420/float64(k)))
	p := newPanel("", "predicted class", "true class")
	p.Add(&cells{matrix: matrix, size: math.Min(tickSize+1, cell*0.42)})
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = -0.5, float64(k)-0.5, -0.5, float64(k)-0.5
	longest := vg.Length(0)
	var x, y gonum.ConstantTicks
	for i, name := range classes {
		longest = max(longest, p.X.Tick.Label.Width(name))
		x = append(x, gonum.Tick{Value: float64(i), Label: name})
		y = append(y, gonum.Tick{Value: float64(k - 1 - i), Label: name})
	}
	p.X.Tick.Marker, p.Y.Tick.Marker = x, y
	for _, axis := range []*gonum.Axis{&p.X, &p.Y} {
		axis.Tick.Length, axis.LineStyle.Width = 3, 0
		axis.Tick.Color = color.White // invisible on the page, but the labels keep their distance
	}
	below := 30.0
	if float64(longest) > cell-4 { // adjacent names would overlap
		p.X.Tick.Length = 9
		p.X.Tick.Label.Rotation = math.Pi / 4
		p.X.Tick.Label.XAlign, p.X.Tick.Label.YAlign = text.XRight, text.YCenter
		below += 0.7 * float64(longest)
	}
	side := cell * float64(k)
	return drawPanels(math.Max(side+float64(longest)+50, 300), side+below+80, title, [][]*panel{{p}}, []legendEntry{
		{name: "0 %", fill: shade(0)}, {name: "50 %", fill: shade(0.5)}, {name: "100 % of the true class", fill: shade(1)},
	})
}

// cells draws the matrix, row 0 at the top.
type cells struct {
	matrix [][]int
	size   float64 // font size of the numbers
}

func (m *cells) Plot(c draw.Canvas, p *gonum.Plot) {
	x, y := p.Transforms(&c)
	k := len(m.matrix)
	for i, row := range m.matrix {
		sum := total(row)
		for j, n := range row {
			share := 0.0
			if sum > 0 {
				share = float64(n) / float64(sum)
			}
			at := float64(k - 1 - i)
			box := vg.Rectangle{
				Min: vg.Point{X: x(float64(j)-0.5) + 0.6, Y: y(at-0.5) + 0.6},
				Max: vg.Point{X: x(float64(j)+0.5) - 0.6, Y: y(at+0.5) - 0.6},
			}
			c.FillPolygon(shade(share), corners(box))
			if n == 0 {
				continue
			}
			style := textStyle(m.size, draw.XCenter, draw.YCenter)
			if share > 0.5 {
				style.Color = color.White
			}
			c.FillText(style, vg.Point{X: x(float64(j)), Y: y(at) + vg.Length(0.07*m.size)}, strconv.Itoa(n))
		}
	}
}

// shade returns a colour between a pale grey and the blue of the figures.
func shade(share float64) color.Color { return mix(color.NRGBA{0xF2, 0xF4, 0xF6, 0xFF}, blue, share) }

// mix returns the colour at a share of the way from one to another.
func mix(from, to color.NRGBA, share float64) color.NRGBA {
	at := func(from, to uint8) uint8 {
		return uint8(math.Round(float64(from) + share*(float64(to)-float64(from))))
	}
	return color.NRGBA{at(from.R, to.R), at(from.G, to.G), at(from.B, to.B), 0xFF}
}
