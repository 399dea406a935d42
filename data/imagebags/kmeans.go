// Clusters of pixels.

package imagebags

import (
	"math"

	"gonum.org/v1/gonum/floats"
)

// clustering is Lloyd's k-means with an increasing number of centres. A new centre starts at the
// point farthest from its centre, so the algorithm is deterministic and the distortion decreases
// with every centre.
type clustering struct {
	points     []blobFeatures
	centres    []blobFeatures
	of         []int     // [points] index of the nearest centre
	distances  []float64 // [points] squared distance to it
	distortion float64   // mean of distances
}

// maxRounds bounds Lloyd's rounds for one number of centres. Almost all images converge earlier.
const maxRounds = 100

// newClustering returns a clustering with one centre, the mean of all points.
func newClustering(points []blobFeatures) *clustering {
	c := &clustering{points: points, centres: make([]blobFeatures, 1), of: make([]int, len(points)),
		distances: make([]float64, len(points))}
	c.move()
	c.assign()
	return c
}

// grow adds a centre and iterates until convergence.
func (c *clustering) grow() {
	c.centres = append(c.centres, c.points[floats.MaxIdx(c.distances)])
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
		for k := range c.centres {
			if d := c.points[i].distance(&c.centres[k]); d < least {
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
	sums, counts := make([]blobFeatures, len(c.centres)), make([]int, len(c.centres))
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
			c.centres[k][f] = sums[k][f] / float64(n)
		}
	}
}

// instances returns the centres that have points, in the order of their first point.
func (c *clustering) instances() []float32 {
	var out []float32
	seen := make([]bool, len(c.centres))
	for _, k := range c.of {
		if seen[k] {
			continue
		}
		seen[k] = true
		for _, v := range c.centres[k] {
			out = append(out, float32(v))
		}
	}
	return out
}
