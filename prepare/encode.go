package prepare

import (
	"context"
	"fmt"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/bagfile"
	"github.com/miplc/miplc/encoder"
	"github.com/miplc/miplc/export/contract"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/language/schema"
)

// openImages opens the images of a spec with an encoder, and reads the encoder.
func openImages(spec *language.Spec, folder bagfile.Folder) (*encoder.Images, error) {
	e := &spec.Data.Encoder
	file, err := find(spec, e.File, folder)
	if err != nil {
		return nil, err
	}
	path, err := find(spec, spec.Data.Set, folder)
	if err != nil {
		return nil, err
	}
	read, err := encoder.Read(file, e.Output.V, contract.EncoderInput{
		Size: e.Size.V, Mean: valuesOr(e.Mean, 0), Std: valuesOr(e.Std, 1), Order: e.Order.V,
	})
	if err != nil {
		return nil, err
	}
	set, err := encoder.OpenImages(path, &read.Meta, readingOf(spec, folder))
	if err != nil {
		return nil, err
	}
	return &encoder.Images{Encoder: read, Set: set}, nil
}

// valuesOr returns a number for each color channel.
func valuesOr(list schema.Reals, otherwise float64) []float64 {
	if len(list.V) == 0 {
		return []float64{otherwise, otherwise, otherwise}
	}
	return list.V
}

// encode computes the features of images.
func encode(images *encoder.Images, folder bagfile.Folder) (*data.Dataset, error) {
	return images.Encode(context.Background(), images.Set, folder.Encoding)
}

// encoderKey distinguishes encoders of specs.
func encoderKey(spec *language.Spec) string {
	e := &spec.Data.Encoder
	return fmt.Sprintf("%q %q %d %v %v %q", e.File.V, e.Output.V, e.Size.V, e.Mean.V, e.Std.V, e.Order.V)
}
