// Model files that contain the encoder of their images are compared with engines that take features.

package runs

import (
	"crypto/sha256"
	"slices"

	"github.com/miplc/miplc/compile/encoder"
	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/export"
	"github.com/miplc/miplc/internal/contract"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/train"
)

// imageSizes are the numbers of images in the bags on which engines are compared.
var imageSizes = []int{1, 2, 8}

// joins reports whether the model file of a trial contains the encoder of its images.
func joins(t *train.Trial) bool {
	return t.Images != nil && t.Program.Spec.Data.Encoder.Export.V == language.ExportJoined
}

// imageEngines gives engines that take features the images from which an encoder computes them, so
// that they are comparable with a model file that contains the encoder.
type imageEngines struct {
	encoder *encoder.Encoder
	session *encoder.Session
	cached  map[[sha256.Size]byte][]float32 // features of images that are known
}

func newImageEngines(e *encoder.Encoder) (*imageEngines, error) {
	s, err := e.Open()
	if err != nil {
		return nil, err
	}
	return &imageEngines{e, s, map[[sha256.Size]byte][]float32{}}, nil
}

// imageEnginesOf returns the engines for a model file that contains an encoder, nil for others.
func imageEnginesOf(path string) (*imageEngines, error) {
	model, meta, err := contract.Read(path)
	if err != nil || meta.Encoder == nil {
		return nil, err
	}
	e, err := encoder.OfModel(model, meta)
	if err != nil {
		return nil, err
	}
	return newImageEngines(e)
}

// features returns the features of images: cached ones, or new ones, computed image by image like those of a dataset.
func (g *imageEngines) features(x []float32) (all []float32, err error) {
	size := ndarray.Size(g.encoder.Meta.InputShape())
	for len(x) > 0 {
		known, ok := g.cached[sumOf(x[:size])]
		if !ok {
			if known, err = g.session.Features(x[:size], 1); err != nil {
				return nil, err
			}
		}
		all, x = append(all, known...), x[size:]
	}
	return all, nil
}

func sumOf(image []float32) [sha256.Size]byte { return sha256.Sum256(ndarray.AppendBytes(nil, image)) }

// wrap makes predictors take images.
func (g *imageEngines) wrap(e *predictors) {
	for i, engine := range e.list {
		e.list[i].Predict = ofImages(g, engine.Predict)
	}
	if e.rounding != nil {
		e.rounding = ofImages(g, e.rounding)
	}
}

// ofImages makes a function of features, and of the size or sizes of bags, take images.
func ofImages[S, R any](g *imageEngines, f func(features []float32, size S) (R, R, error)) func([]float32, S) (R, R,
	error) {
	return func(images []float32, size S) (p, a R, err error) {
		features, err := g.features(images)
		if err != nil {
			return p, a, err
		}
		return f(features, size)
	}
}

// noise returns options that draw images of noise.
func (g *imageEngines) noise(o export.Comparison) export.Comparison {
	o.Instance = g.encoder.Meta.InputShape() // [3, size, size]
	size := ndarray.Size(o.Instance)
	o.Mean, o.Std = slices.Repeat([]float32{0.5}, size), slices.Repeat([]float32{0.25}, size)
	if o.Sizes == nil {
		o.Sizes = imageSizes
	}
	return o
}

// of returns options that take images of a dataset, with the features that the model was trained
// on.
func (g *imageEngines) of(images, features *data.Dataset, o export.Comparison) (export.Comparison, error) {
	o = g.noise(o)
	size, rng := ndarray.Size(o.Instance), ndarray.NewStream(o.Seed, "parity images")
	bags := make([][]float32, len(o.Sizes))
	for j, n := range o.Sizes {
		bags[j] = make([]float32, n*size)
		for i := range n {
			bag := rng.IntN(images.Bags())
			instance, x := rng.IntN(images.Size(bag)), bags[j][i*size:(i+1)*size]
			if err := images.ReadRange(x, bag, instance); err != nil {
				return o, err
			}
			row := make([]float32, features.Dim())
			if err := features.ReadRange(row, bag, instance); err != nil {
				return o, err
			}
			g.cached[sumOf(x)] = row
		}
	}
	o.Bag = func(j int) []float32 { return bags[j] }
	return o, nil
}
