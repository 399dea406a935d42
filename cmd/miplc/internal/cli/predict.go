// The command miplc predict.

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/miplc/miplc/cmd/miplc/internal/console"
	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/bagfile"
	"github.com/miplc/miplc/data/formats"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/fileio"
	"github.com/miplc/miplc/runs"
	"github.com/miplc/miplc/runs/prepare"
	"github.com/miplc/miplc/runtime"
)

// predictOptions are the options of the command.
type predictOptions struct {
	Reading bagfile.Reading
	Console *console.Console
	Model   string
	Data    []string // one dataset, or images, folders and archives
	Bag     string   // name of the only bag, or number, from 1, if the bags have no names; empty: all
	Group   string   // column with the groups of the bags; empty: that of the model, if the data has it
	Output  string   // path of a CSV file; empty: none
	Detail  bool     // print all measures
	Force   bool
	Top     int // instances with the highest attention to list; 0: one
	Heatmap heatmaps
	Backend backendFlags
}

// bagResult is the prediction of one bag.
type bagResult struct {
	Number int    `json:"bag"`             // from 1
	Name   string `json:"name,omitempty"`  // of the bag, if the dataset has names
	Part   string `json:"part,omitempty"`  // of the split of the model, if it was trained on this dataset: train or test
	Group  string `json:"group,omitempty"` // e.g. the patient, if the dataset has groups
	True   *int   `json:"true,omitempty"`  // true label, if it is known and the model predicts one label per bag
	// TrueLabels are the true labels, if they are known and the model predicts any number of them.
	TrueLabels []int `json:"true_labels,omitzero"`
	runtime.Prediction
	Top      []topInstance `json:"top,omitempty"`       // with --top
	ClassTop []classTop    `json:"class_top,omitempty"` // with --top, if the model has an attention of each class

	labels []uint8     // true labels [classes], nil if they are unknown
	files  []data.File // that have the instances
}

// predictResult is the output of the command.
type predictResult struct {
	Model    string        `json:"model"`
	Data     string        `json:"data"`
	Backend  string        `json:"backend"`
	Classes  []string      `json:"classes"`
	Bags     []bagResult   `json:"bags"`
	scoreRow               // of all bags, without measures if Parts are known
	Parts    []predictPart `json:"parts,omitempty"`
	Output   string        `json:"output,omitempty"`

	Heatmaps    string `json:"heatmaps,omitempty"` // folder
	noThumbnail int    // heatmaps that lack the thumbnail

	notes     []string // about the bags and their parts
	threshold float64  // of the model; 0: it predicts one label per bag
	groupName string   // kind of the groups of the bags, such as patient
}

// setTrue sets the true labels [classes] of a bag; nil: unknown.
func (b *bagResult) setTrue(labels []uint8) {
	b.labels = labels
	if labels == nil {
		return
	}
	list := []int{}
	for c, in := range labels {
		if in == 1 {
			list = append(list, c)
		}
	}
	if b.Labels != nil {
		b.TrueLabels = list
	} else {
		b.True = &list[0]
	}
}

// predictPart is the score of one part of the split on which the model was trained.
type predictPart struct {
	Name string `json:"part"` // train or test
	Bags int    `json:"bags"`
	scoreRow
}

