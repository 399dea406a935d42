// Pictures of a bag: thumbnails or a map of values.

package plot

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"html"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/internal/diag"
)

// Bag writes a picture of bag i (from 0) as self-contained SVG. Instances that are images
// become a grid of thumbnails. Other instances become a heat map of z-scores over the whole
// dataset, with one row per instance and one column per feature. Known positive instances have a
// frame. The title lists the candidates, with the true label in bold.
func Bag(w io.Writer, d *data.Dataset, i int) error {
	if i < 0 || i >= d.Bags() {
		return diag.Errorf(diag.Pos{File: d.Name}, "there is no bag %d; bags count from 1 to %d", i+1, d.Bags())
	}
	var err error
	var body bytes.Buffer
	var width, height int
	if h, wd, channels := imageShape(d); channels > 0 {
		width, height, err = drawThumbnails(&body, d, i, h, wd, channels)
	} else {
		width, height, err = drawHeatMap(&body, d, i)
	}
	if err != nil {
		return err
	}
	width = max(width, 420)
	_, err = fmt.Fprintf(diag.CleanWriter(w), `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" `+
		`viewBox="0 0 %d %d"
  font-family="sans-serif" font-size="13">
<rect width="100%%" height="100%%" fill="#ffffff"/>
%s%s</svg>
`, width, height, width, height, bagTitle(d, i), body.Bytes())
	return err
}

const (
	drawMargin = 12
	titleSpace = 48 // above the picture
)

// bagTitle returns a title with the number of the bag, its size and its labels.
func bagTitle(d *data.Dataset, i int) string {
	kind, truth := "candidates", d.TrueMask(i)
	if d.Multi {
		kind = "labels"
	}
	var labels []string
	for _, c := range d.CandidateList(i) {
		name := html.EscapeString(d.ClassName(c))
		if truth != nil && truth[c] == 1 {
			name = `<tspan font-weight="bold">` + name + `</tspan>`
		}
		labels = append(labels, name)
	}
	return fmt.Sprintf(`<text x="%d" y="20" font-size="15">%s, bag %d: %s</text>
<text x="%d" y="38" fill="#555555">%s: %s</text>
`, drawMargin, html.EscapeString(d.Name), i+1, diag.Count(d.Size(i), "instance"), drawMargin, kind,
		strings.Join(labels, ", "))
}

// imageShape returns height, width and channels if instances are images of one or three channels;
// otherwise channels is 0.
func imageShape(d *data.Dataset) (h, w, channels int) {
	switch {
	case len(d.Shape) == 2 && d.Shape[0] > 1 && d.Shape[1] > 1:
		return d.Shape[0], d.Shape[1], 1
	case len(d.Shape) == 3 && (d.Shape[0] == 1 || d.Shape[0] == 3) && d.Shape[1] > 1:
		return d.Shape[1], d.Shape[2], d.Shape[0]
	}
	return 0, 0, 0
}

func drawThumbnails(w io.Writer, d *data.Dataset, i, h, wd, channels int) (width, height int, err error) {
	const side, gap, perRow = 56, 8, 10
	bag, err := d.Bag(i)
	if err != nil {
		return 0, 0, err
	}
	low, high := slices.Min(bag), slices.Max(bag)
	for j := range d.Size(i) {
		x := drawMargin + j%perRow*(side+gap)
		y := titleSpace + drawMargin + j/perRow*(side+gap)
		picture := thumbnail(bag[j*d.Dim():(j+1)*d.Dim()], h, wd, channels, low, high)
		if err := embedPNG(w, picture, x, y, side, side); err != nil {
			return 0, 0, err
		}
		if d.Positive(i, d.Offsets[i]+j) {
			drawFrame(w, x-2, y-2, side+4, side+4, 3)
		}
	}
	rows := (d.Size(i) + perRow - 1) / perRow
	return 2*drawMargin + perRow*(side+gap) - gap, titleSpace + 2*drawMargin + rows*(side+gap) - gap, nil
}

