// Features come from the cache if nothing has changed.

package encoder_test

import (
	"context"
	"errors"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/miplc/miplc/compile/encoder"
	"github.com/miplc/miplc/data/bagfile"
	"github.com/miplc/miplc/data/imagebags"
	"github.com/miplc/miplc/internal/contract"
	"github.com/miplc/miplc/internal/libraries"
	"github.com/miplc/miplc/internal/onnxpb"
	"github.com/miplc/miplc/internal/testkit/enginetest"
)

// Features in the cache belong to one size of images, although the graph of the encoder is the same
// for all sizes.
func TestCacheOfSizes(t *testing.T) {
	enginetest.Library(t)
	dir := t.TempDir()
	t.Setenv(libraries.EnvCache, filepath.Join(t.TempDir(), "cache[1]"))
	content, err := onnxpb.Marshal(enginetest.EncoderModel(3))
	if err != nil {
		t.Fatal(err)
	}
	path, tiles := filepath.Join(dir, "encoder.onnx"), filepath.Join(dir, "tiles")
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
	writePictures(t, tiles)
	var before []float32
	for i, size := range []int{12, 8, 12} {
		e, err := encoder.Read(path, enginetest.PooledEncoder, contract.EncoderInput{Size: size, Mean: []float64{0, 0, 0},
			Std: []float64{1, 1, 1}, Order: contract.RGB})
		if err != nil {
			t.Fatal(err)
		}
		images, err := imagebags.OpenTiles([]string{tiles}, imagebags.TileForm{Side: size}, bagfile.Reading{})
		if err != nil {
			t.Fatal(err)
		}
		ended, end := context.WithCancel(t.Context())
		end()
		if _, err := e.Encode(ended, images, nil); (i < 2) != errors.Is(err,
			context.Canceled) {
			t.Errorf("size %d, interrupted before its features are in the cache or after: %v", size, err)
		}
		got, err := e.Encode(t.Context(), images, nil)
		if err != nil {
			t.Fatal(err)
		}
		s, err := e.Open()
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		var want []float32
		for bag := range images.Bags() {
			x, err := images.Bag(bag)
			if err != nil {
				t.Fatal(err)
			}
			features, err := s.Features(x, 1)
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, features...)
		}
		if !slices.Equal(got.Instances, want) || slices.Equal(got.Instances, before) {
			t.Errorf("size %d: features %v, want %v; of the size before: %v", size, got.Instances, want, before)
		}
		before = got.Instances
	}
}

// writePictures writes two bags of one image each.
func writePictures(t *testing.T, dir string) {
	t.Helper()
	for i, class := range []string{"cat", "dog"} {
		m := image.NewRGBA(image.Rect(0, 0, 16, 16))
		for at := range 256 {
			m.SetRGBA(at%16, at/16, color.RGBA{uint8(at), uint8(at * at), uint8(100 * i), 255})
		}
		path := filepath.Join(dir, class, "1", "a.png")
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := png.Encode(f, m); err != nil {
			t.Fatal(err)
		}
	}
}