// predictCommand returns the command.
func predictCommand(con *console.Console) *cobra.Command {
	o := &predictOptions{Console: con}
	cmd := &cobra.Command{
		Use:        "predict MODEL DATA...",
		SuggestFor: []string{"test", "eval", "evaluate", "infer", "inference", "score", "classify"},
		Short:      "Predict the bags of a dataset with a trained model",
		Long: `Predict the bags of a dataset (` + formats.Readable().List() + `) with a model.onnx or the folder
of a run. For each bag, the command prints the predicted class with its probability, the true
label if the dataset has it, and the instance with the highest attention. If there are true
labels, the accuracy and other measures follow (docs/measures.md defines them). Bags and
instances are counted from 1. If DATA contains the bags of the training, the column part
marks training and test bags, even if their labels have changed.

If the model was trained on a file of miplc data bags, DATA may also be images, folders or
zip archives of images: each image is a bag, and the model cuts it into instances like those
of the training. For a model with an encoder that was trained on whole images, DATA is a
folder (or a zip archive) of bags, a table of image files, or images, which are one bag.

Features and classes are matched by name; extra columns of a CSV file are ignored. If the
model does not contain the names of its features, all columns count as features in their
order; --ignore-columns and --feature-columns apply only then. A CSV file needs no labels and
no candidates, and no column bag if it contains a single bag. If the features do not fit the
model, the command exits with code 1 and writes no file. Existing files are overwritten only
with --force.`,
		Example: `  miplc predict run/model.onnx bags.npz
  miplc predict run x.jpg y.jpg
  miplc predict run bags.npz --bag 3
  miplc predict run bags.npz --measures
  miplc predict run slides.csv --heatmap figures --top 5
  miplc predict run bags.csv --backend onnx-go -o predictions.csv`,
		Args: console.Args(console.Arg("MODEL", &o.Model), console.Arguments("DATA", &o.Data)),
		RunE: func(cmd *cobra.Command, _ []string) error { return runPredict(cmd.Context(), o) },
	}
	console.ReadingFlags(cmd.Flags(), &o.Reading)
	console.BagFlag(cmd.Flags(), &o.Bag, "the only bag to predict: its name or, if the bags have no names, its number "+
		"from 1 (default: all)")
	cmd.Flags().StringVarP(&o.Output, "output", "o", "", "CSV file for the predictions")
	cmd.Flags().BoolVar(&o.Detail, "measures", false, "print all measures, the table of classes, the confusion matrix "+
		"and the calibration")
	cmd.Flags().StringVar(&o.Group, "group-column", "", "column with groups of bags, e.g. patient: all measures follow "+
		"for groups too, with the mean probabilities of their bags (default: data.split.group of the spec)")
	cmd.Flags().BoolVar(&o.Force, "force", false, "overwrite an existing CSV file")
	cmd.Flags().IntVar(&o.Top, "top", 0, "number of instances to list for each bag, those with the highest attention "+
		"(default: 1; for a single bag up to 20)")
	console.Limit(cmd.Flags(), 1, console.Most, "top")
	cmd.Flags().StringVar(&o.Heatmap.Dir, "heatmap", "", "folder for figures (SVG and PNG) of the attention over the "+
		"coordinates of the instances")
	cmd.Flags().StringVar(&o.Heatmap.Class, "heatmap-class", "", "class whose attention is drawn, if the model has an "+
		"attention of each class (default: the predicted one)")
	cmd.Flags().Float64Var(&o.Heatmap.Max, "heatmap-max", 0, "common scale of the colors: the attention with the last "+
		"color, in multiples of the mean of the bag, e.g. 20 (default: a scale for each bag)")
	console.Limit(cmd.Flags(), console.AboveZero, console.Most, "heatmap-max")
	cmd.Flags().StringVar(&o.Heatmap.Thumbnails, "thumbnails", "",
		"folder of images named after the bags, drawn below the attention (default: the images in DATA that the model cuts)")
	cmd.Flags().Float64Var(&o.Heatmap.Scale, "thumbnail-scale", 0,
		"units of the coordinates per pixel of a thumbnail (default: a thumbnail covers all instances)")
	console.Limit(cmd.Flags(), console.AboveZero, console.Most, "thumbnail-scale")
	o.Backend.Add(cmd)
	return cmd
}

// name names the data in messages.
func (o *predictOptions) name() string { return strings.Join(o.Data, " ") }

// runPredict predicts and prints.
func runPredict(ctx context.Context, o *predictOptions) error {
	if err := o.Heatmap.check(); err != nil {
		return err
	}
	path := modelPath(o.Model)
	inputs := append([]string{path}, o.Data...)
	var out *fileio.File
	if o.Output != "" {
		var err error
		if out, err = o.Console.Create(o.Output, fileio.WriteOptions{Force: o.Force,
			Inputs: append(inputs, o.Backend.Library)}); err != nil {
			return err
		}
		defer out.Discard()
	}
	r, set, err := o.predict(ctx, path)
	if err != nil {
		return err
	}
	for _, note := range r.notes {
		o.Console.Notef("%s", note)
	}
	if o.Heatmap.Dir != "" {
		if err := o.Heatmap.write(r, set, o.Data, inputs); err != nil {
			return err
		}
	}
	if out != nil {
		if err := r.writeCSV(out); err != nil {
			return err
		}
		if err := out.Commit(); err != nil {
			return err
		}
		r.Output = o.Output
	}
	return o.Console.Result(r, r.print)
}

// predict opens the model at a path and the dataset, and predicts.
func (o *predictOptions) predict(ctx context.Context, path string) (*predictResult, *data.Dataset, error) {
	model, err := o.Backend.Open(o.Model, runtime.WithMaxInstances(math.MaxInt))
	if err != nil {
		return nil, nil, err
	}
	defer func() { model.Close() }()
	set, bags, err := o.openBags(ctx, model.Info())
	if err != nil {
		return nil, nil, err
	}
	parts, err := runs.PartsOf(path, model.Info().Split, set)
	unknown := (*runs.UnknownSplitError)(nil)
	if err != nil && !errors.As(err, &unknown) {
		return nil, nil, err
	}
	// Only the metadata of the open model say how to read the data, and only the data say whether bags are large.
	if set.OnDisk() {
		options, undo := runs.OptionsFor(set)
		defer undo()
		other, err := o.Backend.Open(o.Model, options...)
		if err != nil {
			return nil, nil, err
		}
		model.Close()
		model = other
	}
	r, err := o.predictBags(ctx, model, set, bags, parts)
	if err == nil && unknown != nil {
		r.notes = append(r.notes, fmt.Sprintf("%v: the accuracy includes training bags; give the folder of the run "+
			"instead of the model file to separate them", unknown))
	}
	return r, set, err
}

