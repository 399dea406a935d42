// An open encoder.

package encoder

import (
	"fmt"
	"math"

	"github.com/miplc/miplc/internal/contract"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/onnxpb"
	"github.com/miplc/miplc/internal/onnxruntime"
)

// Session is an encoder that is open in onnxruntime. It is safe for concurrent use, except for
// Close.
type Session struct {
	encoder *Encoder
	graph   *onnxruntime.Graph
}

// Open opens the encoder in onnxruntime. It tries two images, to see that the features of one do not depend on the
// other.
func (e *Encoder) Open() (*Session, error) {
	content, err := onnxpb.Marshal(e.model())
	if err != nil {
		return nil, err
	}
	graph, err := onnxruntime.OpenGraph(content)
	if err != nil {
		return nil, fmt.Errorf("the encoder: %w", err)
	}
	s := &Session{e, graph}
	if err := s.try(); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Close frees the session.
func (s *Session) Close() error { return s.graph.Close() }

// maxDifference bounds the difference, relative to the largest feature, between the features of an image
// computed separately and together with another image.
const maxDifference = 1e-3

func (s *Session) try() error {
	size := 3 * s.encoder.Meta.Size * s.encoder.Meta.Size
	x, rng := make([]float32, 2*size), ndarray.NewStream(1, "encoder")
	for i := range x {
		x[i] = rng.Float32()
	}
	both, err := s.Features(x, 2)
	if err != nil {
		return err
	}
	d := s.encoder.Meta.Features
	largest, difference := 0.0, 0.0
	for i := range 2 {
		alone, err := s.Features(x[i*size:(i+1)*size], 1)
		if err != nil {
			return err
		}
		for j, v := range alone {
			largest = max(largest, math.Abs(float64(v)))
			difference = max(difference, math.Abs(float64(v-both[i*d+j])))
		}
	}
	if difference > maxDifference*largest {
		return advice(exportAgain, "the features of an image depend on the other images of its bag: they differ by %g of "+
			"at most %g", difference, largest)
	}
	return nil
}

// Features computes the features [n, Features] of n images [n, 3, size, size].
func (s *Session) Features(images []float32, n int) ([]float32, error) {
	m := s.encoder.Meta
	out, err := s.graph.Run(map[string]onnxruntime.Tensor{contract.Instances: {Shape: []int{n, 3, m.Size, m.Size},
		Floats: images}})
	if err != nil {
		return nil, fmt.Errorf("the encoder does not run: %w", err)
	}
	features := out[contract.EncoderFeatures]
	if len(features.Floats) != n*m.Features {
		return nil, advice(exportAgain, "the encoder makes features of the shape %v for %d images, expected [%d, %d]",
			features.Shape, n, n, m.Features)
	}
	if i := ndarray.FirstNotFinite(features.Floats); i >= 0 {
		return nil, fmt.Errorf("feature %d of image %d is %v; features must be finite", i%m.Features+1, i/m.Features+1,
			features.Floats[i])
	}
	return features.Floats, nil
}
