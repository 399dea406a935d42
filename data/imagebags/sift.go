// The generator SIFT.

package imagebags

import (
	"fmt"
	"image"
	"math"
)

// SIFT describes square patches on a regular grid, upright and at one scale, by Lowe's descriptor
// (2004): histograms of 8 gradient directions in 4x4 parts of the patch, weighted by a Gaussian
// half as wide as the patch and interpolated trilinearly between neighbouring parts and directions;
// normalised to length 1, clipped at 0.2 and normalised again. A patch without any gradient gives
// zeros.
//
// The first patch is in the top left corner. The others follow every Step pixels as long as they
// are inside the image.
type SIFT struct {
	Patch int `setting:"patch"` // pixels per side, a multiple of 4
	Step  int `setting:"step"`
	// Sigma is the total deviation, in pixels, of the Gaussian smoothing; the image itself is
	// assumed to have 0.5 (Lowe 2004, section 3.3).
	Sigma float64 `setting:"sigma"`
}

// DefaultSIFT gives 25 instances of 128 features on 224x224 pixels: 5x5 patches that cover the
// image and overlap. Patch, step and deviation are our choice, because the paper publishes only the
// counts.
var DefaultSIFT = SIFT{Patch: 64, Step: 40, Sigma: 1.6}

// Constants of Lowe 2004, section 6.1; cameraSigma is of section 3.3.
const (
	siftParts      = 4               // parts per side of a patch
	siftDirections = 8               // of a histogram
	siftWindow     = siftParts / 2.0 // deviation of the Gaussian weights, in parts
	siftCut        = 0.2             // clipping limit
	cameraSigma    = 0.5             // assumed deviation of the smoothing in the image
)

// Name returns "sift".
func (SIFT) Name() string { return "sift" }

// Dim returns 128.
func (SIFT) Dim() int { return siftParts * siftParts * siftDirections }

// Check reports invalid settings.
func (g SIFT) Check() error {
	switch {
	case g.Patch < 8 || g.Patch%siftParts != 0:
		return fmt.Errorf("patches of %d pixels a side do not work; give a multiple of 4, at least 8", g.Patch)
	case g.Step < 1:
		return fmt.Errorf("a step of %d pixels does not work; give at least 1", g.Step)
	case !(g.Sigma >= cameraSigma) || g.Sigma > 100:
		return fmt.Errorf("a smoothing of %v pixels does not work; give %v (none) to 100", g.Sigma, cameraSigma)
	}
	return nil
}

// Bag returns [patches, 128], row by row of the grid. A descriptor lists the rows of its parts,
// then their columns, then the directions counter-clockwise from the right.
func (g SIFT) Bag(m *image.RGBA) ([]float32, error) {
	b := m.Bounds()
	if b.Dx() < g.Patch || b.Dy() < g.Patch {
		return nil, tooSmall(m, g.Patch, "a patch")
	}
	field := gradientsOf(gray(m).smoothed(math.Sqrt(g.Sigma*g.Sigma - cameraSigma*cameraSigma)))
	var out []float32
	for y := 0; y+g.Patch <= b.Dy(); y += g.Step {
		for x := 0; x+g.Patch <= b.Dx(); x += g.Step {
			out = append(out, field.descriptor(x+g.Patch/2, y+g.Patch/2, float64(g.Patch)/siftParts)...)
		}
	}
	return out, nil
}

// plane is a grey image.
type plane struct {
	w, h int
	v    []float64 // [h, w]
}

func gray(m *image.RGBA) plane {
	b := m.Bounds()
	p := plane{b.Dx(), b.Dy(), make([]float64, b.Dx()*b.Dy())}
	for i := range p.v {
		p.v[i] = luma(colorAt(m, i%p.w, i/p.w))
	}
	return p
}

// smoothed convolves with a Gaussian, truncated at four deviations. Beyond its edges the image is
// mirrored about the outermost pixels.
func (p plane) smoothed(sigma float64) plane {
	if sigma == 0 {
		return p
	}
	reach := int(math.Ceil(4 * sigma))
	weights, sum := make([]float64, reach+1), 0.0
	for i := range weights {
		weights[i] = math.Exp(-float64(i*i) / (2 * sigma * sigma))
		sum += weights[i]
		if i > 0 {
			sum += weights[i]
		}
	}
	for i := range weights {
		weights[i] /= sum
	}
	return p.along(weights).transposed().along(weights).transposed()
}

