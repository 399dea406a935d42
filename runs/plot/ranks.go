// Critical-difference diagram: average ranks of learners, and the groups that do not differ significantly.

package plot

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Ranks draws a critical-difference diagram (Demsar, JMLR 7, 2006): the average ranks of
// learners on an axis from the best, 1, to the number of learners. A thick line joins
// learners whose ranks differ by no more than the critical difference, which is drawn
// above the axis.
func Ranks(title string, names []string, ranks []float64, critical float64) []byte {
	n := len(names)
	sorted, order := slices.Clone(ranks), make([]int, n)
	floats.ArgsortStable(sorted, order)
	labels := make([]string, n)
	side := vg.Length(0) // width of the labels on one side
	style := textStyle(labelSize, draw.XLeft, draw.YCenter)
	for at, i := range order {
		labels[at] = fmt.Sprintf("%s (%.2f)", names[i], sorted[at])
		side = max(side, style.Width(labels[at])+16)
	}
	groups := rankGroups(sorted, critical)
	rows := (n + 1) / 2
	space := vg.Length(14 + barGap*len(groups)) // between the axis and the first label
	height := 36 + axisAt + space.Points() + float64(rows*rowHeight)
	f := newFigure(2*side.Points()+max(300, 40*float64(n))+2*margin, height, title, nil)
	a := rankAxis{f.page, f.page.Min.X + side, f.page.Max.X - side, f.page.Max.Y - axisAt, n}
	a.draw(critical)
	for at, rank := range sorted {
		if at < rows {
			a.learner(labels[at], rank, space+vg.Length(at*rowHeight), true)
		} else {
			a.learner(labels[at], rank, space+vg.Length((n-1-at)*rowHeight), false)
		}
	}
	thick := draw.LineStyle{Color: blue, Width: 3}
	for g, group := range groups {
		y := a.y - vg.Length(7+barGap*g)
		f.page.StrokeLine2(thick, a.x(group[0])-3, y, a.x(group[1])+3, y)
	}
	return f.svg()
}

// Sizes of a diagram of ranks, in points.
const (
	rowHeight = 20 // of a learner
	barGap    = 7  // between the bars of groups
	axisAt    = 44 // from the top to the axis
)

// thin is the style of the axis and of the lines to the learners.
var thin = draw.LineStyle{Color: ink, Width: 0.9}

// rankAxis is the axis of ranks from 1, at the left, to n.
type rankAxis struct {
	page           draw.Canvas
	left, right, y vg.Length
	n              int
}

// x returns the position of a rank.
func (a *rankAxis) x(rank float64) vg.Length {
	return a.left + (a.right-a.left)*vg.Length((rank-1)/float64(a.n-1))
}

// draw draws the axis and, above it, the critical difference.
func (a *rankAxis) draw(critical float64) {
	a.page.StrokeLine2(thin, a.left, a.y, a.right, a.y)
	tick := textStyle(tickSize, draw.XCenter, draw.YBottom)
	step := max(1, int(math.Ceil(float64(a.n)/20)))
	for rank := 1; rank <= a.n; rank += step {
		at := a.x(float64(rank))
		a.page.StrokeLine2(thin, at, a.y, at, a.y+5)
		a.page.FillText(tick, vg.Point{X: at, Y: a.y + 7}, strconv.Itoa(rank))
	}
	bar := min(a.x(1+critical), a.right)
	a.page.StrokeLine2(draw.LineStyle{Color: orange, Width: 2}, a.left, a.y+27, bar, a.y+27)
	note := fmt.Sprintf("critical difference %.2f", critical)
	a.page.FillText(textStyle(labelSize, draw.XLeft, draw.YCenter), vg.Point{X: bar + 8, Y: a.y + 27}, note)
}

// learner draws a line from the axis down and out to the label of a learner.
func (a *rankAxis) learner(label string, rank float64, depth vg.Length, onLeft bool) {
	y, end, gap, style := a.y-depth, a.right+6, vg.Length(4), textStyle(labelSize, draw.XLeft, draw.YCenter)
	if onLeft {
		end, gap, style.XAlign = a.left-6, -gap, draw.XRight
	}
	a.page.StrokeLines(thin, []vg.Point{{X: a.x(rank), Y: a.y}, {X: a.x(rank), Y: y}, {X: end, Y: y}})
	a.page.FillText(style, vg.Point{X: end + gap, Y: y}, label)
}

// rankGroups returns the lowest and the highest rank of each largest group of two or more
// learners whose ranks differ by at most the critical difference. ranks are sorted.
func rankGroups(ranks []float64, critical float64) [][2]float64 {
	var groups [][2]float64
	last := 0 // end of the previous group
	for i := range ranks {
		end := i
		for end+1 < len(ranks) && ranks[end+1]-ranks[i] <= critical {
			end++
		}
		if end > i && end > last {
			groups, last = append(groups, [2]float64{ranks[i], ranks[end]}), end
		}
	}
	return groups
}
