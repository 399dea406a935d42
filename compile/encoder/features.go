// Datasets of features, computed from images.

package encoder

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/imagebags"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/resources"
)

// Images is a dataset of images, which imagebags.OpenTiles opened, and its encoder.
type Images struct {
	*Encoder
	Set *data.Dataset
}

// Encode returns the features of a dataset of images, which imagebags.OpenTiles opened for the encoder. Images
// whose features are in the cache are not computed again. The features do not depend on the order of
// the images or the number of processors. progress, if not nil, is called with the number of finished images of those
// that are not in the cache. Calls are not concurrent.
func (e *Encoder) Encode(ctx context.Context, images *data.Dataset, progress func(done, total int)) (*data.Dataset,
	error) {
	d := *images
	d.Shape, d.Store = []int{e.Meta.Features}, nil
	values := float64(d.Offsets[d.Bags()]) * float64(e.Meta.Features)
	if err := resources.Memory().Check("encoding the images", 4*values, "use fewer images"); err != nil {
		return nil, err
	}
	d.Instances = make([]float32, int(values))
	cache, err := openCache(&e.Meta)
	if err != nil {
		return nil, err
	}
	j := &encoding{images: images, to: d.Instances, cache: cache, places: map[sum][]place{}, progress: progress}
	if err := j.find(); err != nil {
		return nil, err
	}
	if len(j.left) > 0 {
		err = j.run(ctx, e)
	}
	return &d, err
}

// encoding computes the features of a dataset.
type encoding struct {
	images   *data.Dataset
	to       []float32 // features of all instances
	cache    *cache
	left     []sum // images that are not in the cache, each once
	places   map[sum][]place
	progress func(done, total int)

	mu   sync.Mutex // guards done and the cache
	done int
}

// sum identifies an image.
type sum = [sha256.Size]byte

// place is an instance of a dataset.
type place struct{ bag, instance int }

// find copies the features that are in the cache, and finds the images whose features are not.
func (j *encoding) find() error {
	tiles := j.images.Store.(*imagebags.Tiles)
	for bag := range j.images.Bags() {
		for i := range j.images.Size(bag) {
			key := tiles.Sum(bag, i)
			if j.places[key] == nil {
				j.left = append(j.left, key)
			}
			j.places[key] = append(j.places[key], place{bag, i})
		}
	}
	cached := map[sum]bool{}
	err := j.cache.read(func(key sum, features []byte) {
		cached[key] = true
		j.set(key, ndarray.FromBytes[float32](features))
	})
	j.left = slices.DeleteFunc(j.left, func(key sum) bool { return cached[key] })
	return err
}

// set sets the features of an image.
func (j *encoding) set(key sum, features []float32) {
	for _, at := range j.places[key] {
		copy(j.to[(j.images.Offsets[at.bag]+at.instance)*len(features):], features)
	}
}

// run computes the features of images that are not in the cache. Each image is a separate run,
// so that its features have the same bits in every dataset. The processors and the available memory
// bound the number of parallel runs.
func (j *encoding) run(ctx context.Context, e *Encoder) error {
	s, err := e.Open()
	if err != nil {
		return err
	}
	defer s.Close()
	each := float64(e.bytes + 16*int64(j.images.Dim()))
	parallel := max(1, min(runtime.GOMAXPROCS(0), int(resources.Memory().Bytes/2/each)))
	errs := make([]error, len(j.left))
	var failed atomic.Bool
	resources.Each(len(j.left), parallel, func(i int) {
		if errs[i] = ctx.Err(); errs[i] == nil && !failed.Load() {
			errs[i] = j.encode(s, j.left[i])
		}
		if errs[i] != nil {
			failed.Store(true)
		}
	})
	flushed := j.cache.flush() // also after an error, which says more
	return cmp.Or(cmp.Or(errs...), flushed)
}

// encode computes the features of an image.
func (j *encoding) encode(s *Session, key sum) error {
	first := j.places[key][0]
	x := make([]float32, j.images.Dim())
	if err := j.images.ReadRange(x, first.bag, first.instance); err != nil {
		return err
	}
	features, err := s.Features(x, 1)
	if err != nil {
		return fmt.Errorf("bag %d, image %d: %w", first.bag+1, first.instance+1, err)
	}
	j.set(key, features)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.done++
	if j.progress != nil {
		j.progress(j.done, len(j.left))
	}
	return j.cache.put(key, features)
}
