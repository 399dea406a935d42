// The bags on which a trained model predicts: its metadata say how they are read.

package prepare

import (
	"cmp"
	"context"
	"fmt"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/bagfile"
	"github.com/miplc/miplc/data/formats"
	"github.com/miplc/miplc/data/imagebags"
	"github.com/miplc/miplc/internal/contract"
	"github.com/miplc/miplc/internal/diag"
)

// OpenForModel reads bags for a model: images, which it cuts if the model was trained on pieces of images, or a
// dataset.
func OpenForModel(ctx context.Context, m *contract.Metadata, paths []string, o bagfile.Reading) (*data.Dataset, error) {
	o = readingFor(m, o)
	switch images := imagebags.AreImages(paths); {
	case images && cuts(m):
		r, err := imagebags.ParseRecipe(m.Generator)
		if err != nil {
			return nil, fmt.Errorf("the model was trained on instances of another version of miplc: %w", err)
		}
		d, err := r.Open(ctx, paths, o)
		if err != nil || m.Encoder == nil {
			return d, err
		}
		return imagebags.OfPixels(d, tileForm(m.Encoder))
	case images && m.Encoder == nil:
		return nil, diag.Errorf(diag.Pos{File: paths[0]}, "images, but the model takes a file of features (%s)",
			formats.Readable().List()).
			WithNote("a model that was trained on a file of miplc data bags takes images, and so does one with data.encoder, " +
				"unless data.encoder.export is model")
	case !images && len(paths) > 1:
		return nil, diag.Errorf(diag.Pos{File: paths[1]}, "only images, folders and archives of images may be several; "+
			"give one file of bags")
	}
	var d *data.Dataset
	var err error
	if m.Encoder == nil {
		d, err = bagfile.OpenWith(paths[0], o)
	} else {
		d, err = imagebags.OpenTiles(paths, tileForm(m.Encoder), o)
	}
	if err != nil {
		return nil, err
	}
	return d, checkGenerator(paths[0], m, imagebags.RecipeOf(d))
}

// cuts reports whether a model cuts each image into the instances of a bag.
func cuts(m *contract.Metadata) bool {
	return m.Generator != "" && m.Generator != imagebags.WholeImages
}

// checkGenerator reports a dataset whose instances were made in another way than those of the training.
func checkGenerator(path string, m *contract.Metadata, have string) error {
	if have == "" || m.Generator == "" || have == m.Generator {
		return nil
	}
	describe := func(recipe string) string {
		if recipe == imagebags.WholeImages {
			return "whole images"
		}
		return fmt.Sprintf("the generator %q", recipe)
	}
	d := diag.Errorf(diag.Pos{File: path}, "the instances are %s, the model was trained on %s", describe(have),
		describe(m.Generator))
	if cuts(m) {
		return d.WithNote("give the images themselves, or their folder: the model cuts them")
	}
	return d.WithNote("give a folder with the images of a bag, or a table of such folders")
}

// readingFor returns the options for reading data for a model: its classes, its columns, so that
// features are found by name, and the kind of its labels.
func readingFor(m *contract.Metadata, o bagfile.Reading) bagfile.Reading {
	o.Columns.ModelClasses = m.Classes
	if m.Threshold != nil {
		o.Labels = bagfile.MultiLabels
	}
	if columns := m.Columns; columns != nil {
		o.Columns.ModelFeatures = columns.Features
		o.Columns.Roles = bagfile.Roles{Bag: columns.Bag, Label: columns.Label, Candidates: columns.Candidates,
			InstanceLabel: columns.InstanceLabel,
			Group:         cmp.Or(o.Columns.Roles.Group, columns.Group)}
		o.NoCandidates = columns.KnownLabels
		if len(o.Columns.Coordinates) == 0 {
			o.Columns.Coordinates = columns.Coordinates
		}
	}
	return o
}
