// Package imagebags turns images into bags: the image bag generators Row, SBN,
// KMeansSeg and SIFT that the paper's data sets are made with (appendix, "Image
// Bag Generator"; compared in Wei and Zhou, "An empirical study on image bag
// generators for multi-instance learning", Machine Learning 2016).
//
// A generator sees an opaque image of 8 bits a channel and is a pure function of
// it: the same image gives the same bag, whatever the number of workers. Colours
// go in as levels from 0 to 1.
package imagebags

import (
	"fmt"
	"image"
)

// Generator makes the instances of one image.
type Generator interface {
	// Name is the word that chooses the generator, e.g. "row".
	Name() string
	// Dim is the number of features of an instance.
	Dim() int
	// Check reports settings that make no sense.
	Check() error
	// Bag returns the instances [n, Dim], row-major, with n >= 1. The bounds of
	// the image start at (0, 0). It may be called from several goroutines.
	Bag(m *image.RGBA) ([]float32, error)
}

// placer is a generator whose instances have places in the image.
type placer interface {
	Shape() []int                   // of an instance
	Coords(m *image.RGBA) []float32 // of the instances of Bag, [n, 2], x before y
}

// Names lists the generators, those of the paper's Table 1 in its order.
var Names = []string{"row", "sbn", "kmeansseg", "sift", "patches"}

// tooSmall says that an image has no room for the generator's windows.
func tooSmall(m *image.RGBA, need int, what string) error {
	b := m.Bounds()
	return fmt.Errorf("the image has %dx%d pixels, but %s needs %dx%d; enlarge the images with --resize, or choose smaller windows", b.Dx(), b.Dy(), what, need, need)
}
