// Features of images: an encoder computes them before training, so that models on features can use datasets of images.

package runs

import (
	"context"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/bagfile"
	"github.com/miplc/miplc/data/encoder"
	"github.com/miplc/miplc/internal/contract"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/language/schema"
)

// Bags is a dataset of features.
type Bags struct {
	*data.Dataset
	Images *encoder.Images // from which an encoder computed the features; nil: none
}

// OpenImages reads the encoder of a spec and opens the dataset of images at path.
func OpenImages(spec *language.Spec, path string, reading bagfile.Reading, folder bagfile.Folder) (*encoder.Images,
	error) {
	e := &spec.Data.Encoder
	file, err := find(spec, e.File, folder)
	if err != nil {
		return nil, err
	}
	read, err := encoder.Read(file, e.Output.V, contract.EncoderInput{
		Size: e.Size.V, Mean: valuesOr(e.Mean, 0), Std: valuesOr(e.Std, 1), Order: e.Order.V,
	})
	if err != nil {
		return nil, err
	}
	set, err := encoder.OpenImages([]string{path}, &read.Meta, reading)
	if err != nil {
		return nil, err
	}
	return &encoder.Images{Encoder: read, Set: set}, nil
}

// valuesOr returns a number for each color channel.
func valuesOr(list schema.Floats, otherwise float64) []float64 {
	if len(list.V) == 0 {
		return []float64{otherwise, otherwise, otherwise}
	}
	return list.V
}

// Encode computes the features of images.
type Encode func(images *encoder.Images) (*Bags, error)

// EncodeWith returns an Encode that ends with ctx. library and progress are those of encoder.Encode.
func EncodeWith(ctx context.Context, library string, progress func(done, total int)) Encode {
	return func(images *encoder.Images) (*Bags, error) {
		set, err := images.Encode(ctx, images.Set, library, progress)
		return &Bags{set, images}, err
	}
}
