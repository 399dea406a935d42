// Bags from images by a generator.

package imagebags

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/resources"
)

// Cutting says how Bags cuts images into instances.
type Cutting struct {
	Generator Generator
	Resize    Size // size of every image before the generator runs
	Workers   int  // number of images processed at once; 0: one per processor
	Limits    Limits
	// Progress, if not nil, is called with the number of finished images. Calls are not concurrent.
	Progress func(done, total int)
}

// Bags makes one bag from each image. Bags are named after the images and in the order of Sources;
// the class of the image is the true label and the only candidate. The result depends on the images
// and the settings, not on Workers. All images that cannot be read are reported together, by name.
//
// Images without a class (see Image) give bags without classes and candidates, which a model can
// predict. generate.AttachCandidates adds candidates. A source has either only images with a class or only images
// without.
func Bags(ctx context.Context, s *Sources, o Cutting) (*data.Dataset, error) {
	if err := errors.Join(o.Generator.Check(), o.Resize.Check()); err != nil {
		return nil, err
	}
	classes, err := classesOf(s.Images)
	if err != nil {
		return nil, err
	}
	bags, err := generate(ctx, s.Images, o)
	if err != nil {
		return nil, err
	}
	dim, shape := o.Generator.Dim(), []int{o.Generator.Dim()}
	if p, ok := o.Generator.(locator); ok {
		shape = p.Shape()
	}
	d := &data.Dataset{
		Name: o.Generator.Name(), Shape: shape, Offsets: make([]int, 1, len(bags)+1),
		Classes: len(classes), ClassNames: classes, Candidates: make([]uint8, len(bags)*len(classes)),
		Labels: make([]int, len(bags)), BagNames: make([]string, len(bags)), Generator: Recipe{o.Generator,
			o.Resize}.String(),
	}
	if len(shape) == 1 {
		d.FeatureNames = Recipe{o.Generator, o.Resize}.FeatureNames()
	}
	numbers := 0
	for _, b := range bags {
		numbers += len(b.instances)
	}
	d.Instances = make([]float32, 0, numbers)
	for i, b := range bags {
		d.Instances = append(d.Instances, b.instances...)
		d.Coords = append(d.Coords, b.coords...)
		d.Offsets = append(d.Offsets, len(d.Instances)/dim)
		bags[i] = bag{}
		d.BagNames[i], d.Labels[i] = s.Images[i].Name, -1
		if len(classes) > 0 {
			d.Labels[i], _ = slices.BinarySearch(classes, s.Images[i].Class)
			d.CandidateMask(i)[d.Labels[i]] = 1
		}
	}
	return d, nil
}

// classesOf lists the classes in alphabetical order, or none if no image is in a folder.
func classesOf(images []Image) ([]string, error) {
	var classes []string
	for _, m := range images {
		if len(classes) == 0 || classes[len(classes)-1] != m.Class {
			classes = append(classes, m.Class)
		}
	}
	switch {
	case len(classes) == 1 && classes[0] == "":
		return nil, nil
	case len(classes) > 0 && classes[0] == "":
		return nil, diag.Errorf(diag.Pos{File: images[0].path}, "the image lies in no folder, but others do; the folder "+
			"names the class")
	case len(classes) == 1:
		return nil, diag.Errorf(diag.Pos{}, "all images are of the class %q; at least 2 classes are needed", classes[0]).
			WithNote("the folder right above an image is its class: one sub-folder a class is needed")
	}
	return classes, nil
}

// generate runs the generator on the images in parallel.
func generate(ctx context.Context, images []Image, o Cutting) ([]bag, error) {
	bags, faults := make([]bag, len(images)), make([]error, len(images))
	var lock sync.Mutex
	done := 0
	resources.Each(len(images), o.Workers, func(i int) {
		if ctx.Err() != nil {
			return
		}
		pixels, err := images[i].Read(o.Resize, o.Limits)
		if err == nil {
			bags[i].instances, err = o.Generator.Bag(pixels)
		}
		if p, ok := o.Generator.(locator); ok && err == nil {
			bags[i].coords = p.Coords(pixels)
		}
		faults[i] = err
		lock.Lock()
		defer lock.Unlock()
		done++
		if o.Progress != nil {
			o.Progress(done, len(images))
		}
	})
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return bags, report(images, faults)
}

// bag is what a generator makes of an image.
type bag struct {
	instances []float32
	coords    []float32 // nil unless the generator is a locator
}

// report lists the images that gave no bag, in order.
func report(images []Image, faults []error) error {
	var list diag.List
	for i, err := range faults {
		if err != nil {
			list.Add(diag.Errorf(diag.Pos{File: images[i].path}, "%v", err))
		}
	}
	return list.Err()
}

// AddFalseCandidates gives every bag r false positive labels in addition to the true one, drawn
// uniformly from the other classes. The draw depends only on the seed and the name of the bag, so
// that the datasets of all generators get the same candidates.
func AddFalseCandidates(d *data.Dataset, r int, seed uint64) error {
	if r < 0 || r >= d.Classes {
		return fmt.Errorf("%s cannot be drawn with %s; give 0 to %d", diag.Count(r, "false positive label"),
			diag.Count(d.Classes, "class"), d.Classes-1)
	}
	for i, label := range d.Labels {
		if label < 0 {
			return fmt.Errorf("the image %s has no true label to draw false ones for", d.BagNames[i])
		}
		random := ndarray.NewStream(seed, "candidates:"+d.BagNames[i])
		copy(d.CandidateMask(i), data.DrawCandidates(random, label, d.Classes, r))
	}
	return nil
}
