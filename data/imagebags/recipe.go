// Recipes: the way in which the instances of a model were cut from images, stored so that predictions cut images alike.

package imagebags

import (
	"context"
	"errors"
	"fmt"
	"image"
	"reflect"
	"slices"
	"strings"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/bagfile"
	"github.com/miplc/miplc/internal/diag"
)

// Recipe says how the instances of a bag are made from an image: the image is resized, then a generator
// cuts it. Datasets and models contain it as text.
type Recipe struct {
	Generator Generator
	Resize    Size // zero: the size of the image
}

// WholeImages is the text in place of a Recipe if each instance is an image file.
const WholeImages = "images"

// generators are all generators with their default settings.
var generators = []Generator{DefaultRow, DefaultSBN, DefaultKMeansSeg, DefaultSIFT, DefaultPatches}

// defaultOf returns the generator of a name with its default settings, nil if there is none.
func defaultOf(name string) Generator {
	if i := slices.IndexFunc(generators, func(g Generator) bool { return g.Name() == name }); i >= 0 {
		return generators[i]
	}
	return nil
}

// String returns the name of the generator, the size and the settings that are not the default, e.g.
// "patches resize=224x224 gray=true side=14".
func (r Recipe) String() string {
	text := r.Generator.Name()
	if r.Resize != (Size{}) {
		text += fmt.Sprintf(" resize=%dx%d", r.Resize.Width, r.Resize.Height)
	}
	v, standard := reflect.ValueOf(r.Generator), reflect.ValueOf(defaultOf(r.Generator.Name()))
	var settings []string
	for i := range v.NumField() {
		if !v.Field(i).Equal(standard.Field(i)) {
			settings = append(settings, fmt.Sprintf(" %s=%v", v.Type().Field(i).Tag.Get("setting"), v.Field(i)))
		}
	}
	slices.Sort(settings)
	return text + strings.Join(settings, "")
}

// ParseRecipe parses the text of a Recipe. The text may come from a file of somebody else.
func ParseRecipe(text string) (Recipe, error) {
	name, settings, _ := strings.Cut(text, " ")
	standard := defaultOf(name)
	if standard == nil {
		return Recipe{}, fmt.Errorf("the generator %q is not known; known are %s", name, diag.Words(Names))
	}
	r, v := Recipe{}, reflect.New(reflect.TypeOf(standard)).Elem()
	v.Set(reflect.ValueOf(standard))
	for _, setting := range strings.Fields(settings) {
		key, value, _ := strings.Cut(setting, "=")
		var err error
		if key == "resize" {
			_, err = fmt.Sscanf(value, "%dx%d", &r.Resize.Width, &r.Resize.Height)
		} else {
			err = set(v, key, value)
		}
		if err != nil {
			return Recipe{}, fmt.Errorf("the generator %q has the setting %q, which cannot be used", name, setting)
		}
	}
	r.Generator = v.Interface().(Generator)
	if err := r.Generator.Check(); err != nil {
		return Recipe{}, err
	}
	return r, r.Resize.Check()
}

// set sets the field of a generator with the tag key.
func set(v reflect.Value, key, value string) error {
	for i := range v.NumField() {
		if v.Type().Field(i).Tag.Get("setting") == key {
			_, err := fmt.Sscanln(value, v.Field(i).Addr().Interface())
			if err == nil && fmt.Sprint(v.Field(i)) != value {
				err = errors.New("not as String writes it")
			}
			return err
		}
	}
	return fmt.Errorf("no setting %q", key)
}

// RecipeOf returns the text of the Recipe of a dataset, WholeImages, or an empty text if it is unknown. The
// features of a CSV file of generated bags are named after the recipe.
func RecipeOf(d *data.Dataset) string {
	if d.Generator != "" || d.FeatureNames == nil {
		return d.Generator
	}
	text, ok := strings.CutSuffix(d.FeatureNames[0], " 1")
	if _, err := ParseRecipe(text); !ok || err != nil {
		return ""
	}
	return text
}

// FeatureNames names features after the recipe, so that a model refuses features of another one.
func (r Recipe) FeatureNames() []string {
	names := make([]string, r.Generator.Dim())
	for i := range names {
		names[i] = fmt.Sprintf("%s %d", r, i+1)
	}
	return names
}

// Open makes a bag of each image, for a model with the given classes. Sources are images, folders and
// archives. The folder of an image names its true class, if the model has this class.
func (r Recipe) Open(ctx context.Context, sources []string, o bagfile.Reading) (*data.Dataset, error) {
	s, err := FindImages(sources, Limits{})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	folders := make([]string, len(s.Images))
	for i, m := range s.Images {
		folders[i] = m.Class
	}
	s.ForgetClasses()
	d, err := Bags(ctx, s, Cutting{Generator: r.Generator, Resize: r.Resize})
	if err != nil {
		return nil, err
	}
	d.ClassNames, d.Classes = o.Columns.ModelClasses, len(o.Columns.ModelClasses)
	d.Candidates = slices.Repeat([]uint8{1}, d.Bags()*d.Classes)
	if o.Labels != bagfile.MultiLabels {
		for i, folder := range folders {
			if d.Labels[i] = slices.Index(d.ClassNames, folder); d.Labels[i] >= 0 {
				clear(d.CandidateMask(i))
				d.CandidateMask(i)[d.Labels[i]] = 1
			}
		}
	}
	if !data.AnyKnown(d.Labels) {
		d.Labels = nil
	}
	return d, o.Validate(d, strings.Join(sources, " "))
}

// Decode decodes an image file and returns its instances. reserve is called with the number of the instances
// before they are made.
func (r Recipe) Decode(content []byte, limits Limits, reserve func(instances int) error) ([]float32, error) {
	picture, err := decode(content, r.Resize, limits, nil)
	if err != nil {
		return nil, err
	}
	if err := reserve(r.most(picture)); err != nil {
		return nil, err
	}
	return r.Generator.Bag(picture)
}

// most returns an upper bound of the instances of an image.
func (r Recipe) most(m *image.RGBA) int {
	size := m.Bounds().Size()
	switch g := r.Generator.(type) {
	case Patches:
		return (size.X/g.step() + 1) * (size.Y/g.step() + 1)
	case SIFT:
		return (size.X/g.Step + 1) * (size.Y/g.Step + 1)
	case KMeansSeg:
		return g.MaxSegments
	case SBN:
		return g.Grid * g.Grid
	}
	return r.Generator.(Row).Grid
}