// thumbnail converts the channels of one instance to a picture. low becomes black and high white.
func thumbnail(x []float32, h, w, channels int, low, high float32) image.Image {
	scale := func(v float32) uint8 {
		if high <= low {
			return 128
		}
		return uint8(math.Round(255 * float64((v-low)/(high-low))))
	}
	m := image.NewRGBA(image.Rect(0, 0, w, h))
	for at := range h * w {
		c := color.RGBA{A: 255}
		c.R = scale(x[at])
		c.G, c.B = c.R, c.R
		if channels == 3 {
			c.G, c.B = scale(x[h*w+at]), scale(x[2*h*w+at])
		}
		m.SetRGBA(at%w, at/w, c)
	}
	return m
}

// The colours of the lowest and the highest z-score.
var paleBlue, darkBlue = color.NRGBA{247, 251, 255, 255}, color.NRGBA{8, 48, 107, 255}

// maxHeatMap is the maximum number of cells of a heat map.
const maxHeatMap = 4 << 20

// drawHeatMap draws z-scores (statistics of the whole dataset) from -2.5 to 2.5. A wider range would
// make a feature with one outlier pale everywhere.
func drawHeatMap(w io.Writer, d *data.Dataset, i int) (width, height int, err error) {
	const reach = 2.5
	dim, n := d.Dim(), d.Size(i)
	if dim*n > maxHeatMap {
		return 0, 0, diag.Errorf(diag.Pos{File: d.Name}, "bag %d has %s of %s, too many to draw", i+1,
			diag.Count(n, "instance"), diag.Count(dim, "feature"))
	}
	statistics, err := data.NewNormalization(d, d.AllBags())
	if err != nil {
		return 0, 0, err
	}
	bag, err := d.Bag(i)
	if err != nil {
		return 0, 0, err
	}
	cellW, cellH := min(max(640/dim, 1), 24), min(max(480/n, 2), 16)
	m, scores := image.NewRGBA(image.Rect(0, 0, dim*cellW, n*cellH)), make([]float32, len(bag))
	statistics.Apply(scores, bag)
	for at, z := range scores {
		c := mix(paleBlue, darkBlue, min(max((float64(z)+reach)/(2*reach), 0), 1))
		left, top := at%dim*cellW, at/dim*cellH
		draw.Draw(m, image.Rect(left, top, left+cellW, top+cellH), image.NewUniform(c), image.Point{}, draw.Src)
	}
	x, y := drawMargin, titleSpace+drawMargin
	if err := embedPNG(w, m, x, y, dim*cellW, n*cellH); err != nil {
		return 0, 0, err
	}
	for j := range n {
		if d.Positive(i, d.Offsets[i]+j) {
			drawFrame(w, x-2, y+j*cellH, dim*cellW+4, cellH, 2)
		}
	}
	fmt.Fprintf(w, `<text x="%d" y="%d" fill="#555555">rows: instances, columns: features (pale to dark: z-scores of `+
		"-2.5 to 2.5)</text>\n", x, y+n*cellH+18)
	return dim*cellW + 2*drawMargin, y + n*cellH + 18 + drawMargin, nil
}

// drawFrame draws the frame of a positive instance.
func drawFrame(w io.Writer, x, y, width, height, stroke int) {
	fmt.Fprintf(w, `<rect x="%d" y="%d" width="%d" height="%d" fill="none" stroke="#d7301f" stroke-width="%d"/>`+"\n",
		x, y, width, height, stroke)
}

func embedPNG(w io.Writer, m image.Image, x, y, width, height int) error {
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, `<image x="%d" y="%d" width="%d" height="%d" preserveAspectRatio="none" `+
		`style="image-rendering:pixelated" href="data:image/png;base64,%s"/>`+"\n",
		x, y, width, height, base64.StdEncoding.EncodeToString(b.Bytes()))
	return err
}
