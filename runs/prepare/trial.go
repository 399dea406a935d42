// Package prepare turns specs into trials: it finds, opens and splits their data, compiles them, and checks what can be
// checked before training. Errors of a spec are distinct from those of its data.
package prepare

import (
	"context"
	"slices"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/compile/encoder"
	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/bagfile"
	"github.com/miplc/miplc/data/imagebags"
	"github.com/miplc/miplc/internal/contract"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/language/schema"
	"github.com/miplc/miplc/train"
)

// Trial compiles a spec for a dataset. If they do not fit each other the error is a *diag.InvalidError. Too
// little memory is another error.
func Trial(spec *language.Spec, set *data.Dataset, split *data.Split) (*train.Trial, error) {
	sig, err := compile.SignatureOf(spec, set.Shape, set.Classes)
	if err != nil {
		return nil, diag.Invalid(err)
	}
	p, err := compile.Compile(spec, sig)
	if err != nil {
		return nil, diag.Invalid(err)
	}
	trial := &train.Trial{Program: p, Data: set, Split: split}
	if err := trial.CheckValidation(); err != nil {
		return nil, diag.Invalid(err)
	}
	return trial, CheckStep("training", p, set)
}

// Trials opens the datasets of specs, each once, and returns their trials. Files are searched in
// the working directory and in folder. encode may be nil if no dataset has images.
func Trials(list []*language.Spec, folder bagfile.Folder, encode Encode) ([]*train.Trial, error) {
	o := &opener{folder: folder, encode: encode, opened: map[string]*Bags{}}
	trials := make([]*train.Trial, len(list))
	for i, spec := range list {
		var err error
		if trials[i], err = o.trial(spec); err != nil {
			return nil, located(spec, err)
		}
	}
	return trials, nil
}

// opener makes trials, and opens each dataset once.
type opener struct {
	folder bagfile.Folder
	encode Encode
	opened map[string]*Bags // by the identity of the keys that say how bags are read
}

// trial returns the trial of a spec.
func (o *opener) trial(spec *language.Spec) (*train.Trial, error) {
	spec = withColumns(spec, o.folder.Reading.Columns)
	if err := spec.CheckValidation(); err != nil {
		return nil, diag.Invalid(err)
	}
	spec, err := withInit(spec, o.folder)
	if err != nil {
		return nil, err
	}
	set, err := o.bags(spec)
	if err != nil {
		return nil, err
	}
	split, err := OpenSplit(&spec.Data.Split, set.Dataset, o.folder)
	if err != nil {
		return nil, err
	}
	trial, err := Trial(spec, set.Dataset, split)
	if err != nil {
		return nil, err
	}
	trial.Images = set.Images
	trial.Init, err = InitialParameters(trial.Program, set.Dataset, o.folder)
	return trial, err
}

// withColumns returns a spec that also has the columns of the command line, so that its run needs no
// flags to be resumed. Files without columns need none.
func withColumns(spec *language.Spec, flags bagfile.Columns) *language.Spec {
	if !spec.HasColumns() {
		return spec
	}
	resolved := *spec
	add := func(to *schema.Strs, names []string) {
		var more []schema.Str
		for _, name := range names {
			if !slices.ContainsFunc(to.V, func(had schema.Str) bool { return had.V == name }) { // resumed with equal flags
				more = append(more, schema.Str{V: name})
			}
		}
		to.V = slices.Concat(more, to.V)
	}
	c := &resolved.Data.Columns
	add(&c.Ignore, flags.Ignore)
	add(&c.Coordinates, flags.Coordinates)
	add(&c.Features, flags.Features)
	return &resolved
}

// bags opens the dataset of a spec, and computes its features if the spec has an encoder.
func (o *opener) bags(spec *language.Spec) (*Bags, error) {
	d := &spec.Data
	from := (&language.Spec{Data: language.Data{Set: d.Set, Generated: d.Generated, SHA256: d.SHA256, Labels: d.Labels,
		Columns: d.Columns, Encoder: d.Encoder}}).Identity()
	if had := o.opened[from]; had != nil {
		return had, nil
	}
	set, images, err := openData(spec, o.folder)
	if err != nil {
		return nil, err
	}
	bags := &Bags{Dataset: set}
	if images != nil {
		if bags, err = o.encode(images); err != nil {
			return nil, err
		}
	}
	o.opened[from] = bags
	return bags, nil
}

// Bags is a dataset of features.
type Bags struct {
	*data.Dataset
	Images *encoder.Images // from which an encoder computed the features; nil: none
}

// OpenImages reads the encoder of a spec and opens the dataset of images at path.
func OpenImages(e *language.Encoder, path string, reading bagfile.Reading, folder bagfile.Folder) (*encoder.Images,
	error) {
	file, err := FindData(e.File, folder)
	if err != nil {
		return nil, err
	}
	input := contract.EncoderInput{Size: e.Size.V, Mean: valuesOr(e.Mean, 0), Std: valuesOr(e.Std, 1), Order: e.Order.V}
	read, err := encoder.Read(file, e.Output.V, input)
	if err != nil {
		return nil, err
	}
	set, err := imagebags.OpenTiles([]string{path}, tileForm(&read.Meta), reading)
	if err != nil {
		return nil, err
	}
	return &encoder.Images{Encoder: read, Set: set}, nil
}

// tileForm returns the form in which an encoder gets images.
func tileForm(e *contract.Encoder) imagebags.TileForm {
	return imagebags.TileForm{Side: e.Size, Encoder: e.Identity()}
}

// valuesOr returns a number for each colour channel.
func valuesOr(list schema.Floats, otherwise float64) []float64 {
	if len(list.V) == 0 {
		return []float64{otherwise, otherwise, otherwise}
	}
	return list.V
}

// Encode computes the features of images.
type Encode func(images *encoder.Images) (*Bags, error)

// EncodeWith returns an Encode that ends with ctx. progress is that of encoder.Encode.
func EncodeWith(ctx context.Context, progress func(done, total int)) Encode {
	return func(images *encoder.Images) (*Bags, error) {
		set, err := images.Encode(ctx, images.Set, progress)
		return &Bags{set, images}, err
	}
}
