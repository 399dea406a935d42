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
	"strings"

	"github.com/miplc/miplc/internal/diag"
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

// Names lists the generators in the order of the paper's Table 1.
var Names = []string{"row", "sbn", "kmeansseg", "sift"}

// Default returns the generator of a name with the settings that give the
// paper's counts on images of 224x224 pixels.
func Default(name string) (Generator, error) {
	switch name {
	case "row":
		return DefaultRow, nil
	case "sbn":
		return DefaultSBN, nil
	case "kmeansseg":
		return DefaultKMeansSeg, nil
	case "sift":
		return DefaultSIFT, nil
	}
	return nil, diag.Diagnostic{
		Text:       fmt.Sprintf("there is no generator %q", name),
		Suggestion: diag.Suggest(name, Names),
		Notes:      []string{"known are " + strings.Join(Names, ", ")},
	}
}

// tooSmall says that an image has no room for the generator's windows.
func tooSmall(m *image.RGBA, need int, what string) error {
	b := m.Bounds()
	return fmt.Errorf("the image has %dx%d pixels, but %s needs %dx%d; enlarge the images with --resize, or choose smaller windows", b.Dx(), b.Dy(), what, need, need)
}