// openBags opens the dataset for a model and returns the bags to predict.
func (o *predictOptions) openBags(ctx context.Context, info runtime.Info) (*data.Dataset, []int, error) {
	if err := o.Heatmap.checkClass(info); err != nil {
		return nil, nil, err
	}
	o.Reading.Columns.Roles.Group = o.Group
	set, err := prepare.OpenForModel(ctx, &info.Metadata, o.Data, o.Reading)
	if err != nil {
		return nil, nil, err
	}
	if o.Group != "" && set.GroupName != o.Group {
		return nil, nil, diag.Errorf(diag.Pos{File: o.name()}, "--group-column: the bags have no groups %q", o.Group).
			WithNote("a CSV file has a column with the group of each bag, an .npz file its array groups")
	}
	bags := set.AllBags()
	if o.Bag != "" {
		i, err := set.Find(diag.Pos{File: o.name()}, o.Bag)
		if err != nil {
			return nil, nil, err
		}
		bags = []int{i}
	}
	return set, bags, o.Heatmap.checkCoords(set, bags, o.name())
}

// predictBags predicts some bags of a dataset. parts has the part of the split of the model for each bag of the
// dataset; nil: unknown.
func (o *predictOptions) predictBags(ctx context.Context, model *runtime.Model, set *data.Dataset, bags []int,
	parts []string) (*predictResult, error) {
	info := model.Info()
	r := &predictResult{Model: o.Model, Data: o.name(), Backend: info.Backend, Classes: info.Classes}
	predict, err := runs.PredictorOf(set, model)
	if err != nil {
		return nil, fmt.Errorf("%s: bag %d: %w", o.name(), bags[0]+1, err)
	}
	labels, err := set.TrueMasksIn(info.Classes)
	if err != nil {
		r.notes = append(r.notes, fmt.Sprintf("%v: the measures leave such bags out", err))
	}
	for _, i := range bags {
		p, err := predict(ctx, i)
		if err != nil {
			return nil, fmt.Errorf("%s: bag %d: %w", o.name(), i+1, err)
		}
		bag := bagResult{Number: i + 1, Prediction: p, files: set.Files(i)}
		if o.Top > 0 {
			bag.Top = topOf(p.Attention, bag.files, o.Top)
			for c, attention := range p.ClassAttention {
				bag.ClassTop = append(bag.ClassTop, classTop{info.Classes[c], topOf(attention, bag.files, o.Top)})
			}
		}
		bag.setTrue(labels[i])
		if set.BagNames != nil {
			bag.Name = set.BagNames[i]
		}
		bag.Group = set.GroupOf(i)
		if parts != nil {
			bag.Part = parts[i]
		}
		r.Bags = append(r.Bags, bag)
	}
	r.groupName = cmp.Or(set.GroupName, "group")
	if info.Threshold != nil {
		r.threshold = *info.Threshold
	}
	r.scores(parts != nil, set.CandidateMasksIn(info.Classes), o.Detail)
	return r, nil
}

// scores computes the measures: of each part of the split, or of all bags together if the
// model was not trained on any of them. candidates are those of all bags of the dataset.
func (r *predictResult) scores(split bool, candidates func(bag int) []uint8, detail bool) {
	rows := map[string]*scoreRow{"": &r.scoreRow} // by part
	if split {
		r.Parts = []predictPart{{Name: data.TrainPart}, {Name: data.ValidationPart}, {Name: data.TestPart}}
		if !slices.ContainsFunc(r.Bags, func(b bagResult) bool { return b.Part == data.ValidationPart }) {
			r.Parts = slices.Delete(r.Parts, 1, 2)
		}
		clear(rows)
		for i := range r.Parts {
			rows[r.Parts[i].Name] = &r.Parts[i].scoreRow
		}
	}
	for _, b := range r.Bags {
		if b.labels != nil {
			r.Known++ // also of bags in no part
		}
		if s := rows[b.Part]; s != nil {
			s.bags.Threshold = r.threshold
			s.bags.Add(b.Probabilities, b.labels, candidates(b.Number-1))
			s.bags.AddGroup(b.Group)
		}
	}
	for _, s := range rows {
		s.compute(r.Classes, r.groupName, detail)
	}
	for i := range r.Parts {
		r.Parts[i].Bags = r.Parts[i].bags.Bags()
	}
}

// print prints one bag in detail, or one line per bag.
func (r *predictResult) print(w io.Writer) {
	switch {
	case r.Output != "":
		diag.Fprintf(w, "predictions of %s written to %s\n", diag.Count(len(r.Bags), "bag"), r.Output)
	case len(r.Bags) == 1:
		r.printBag(w, r.Bags[0])
	default:
		r.printTable(w)
	}
	if r.Heatmaps != "" {
		diag.Fprintf(w, "heatmaps of %s written to %s\n", diag.Count(len(r.Bags), "bag"), r.Heatmaps)
	}
	if r.noThumbnail > 0 {
		diag.Fprintf(w, "%s without a thumbnail: no image is named after the bag\n", diag.Count(r.noThumbnail, "heatmap"))
	}
	if len(r.Bags) == 1 {
		return
	}
	if r.Parts == nil {
		r.scoreRow.print(w, "")
	}
	for _, p := range r.Parts {
		p.print(w, map[string]string{data.TrainPart: "training ", data.ValidationPart: "validation ",
			data.TestPart: "test "}[p.Name])
	}
}
