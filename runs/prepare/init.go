// Training that starts from the parameters of another model: train.init and the conditions under which they fit.

package prepare

import (
	"slices"
	"strings"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/bagfile"
	"github.com/miplc/miplc/export"
	"github.com/miplc/miplc/internal/contract"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/fileio"
	"github.com/miplc/miplc/language"
)

// withInit returns a spec whose train.init contains the hash of its file, so that the run and its
// checkpoints identify the parameters with which they started.
func withInit(spec *language.Spec, folder bagfile.Folder) (*language.Spec, error) {
	from := spec.Train.Init
	if from.Model.V == "" || spec.Learner != nil {
		return spec, nil
	}
	path, err := FindData(from.Model, folder)
	if err != nil {
		return nil, err
	}
	sum, err := fileio.SHA256(path)
	if err != nil {
		return nil, err
	}
	if want := from.SHA256; want.V != "" && !strings.EqualFold(want.V, sum) {
		return nil, diag.Invalid(diag.Errorf(want.Pos, "%s is not the model that train.init.sha256 states: its SHA-256 is %s",
			from.Model.V, sum).WithNote("use the model with the expected hash, or leave train.init.sha256 out"))
	}
	resolved := *spec
	resolved.Train.Init.SHA256.V = sum
	return &resolved, nil
}

// InitialParameters returns the parameters of the model that train.init names, nil without it. It is an error if the
// model was trained on the same classes or features as set, but in another order. set is nil if it is unknown.
func InitialParameters(p *compile.Program, set *data.Dataset, folder bagfile.Folder) (map[string][]float32, error) {
	if p.Spec.Train.Init.Model.V == "" || p.Spec.Learner != nil {
		return nil, nil
	}
	values, err := parametersFrom(&p.Spec.Train.Init, p, set, folder)
	return values, located(p.Spec, err)
}

// parametersFrom returns the initial parameters of a program.
func parametersFrom(from *language.Init, p *compile.Program, set *data.Dataset, folder bagfile.Folder) (
	map[string][]float32, error) {
	path, err := FindData(from.Model, folder)
	if err != nil {
		return nil, err
	}
	model, meta, err := contract.Read(path)
	if err != nil {
		return nil, diag.Invalid(diag.Errorf(from.Model.Pos, "%v", err))
	}
	values, missing, err := export.Parameters(model, p)
	if err != nil {
		return nil, diag.Invalid(diag.Errorf(from.Model.Pos, "%s: %v", path, err))
	}
	var names []string
	for _, q := range p.Params {
		names = append(names, q.Name)
	}
	for _, except := range from.Except.V {
		if !slices.Contains(names, except.V) {
			return nil, diag.Invalid(diag.Errorf(except.Pos, "train.init.except: the model has no parameter %s", except.V).
				SuggestOr(diag.Suggest(except.V, names), "it has %s", diag.Words(names)))
		}
		delete(values, except.V)
		missing = slices.DeleteFunc(missing, func(m export.Missing) bool { return m.Name == except.V })
	}
	if len(missing) > 0 {
		return nil, diag.Invalid(unfit(from, missing, len(names)))
	}
	return values, checkOrder(from, set, meta)
}

// maxDiffering is the number of parameters that an error lists.
const maxDiffering = 10

// unfit returns the error for a model some of whose parameters differ from those of the spec.
func unfit(from *language.Init, missing []export.Missing, of int) diag.Diagnostic {
	d := diag.Errorf(from.Model.Pos, "%s does not fit the model: %s of %d differ", from.Model.V, diag.Count(len(missing),
		"parameter"), of)
	var differ []string // with those that train.init.except has already
	for _, except := range from.Except.V {
		differ = append(differ, except.V)
	}
	for i, m := range missing {
		if i < maxDiffering {
			d = d.WithNote("%s", m.Text)
		}
		differ = append(differ, m.Name)
	}
	if len(missing) > maxDiffering {
		return d.WithNote("and %d more", len(missing)-maxDiffering)
	}
	return d.WithNote("to start these with random numbers: init: {model: %s, except: [%s]}", from.Model.V,
		strings.Join(differ, ", "))
}

// checkOrder returns an error if the model that train.init names was trained on the same classes or
// features as the data, but in another order: its parameters would be used for the wrong ones. Without
// the parameters of train.init.except, the order of the classes may not matter.
func checkOrder(from *language.Init, set *data.Dataset, meta *contract.Metadata) error {
	if set == nil {
		return nil
	}
	differ := func(what, todo string, model, data []string) error {
		if slices.Equal(model, data) || !slices.Equal(slices.Sorted(slices.Values(model)),
			slices.Sorted(slices.Values(data))) {
			return nil
		}
		return diag.Invalid(diag.Errorf(from.Model.Pos, "%s has the %s of the data in another order: %s; the data has %s",
			from.Model.V, what, diag.Words(model), diag.Words(data)).WithNote("%s", todo))
	}
	if len(from.Except.V) == 0 {
		if err := differ("classes", "give the data the order of the model, in a CSV file with a first line # classes:, or "+
			"start the classifier with random numbers with train.init.except", meta.Classes, set.AllClassNames()); err != nil {
			return err
		}
	}
	if meta.Columns == nil || meta.Encoder != nil {
		return nil
	}
	return differ("features", "give the columns of the data the order of the model", meta.Columns.Features,
		set.FeatureNames)
}