// along convolves the rows with a symmetric kernel, given from its middle.
func (p plane) along(weights []float64) plane {
	out := plane{p.w, p.h, make([]float64, len(p.v))}
	for y := range p.h {
		row := p.v[y*p.w : (y+1)*p.w]
		for x := range row {
			sum := weights[0] * row[x]
			for i := 1; i < len(weights); i++ {
				sum += weights[i] * (row[mirrored(x-i, p.w)] + row[mirrored(x+i, p.w)])
			}
			out.v[y*p.w+x] = sum
		}
	}
	return out
}

// mirrored maps an index outside 0 to n-1 back into it.
func mirrored(i, n int) int {
	if n == 1 {
		return 0
	}
	for i < 0 || i >= n {
		if i < 0 {
			i = -i
		} else {
			i = 2*(n-1) - i
		}
	}
	return i
}

func (p plane) transposed() plane {
	out := plane{p.h, p.w, make([]float64, len(p.v))}
	for y := range p.h {
		for x := range p.w {
			out.v[x*p.h+y] = p.v[y*p.w+x]
		}
	}
	return out
}

// gradients has the length and direction (in histogram bins, 0 to 8) of every pixel's gradient. The
// outermost pixels have none.
type gradients struct {
	w, h              int
	length, direction []float64
}

func gradientsOf(p plane) gradients {
	g := gradients{p.w, p.h, make([]float64, len(p.v)), make([]float64, len(p.v))}
	for y := 1; y < p.h-1; y++ {
		for x := 1; x < p.w-1; x++ {
			i := y*p.w + x
			dx, dy := p.v[i+1]-p.v[i-1], p.v[i-p.w]-p.v[i+p.w] // up is positive
			angle := math.Atan2(dy, dx)
			if angle < 0 {
				angle += 2 * math.Pi
			}
			g.length[i] = math.Hypot(dx, dy)
			g.direction[i] = angle * siftDirections / (2 * math.Pi)
		}
	}
	return g
}

// descriptor describes the patch around a pixel; part is the width of a part.
func (g gradients) descriptor(cx, cy int, part float64) []float32 {
	// One more bin on every side collects gradients beyond the outer parts.
	const rim = siftParts + 2
	var histogram [rim * rim * siftDirections]float64
	reach := int(math.Ceil(part * (siftParts + 1) / 2))
	for y := max(cy-reach, 1); y <= min(cy+reach, g.h-2); y++ {
		for x := max(cx-reach, 1); x <= min(cx+reach, g.w-2); x++ {
			v, u := float64(y-cy)/part, float64(x-cx)/part // relative to the middle, in parts
			row, column := v+siftParts/2.0+0.5, u+siftParts/2.0+0.5
			if row <= 0 || row >= siftParts+1 || column <= 0 || column >= siftParts+1 {
				continue
			}
			i := y*g.w + x
			weight := g.length[i] * math.Exp(-(u*u+v*v)/(2*siftWindow*siftWindow))
			share(histogram[:], rim, row, column, g.direction[i], weight)
		}
	}
	out := make([]float64, 0, siftParts*siftParts*siftDirections)
	for r := 1; r <= siftParts; r++ {
		out = append(out, histogram[(r*rim+1)*siftDirections:(r*rim+1+siftParts)*siftDirections]...)
	}
	return normalized(out)
}

// share distributes a gradient to the two nearest rows, columns and directions.
func share(histogram []float64, rim int, row, column, direction, weight float64) {
	r, c, o := int(row), int(column), int(direction)
	fr, fc, fo := row-float64(r), column-float64(c), direction-float64(o)
	for i, wr := range [2]float64{1 - fr, fr} {
		for j, wc := range [2]float64{1 - fc, fc} {
			at := ((r+i)*rim + c + j) * siftDirections
			histogram[at+o%siftDirections] += weight * wr * wc * (1 - fo)
			histogram[at+(o+1)%siftDirections] += weight * wr * wc * fo
		}
	}
}

func normalized(v []float64) []float32 {
	n := norm(v)
	for i := range v {
		v[i] = min(v[i], siftCut*n)
	}
	out := make([]float32, len(v))
	if n = norm(v); n > 1e-12 {
		for i := range v {
			out[i] = float32(v[i] / n)
		}
	}
	return out
}

func norm(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x * x
	}
	return math.Sqrt(sum)
}
