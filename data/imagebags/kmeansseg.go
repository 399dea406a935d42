// The generator KMeansSeg.

package imagebags

import (
	"errors"
	"fmt"
	"image"
	"math"

	"gonum.org/v1/gonum/floats"

	"github.com/miplc/miplc/internal/diag"
)

// KMeansSeg divides the image into blobs of Blob x Blob pixels, describes each by 6 numbers (mean
// colour, and the strengths of the horizontal, vertical and diagonal detail of the luminance), and
// clusters the blobs. Every cluster is a segment and one instance, the mean of its blobs (Zhang,
// Goldman, Yu and Fritts 2002). Pixels beyond the last whole blob are ignored.
//
// The number of segments K is chosen for each image. It increases from 2 until the mean squared
// distance D(K) of a blob to its centre is at most Distortion, or the last segment reduced D by at
// most Improvement times D(1), or K is MaxSegments. A uniform image has one segment.
type KMeansSeg struct {
	Blob        int     `setting:"blob"`  // side of a blob in pixels; even
	Color       string  `setting:"color"` // "ycbcr" or "luv"
	MaxSegments int     `setting:"max-segments"`
	Distortion  float64 `setting:"distortion"`  // in squared levels (0 to 1)
	Improvement float64 `setting:"improvement"` // share of D(1)
}

// Colour spaces of KMeansSeg.
const (
	spaceYCbCr = "ycbcr"
	spaceLUV   = "luv"
)

// DefaultKMeansSeg gives about 4.3 instances of 6 features on the tiles of colorectal tissue that
// the paper uses. The two limits are our choice: the paper publishes the mean number of segments,
// but not the constants.
var DefaultKMeansSeg = KMeansSeg{Blob: 4, Color: spaceYCbCr, MaxSegments: 16, Distortion: 0.0002, Improvement: 0.06}

// Name returns "kmeansseg".
func (KMeansSeg) Name() string { return "kmeansseg" }

// Dim returns 6.
func (KMeansSeg) Dim() int { return 6 }

// Check reports invalid settings.
func (g KMeansSeg) Check() error {
	switch {
	case g.Blob < 2 || g.Blob%2 != 0 || g.Blob > maxGrid:
		return fmt.Errorf("blobs of %d pixels a side do not work; give an even number from 2 to %d", g.Blob, maxGrid)
	case g.MaxSegments < 1 || g.MaxSegments > 256:
		return fmt.Errorf("at most %d segments do not work; give 1 to 256", g.MaxSegments)
	case !(g.Distortion >= 0) || !(g.Improvement >= 0) || g.Improvement > 1:
		return errors.New("the limits of distortion (at least 0) and improvement (0 to 1) do not work")
	}
	return diag.CheckWord("the colour space", g.Color, []string{spaceYCbCr, spaceLUV})
}

// blobFeatures describes a blob or a segment.
type blobFeatures [6]float64

func (a *blobFeatures) distance(b *blobFeatures) float64 {
	sum := 0.0
	for k := range a {
		d := a[k] - b[k]
		sum += d * d
	}
	return sum
}

// Bag returns [K, 6], with segments in the order of their first pixel, row by row.
func (g KMeansSeg) Bag(m *image.RGBA) ([]float32, error) {
	b := m.Bounds()
	if b.Dx() < g.Blob || b.Dy() < g.Blob {
		return nil, tooSmall(m, g.Blob, "a blob")
	}
	blobs := make([]blobFeatures, 0, (b.Dx()/g.Blob)*(b.Dy()/g.Blob))
	values := make([]pixel, g.Blob*g.Blob)
	for y := 0; y+g.Blob <= b.Dy(); y += g.Blob {
		for x := 0; x+g.Blob <= b.Dx(); x += g.Blob {
			blobs = append(blobs, g.describe(m, x, y, values))
		}
	}
	c := newClustering(blobs)
	d1 := c.distortion
	for c.distortion > 0 && len(c.centers) < g.MaxSegments {
		before := c.distortion
		c.grow()
		if c.distortion <= g.Distortion || len(c.centers) > 2 && before-c.distortion <= g.Improvement*d1 {
			break
		}
	}
	return c.instances(), nil
}

