// Package imagebags turns images into bags with the image bag generators Row, SBN, KMeansSeg and
// SIFT, from which the paper's datasets are made (appendix, "Image Bag Generator"; compared in Wei
// and Zhou, "An empirical study on image bag generators for multi-instance learning", Machine
// Learning 2016), and Patches, which keeps the pixels. OpenTiles opens images as instances for an
// encoder.
//
// A generator is a pure function of an opaque image with 8 bits per channel: the same image gives
// the same bag for any number of workers. Colours are levels from 0 to 1.
package imagebags

import (
	"fmt"
	"image"
)

// Generator makes the instances of an image.
type Generator interface {
	// Name returns the name of the generator on the command line, e.g. "row".
	Name() string
	// Dim returns the number of features of an instance.
	Dim() int
	// Check reports invalid settings.
	Check() error
	// Bag returns the instances [n, Dim], row-major, n >= 1. The bounds of the image start at (0,
	// 0). Bag must be safe for concurrent use.
	Bag(m *image.RGBA) ([]float32, error)
}

// locator is a generator whose instances have coordinates in the image.
type locator interface {
	Shape() []int                   // of an instance
	Coords(m *image.RGBA) []float32 // of the instances of Bag, [n, 2], x before y
}

// Names lists the generators: the four of the paper's Table 1 in its order, and patches.
var Names = []string{"row", "sbn", "kmeansseg", "sift", "patches"}

// tooSmall returns the error for an image that is smaller than the generator's windows.
func tooSmall(m *image.RGBA, need int, what string) error {
	b := m.Bounds()
	return fmt.Errorf("the image has %dx%d pixels, but %s needs %dx%d; enlarge the images with --resize, or choose "+
		"smaller windows", b.Dx(), b.Dy(), what, need, need)
}
