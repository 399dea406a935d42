// From images to a dataset of features.

package encoder

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/bagfile"
	"github.com/miplc/miplc/data/imagebags"
	"github.com/miplc/miplc/internal/contract"
	"github.com/miplc/miplc/internal/memory"
	"github.com/miplc/miplc/internal/workers"
)

// Images is a dataset of images, which OpenImages opened, and its encoder.
type Images struct {
	*Encoder
	Set *data.Dataset
}

// OpenImages opens a dataset of images for an encoder, see imagebags.OpenTiles. It has the same hash
// as the features that Encode computes from it.
func OpenImages(paths []string, e *contract.Encoder, o bagfile.Reading) (*data.Dataset, error) {
	images, err := imagebags.OpenTiles(paths, e.Size, o)
	if err != nil {
		return nil, err
	}
	return sourced(images, e), nil
}

// OfPixels returns the dataset of images whose instances are the images of d, as OpenImages does for a file
// with d.
func OfPixels(d *data.Dataset, e *contract.Encoder) (*data.Dataset, error) {
	images, err := imagebags.OfPixels(d, e.Size)
	if err != nil {
		return nil, err
	}
	return sourced(images, e), nil
}

func sourced(images *data.Dataset, e *contract.Encoder) *data.Dataset {
	images.Source = "encoder " + e.Identity() + ", " + images.Source
	return images
}

// Encode returns the features of a dataset of images, which OpenImages opened. Images
// whose features are in the cache are not computed again. The features do not depend on the order of
// the images or the number of processors.
func (e *Encoder) Encode(images *data.Dataset, o bagfile.EncodeOptions) (*data.Dataset, error) {
	d := *images
	d.Shape, d.Store = []int{e.Meta.Features}, nil
	values := float64(d.Offsets[d.Bags()]) * float64(e.Meta.Features)
	if err := memory.Available().Check("encoding the images", 4*values, "use fewer images"); err != nil {
		return nil, err
	}
	d.Instances = make([]float32, int(values))
	j, err := e.newJob(images, d.Instances, o)
	if err != nil {
		return nil, err
	}
	defer j.cache.close()
	if len(j.left) > 0 {
		if err := j.run(cmp.Or(o.Context, context.Background()), e, o.Library); err != nil {
			return nil, err
		}
	}
	return &d, nil
}

// job computes the features of a dataset.
type job struct {
	images *data.Dataset
	tiles  *imagebags.Tiles
	dim    int
	to     []float32 // features of all instances
	cache  *cache
	left   []sum // images that are not in the cache, each once
	places map[sum][]place
	o      bagfile.EncodeOptions

	mu   sync.Mutex // guards done and the cache
	done int
}

// sum identifies an image.
type sum = [sha256.Size]byte

// place is an instance of a dataset.
type place struct{ bag, instance int }

func (e *Encoder) newJob(images *data.Dataset, to []float32, o bagfile.EncodeOptions) (*job, error) {
	cache, err := openCache(&e.Meta, o.Library)
	if err != nil {
		return nil, err
	}
	j := &job{images: images, tiles: images.Store.(*imagebags.Tiles), dim: e.Meta.Features, to: to, cache: cache,
		places: map[sum][]place{}, o: o}
	for bag := range images.Bags() {
		for i := range images.Size(bag) {
			key, at := j.tiles.Sum(bag, i), place{bag, i}
			if found, err := cache.get(key, j.row(at)); err != nil {
				cache.close()
				return nil, err
			} else if found {
				continue
			}
			if j.places[key] == nil {
				j.left = append(j.left, key)
			}
			j.places[key] = append(j.places[key], at)
		}
	}
	return j, nil
}

// row returns the features of an instance.
func (j *job) row(at place) []float32 {
	row := j.images.Offsets[at.bag] + at.instance
	return j.to[row*j.dim : (row+1)*j.dim]
}

// run computes the features of images that are not in the cache. Each image is a separate run,
// so that its features have the same bits in every dataset. The processors and the available memory
// bound the number of parallel runs.
func (j *job) run(ctx context.Context, e *Encoder, library string) error {
	s, err := e.Open(library)
	if err != nil {
		return err
	}
	defer s.Close()
	each := float64(e.bytes + 16*int64(j.images.Dim()))
	parallel := max(1, min(runtime.NumCPU(), int(memory.Available().Bytes/2/each)))
	errs := make([]error, len(j.left))
	var failed atomic.Bool
	workers.Each(len(j.left), parallel, func(i int) {
		if errs[i] = ctx.Err(); errs[i] == nil && !failed.Load() {
			errs[i] = j.encode(s, j.left[i])
		}
		if errs[i] != nil {
			failed.Store(true)
		}
	})
	return cmp.Or(cmp.Or(errs...), j.cache.flush())
}

// encode computes the features of an image.
func (j *job) encode(s *Session, key sum) error {
	places := j.places[key]
	x := make([]float32, j.images.Dim())
	if err := j.images.ReadRange(x, places[0].bag, places[0].instance); err != nil {
		return err
	}
	features, err := s.Features(x, 1)
	if err != nil {
		return fmt.Errorf("bag %d, image %d: %w", places[0].bag+1, places[0].instance+1, err)
	}
	for _, at := range places {
		copy(j.row(at), features)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.done++
	if j.o.Progress != nil {
		j.o.Progress(j.done, len(j.left))
	}
	return j.cache.put(key, features)
}