// describe returns the features of the blob with top left pixel (x, y). values is a buffer for its
// pixels.
func (g KMeansSeg) describe(m *image.RGBA, x, y int, values []pixel) blobFeatures {
	for i := range values {
		c := colorAt(m, x+i%g.Blob, y+i/g.Blob)
		if g.Color == spaceLUV {
			values[i] = luv(c)
		} else {
			values[i] = ycbcr(c)
		}
	}
	mean := meanOf(values...)
	horizontal, vertical, diagonal := detail(values, g.Blob)
	return blobFeatures{mean[0], mean[1], mean[2], horizontal, vertical, diagonal}
}

// detail computes one step of the orthonormal Haar transform of the first channel of size x size
// pixels. It returns the root mean squares of the three detail bands.
func detail(values []pixel, size int) (horizontal, vertical, diagonal float64) {
	for y := 0; y < size; y += 2 {
		for x := 0; x < size; x += 2 {
			a, b := values[y*size+x][0], values[y*size+x+1][0]
			c, d := values[(y+1)*size+x][0], values[(y+1)*size+x+1][0]
			h, v, g := (a-b+c-d)/2, (a+b-c-d)/2, (a-b-c+d)/2
			horizontal += h * h
			vertical += v * v
			diagonal += g * g
		}
	}
	n := float64(size * size / 4)
	return math.Sqrt(horizontal / n), math.Sqrt(vertical / n), math.Sqrt(diagonal / n)
}

// clustering is Lloyd's k-means with an increasing number of centres. A new centre starts at the
// point farthest from its centre, so the algorithm is deterministic and the distortion decreases
// with every centre.
type clustering struct {
	points     []blobFeatures
	centers    []blobFeatures
	of         []int     // [points] index of the nearest centre
	distances  []float64 // [points] squared distance to it
	distortion float64   // mean of distances
}

// maxRounds bounds Lloyd's rounds for one number of centres. Almost all images converge earlier.
const maxRounds = 100

// newClustering returns a clustering with one centre, the mean of all points.
func newClustering(points []blobFeatures) *clustering {
	c := &clustering{points: points, centers: make([]blobFeatures, 1), of: make([]int, len(points)),
		distances: make([]float64, len(points))}
	c.move()
	c.assign()
	return c
}

// grow adds a centre and iterates until convergence.
func (c *clustering) grow() {
	c.centers = append(c.centers, c.points[floats.MaxIdx(c.distances)])
	c.assign()
	for range maxRounds {
		c.move()
		if !c.assign() {
			break
		}
	}
}

// assign finds the nearest centre of each point, the first one on ties, and reports whether any
// changed.
func (c *clustering) assign() bool {
	changed, sum := false, 0.0
	for i := range c.points {
		nearest, least := 0, math.Inf(1)
		for k := range c.centers {
			if d := c.points[i].distance(&c.centers[k]); d < least {
				nearest, least = k, d
			}
		}
		changed = changed || nearest != c.of[i]
		c.of[i], c.distances[i] = nearest, least
		sum += least
	}
	c.distortion = sum / float64(len(c.points))
	return changed
}

// move sets each centre to the mean of its points. A centre without points does not move.
func (c *clustering) move() {
	sums, counts := make([]blobFeatures, len(c.centers)), make([]int, len(c.centers))
	for i, k := range c.of {
		counts[k]++
		for f := range sums[k] {
			sums[k][f] += c.points[i][f]
		}
	}
	for k, n := range counts {
		if n == 0 {
			continue
		}
		for f := range sums[k] {
			c.centers[k][f] = sums[k][f] / float64(n)
		}
	}
}

// instances returns the centres that have points, in the order of their first point.
func (c *clustering) instances() []float32 {
	var out []float32
	seen := make([]bool, len(c.centers))
	for _, k := range c.of {
		if seen[k] {
			continue
		}
		seen[k] = true
		for _, v := range c.centers[k] {
			out = append(out, float32(v))
		}
	}
	return out
}
