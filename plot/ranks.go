package plot

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Ranks draws a critical-difference diagram (Demsar, JMLR 7, 2006): the average ranks of
// learners on an axis from the best, 1, to the number of learners. A thick line joins
// learners whose ranks differ by no more than the critical difference, which is drawn
// above the axis.
func Ranks(w io.Writer, title string, names []string, ranks []float64, critical float64) error {
	n := len(names)
	if n < 2 || n != len(ranks) {
		return errors.New("plot of ranks: at least two learners with one rank each are needed")
	}
	const rowHeight, barGap, axisAt = 20, 7, 44
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(ranks[i], ranks[j]) })
	label := func(i int) string { return fmt.Sprintf("%s (%.2f)", names[i], ranks[i]) }
	style := textStyle(labelSize, draw.XLeft, draw.YCenter)
	side := vg.Length(0)
	for i := range names {
		side = max(side, style.Width(label(i))+16)
	}
	sorted := make([]float64, n)
	for at, i := range order {
		sorted[at] = ranks[i]
	}
	groups := rankGroups(sorted, critical)
	rows := (n + 1) / 2
	space := vg.Length(14 + barGap*len(groups)) // between the axis and the first label
	height := 36 + axisAt + space.Points() + float64(rows*rowHeight)
	f := newFigure(2*side.Points()+max(300, 40*float64(n))+2*margin, height, title, nil)
	page := f.page
	left, right, axis := page.Min.X+side, page.Max.X-side, page.Max.Y-axisAt
	x := func(rank float64) vg.Length { return left + (right-left)*vg.Length((rank-1)/float64(n-1)) }
	thin, thick := draw.LineStyle{Color: ink, Width: 0.9}, draw.LineStyle{Color: blue, Width: 3}

	page.StrokeLine2(thin, left, axis, right, axis)
	tick := textStyle(tickSize, draw.XCenter, draw.YBottom)
	step := max(1, int(math.Ceil(float64(n)/20)))
	for rank := 1; rank <= n; rank += step {
		at := x(float64(rank))
		page.StrokeLine2(thin, at, axis, at, axis+5)
		page.FillText(tick, vg.Point{X: at, Y: axis + 7}, strconv.Itoa(rank))
	}
	bar := min(x(1+critical), right)
	page.StrokeLine2(draw.LineStyle{Color: orange, Width: 2}, left, axis+27, bar, axis+27)
	note := fmt.Sprintf("critical difference %.2f", critical)
	page.FillText(style, vg.Point{X: bar + 8, Y: axis + 27}, note)
	for at, i := range order {
		onLeft, row := at < rows, at
		if !onLeft {
			row = n - 1 - at
		}
		y := axis - space - vg.Length(row*rowHeight)
		end, text := left-6, style
		text.XAlign = draw.XRight
		if !onLeft {
			end, text.XAlign = right+6, draw.XLeft
		}
		page.StrokeLines(thin, []vg.Point{{X: x(ranks[i]), Y: axis}, {X: x(ranks[i]), Y: y}, {X: end, Y: y}})
		gap := vg.Length(4)
		if onLeft {
			gap = -gap
		}
		page.FillText(text, vg.Point{X: end + gap, Y: y}, label(i))
	}
	for g, group := range groups {
		y := axis - vg.Length(7+barGap*g)
		page.StrokeLine2(thick, x(group[0])-3, y, x(group[1])+3, y)
	}
	return f.write(w)
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
