// The language of experiments: every key of the file with its type, default, range and help.

package definition

import (
	"strings"
	"unicode/utf8"

	"github.com/miplc/miplc/data/formats"
	"github.com/miplc/miplc/data/generate"
	"github.com/miplc/miplc/data/measure"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/language/schema"
	"github.com/miplc/miplc/specs"
)

// Limits, so that a typing error does not cost hours or memory.
const (
	maxR         = 1000
	maxCount     = 1 << 30
	maxSplits    = 1000
	maxNameRunes = 60
	maxCells     = 100_000
	maxTrainings = 1_000_000
)

// Language is the language of experiments: every key with its type, default, range and
// documentation.
var Language = &schema.Dialect{
	Noun: "experiment", WithArticle: "an experiment",
	Start:        "an experiment starts with name: and has at least data: and learners:",
	About:        "Learners that are compared on datasets, r and splits, and the tables and figures of the results.",
	ShippedNames: specs.Experiments, Source: specs.Experiment, Rows: rows, Synonyms: language.Synonyms,
	Literal:   func(key string) bool { return key == "set" || key == "grid" || key == "vary" },
	Arguments: func(string) []schema.Row { return nil },
}

// ofName bounds the length of names, which appear in tables.
var ofName = schema.Closed(1, maxNameRunes)

var rows = schema.Fields[Experiment]([]schema.Row{
	{Name: "name", Required: true, In: ofName,
		Doc: "Name of the experiment. All results in a folder belong to one experiment of this name."},
	{Name: "description", Doc: "A line below the title of the report."},
	{Name: "reference", In: ofName, Doc: "Learner that the others are compared with by t-tests.", DefaultDoc: "the first"},
	{Name: "r", In: schema.Closed(0, maxR), Doc: "Values of r for datasets without their own.", DefaultDoc: "1"},
	{Name: "data", Required: true, Rows: dataRows, Doc: "Datasets, in the order of the tables."},
	{Name: "learners", Required: true, Rows: learnerRows, Doc: "Learners, in the order of the tables."},
	{Name: "splits", Rows: splitRows(), Doc: "Division into training and test bags."},
	{Name: "choose", Rows: chooseRows, Doc: "How each cell chooses a setting of a grid."},
	{Name: "attention", Rows: attentionRows, Doc: "Histograms of attention scores on the test bags."},
	{Name: "keep", Default: "results", Choices: []string{"results", "models"},
		Doc: "`models`: also write the run of every cell, with its checked ONNX file, to the folder `models/`."},
	{Name: "report", Rows: itemRows,
		Doc:        "Tables and figures of the report, in this order.",
		DefaultDoc: "all for which there are results, except `across` and `published`"},
})

var dataRows = []schema.Row{
	{Name: "name", Required: true, In: ofName, Doc: "Name of the dataset in tables and in this file."},
	{Name: "domain", Doc: "Domain of the bags, for the table of datasets."},
	{Name: "file",
		Doc: "Dataset file (" + formats.Readable().List() + "), or images for learners with `data.encoder`, as `data.set` " +
			"of a spec. With `{r}` in the name, which is replaced by r, there is one file for each r. Without `{r}`, the " +
			"candidate sets are those of the file, and r is not used."},
	{Name: "labels", Choices: []string{language.KnownLabels, language.MultiLabels, language.NoisyLabels},
		Doc: "Labels of `file`. `known`: each bag has one certain label. `multi`: each bag has any number of labels. " +
			"`noisy`: true labels may be outside of the candidate sets. All learners get it as `data.labels` of their specs.",
		DefaultDoc: "candidate sets"},
	{Name: "synth", Rows: synthRows,
		Doc: "Dataset to generate as `miplc data synth` does: its name, or a map of settings."},
	{Name: "r", In: schema.Closed(0, maxR), Doc: "Values of r for this dataset.", DefaultDoc: "`r` of the top level"},
	{Name: "splits", Rows: splitRows(),
		Doc: "As `splits` of the top level, for this dataset.", DefaultDoc: "`splits` of the top level"},
}

var synthRows = []schema.Row{
	{Name: "set", Required: true, Main: true, Choices: generate.Sets, Doc: "Name of the generator."},
	{Name: "bags", In: schema.Closed(1, maxCount), Doc: "Number of bags."},
	{Name: "positives", In: schema.PositiveUpTo(1), Doc: "Share of positive instances per bag."},
	{Name: "min_size", In: schema.Closed(1, maxCount), Doc: "Instances of the smallest bag."},
	{Name: "max_size", In: schema.Closed(1, maxCount), Doc: "Instances of the largest bag."},
	{Name: "classes", Type: schema.Custom, Custom: &classesType, Field: func(synth any) any { return synth },
		Doc: "Source classes that are labels, by name; the others give the negative instances. `prototypes`: number or " +
			"names of the classes."},
	{Name: "features", In: schema.Closed(1, 1<<20), Doc: "`prototypes`: features of an instance."},
	{Name: "noise", In: schema.AtLeast(0),
		Doc: "`prototypes`: standard deviation of the features around the prototype of their class."},
	{Name: "pools", In: schema.Closed(2, maxCount),
		Doc: "Disjoint pools of instances that the bags draw from; splits then share no instance between training and test " +
			"bags."},
	{Name: "seed", Default: "1", In: schema.Closed(0, maxCount), Doc: "Seed of all draws."},
}

var learnerRows = []schema.Row{
	{Name: "name", Required: true, In: ofName, Doc: "Name of the learner in results and in this file."},
	{Name: "title", Doc: "Name in tables.", DefaultDoc: "`name`"},
	{Name: "group", Doc: "A heading above the learner in tables, such as `Mean` or `MaxMin`."},
	{Name: "spec", Required: true, Doc: "A shipped spec or a file."},
	{Name: "set", Custom: &settingsType,
		Doc: "Settings of the spec, as for `--set` of `miplc train`. Data, split and name come from the experiment."},
	{Name: "grid", Custom: &gridType,
		Doc: "Settings of the spec to choose from: keys with lists of values, or with ranges for `search`."},
	{Name: "search", Rows: language.TrialRows(),
		Doc: "Random settings from the grid, and an early end for bad ones: a number of trials, or a map. Without it, all " +
			"combinations of the lists are trained."},
	{Name: "last", Default: "1", In: schema.Closed(1, 1000),
		Doc: "Number of final epochs over which the test accuracy is averaged. The programs of RC and LWS average 10. The " +
			"other measures are those of the last epoch."},
	{Name: "vary", Custom: &varyType,
		Doc: "One key with a list of values. The learner is run once per value, for a figure over the values."},
	{Name: "data", Doc: "Datasets of the learner.", DefaultDoc: "all"},
	{Name: "r", In: schema.Closed(0, maxR), Doc: "Values of r of the learner.", DefaultDoc: "all"},
	{Name: "published", Custom: &publishedType,
		Doc: "Published accuracies for `table: published`, by dataset and r; for a `file` without `{r}`, by dataset: " +
			"`{Own: 0.9}`."},
	{Name: "cases", Rows: caseRows, Doc: "Differences for some datasets and r; later cases override earlier ones."},
}

var caseRows = []schema.Row{
	{Name: "data", Doc: "Datasets of the case.", DefaultDoc: "all"},
	{Name: "r", In: schema.Closed(0, maxR), Doc: "Values of r of the case.", DefaultDoc: "all"},
	{Name: "spec", Doc: "Replaces the learner's spec."},
	{Name: "set", Custom: &settingsType, Doc: "Added to the learner's settings."},
	{Name: "grid", Custom: &gridType,
		Doc: "Replaces the learner's whole grid: keys that are not listed here are no longer varied."},
}

// splitRows returns the keys of splits, of the experiment or of a dataset.
func splitRows() []schema.Row {
	return []schema.Row{
		{Name: "count", Default: "10", In: schema.Closed(1, maxSplits),
			Doc: "Number of splits. With `folds`, the default is one for each fold."},
		{Name: "train", Default: "0.7", In: schema.Open(0, 1), Doc: "Share of training bags of a random split."},
		{Name: "folds", In: schema.Closed(2, maxSplits),
			Doc: "Cross-validation with this number of folds: split i tests on fold i, and `train` is not used. If `count` is " +
				"larger, the bags are divided into new folds with the next seed."},
		{Name: "validation", In: schema.Open(0, 1),
			Doc: "Share of the training bags of each split that become validation bags, which `train.best` and " +
				"`export.temperature` of a spec need."},
		{Name: "group",
			Doc: "Name of the groups of bags, such as `patient`, as `data.split.group` of a spec: all bags of a group are in " +
				"the same part of a split. With `index`, a split of the file that divides a group is an error."},
		{Name: "stratify", Default: "true",
			Doc: "Draw the same share of every class, where true labels are known. `false`: draw from all bags alike."},
		{Name: "seed", Default: "1", In: schema.Closed(0, maxCount),
			Doc: "Seed of the first split, as `data.split.seed` of a spec. Split i has seed + i - 1. With `folds`, all folds " +
				"of one division have the same seed."},
		{Name: "index",
			Doc: "File of splits in place of random splits: a .csv file, or .mat files with `{split}` in the name for the " +
				"number of the split. The first `count` splits are used."},
	}
}

var chooseRows = []schema.Row{
	{Name: "holdout", Default: "0.2", In: schema.Open(0, 1), Doc: "Share of the training bags held out for choosing."},
	language.FoldsRow(),
	{Name: "stratify", Default: "true",
		Doc: "Hold out the same share of every class, where true labels are known; each fold has about the same, too."},
	{Name: "seed", Default: "1", In: schema.Closed(0, maxCount),
		Doc: "Seed of the held-out bags, or of the folds, of split 1. Split i has seed + i - 1."},
	{Name: "measure", Default: measure.Accuracy, Choices: language.HeldOutMeasures(),
		Doc: "[Measure](measures.md) of the held-out bags that chooses the setting, or `loss`, which needs no true labels."},
}

var attentionRows = []schema.Row{
	{Name: "epochs", Required: true, In: schema.Closed(1, maxCount), Doc: "Epochs after which scores are recorded."},
}

var itemRows = []schema.Row{
	{Name: "table", Choices: kindsOf(false), Doc: "The kind of table. An entry has `table` or `figure`."},
	{Name: "figure", Choices: kindsOf(true), Doc: "The kind of figure."},
	{Name: "title", Doc: "Heading."},
	{Name: "learners",
		Doc: "Learners to show. Tables show learners with `vary` only if they are named.", DefaultDoc: "all"},
	{Name: "data", Doc: "Datasets to show.", DefaultDoc: "all"},
	{Name: "r", In: schema.Closed(0, maxR), Doc: "Values of r to show.", DefaultDoc: "all"},
}

// kindsOf lists the kinds of figures or of tables.
func kindsOf(figures bool) []string {
	var list []string
	for _, k := range itemKinds {
		if k.Figure == figures {
			list = append(list, k.Word)
		}
	}
	return list
}

var classesType = schema.CustomType{
	Noun: "a number of classes or a list of their names",
	Schema: schema.Object{"type": []string{"integer", "array"}, "minimum": 2, "maximum": 1 << 16,
		"items": schema.Object{"type": []string{"string", "number"}}},
	Read: func(r *schema.Reader, path string, _, n *schema.Node, to any) {
		s := to.(*Synth)
		if v, ok := n.Int(); ok && 2 <= v && v <= 1<<16 {
			s.ClassCount = v
			return
		}
		if !n.IsList() {
			r.AddFault(n.Errorf("%s must be a number of classes from 2 on, or a list of their names, not %s", path,
				n.Describe()))
			return
		}
		for _, item := range n.Items() {
			if !item.IsValue() {
				r.AddFault(item.Errorf("a class is named by a word or a number, not by %s", item.Describe()))
				continue
			}
			s.Classes = append(s.Classes, item.Raw())
		}
	},
}

var settingsType = schema.CustomType{
	Noun:   "a map of settings such as {train.epochs: 5}",
	Schema: schema.Object{"type": "object"},
	Read: func(r *schema.Reader, path string, _, n *schema.Node, to any) {
		if !n.IsMap() {
			r.AddFault(n.Errorf("%s must be a map such as {train.epochs: 5}, not %s", path, n.Describe()))
			return
		}
		list := to.(*[]language.Assignment)
		for i, key := range n.Keys() {
			value, before := n.Items()[i], len(r.Faults())
			checkKey(r)(key, value)
			language.CheckSetting(r, path, key, value)
			if len(r.Faults()) == before {
				*list = append(*list, language.Assignment{Key: key.Raw(), Value: value.Flow(), Pos: value.Pos()})
			}
		}
	},
}

// notForSpecs are keys of a spec that the experiment sets itself.
var notForSpecs = []struct{ key, instead string }{
	{"data.set", "data"}, {"data.split", "splits"}, {"data.generated", "data"}, {"data.labels", "labels of the dataset"},
	{"name", "name"}, {"extends", "spec"},
}

// checkKey returns a function that reports keys which the experiment sets itself, for language.ReadGrid.
func checkKey(r *schema.Reader) func(key, value *schema.Node) (skip bool) {
	return func(key, _ *schema.Node) bool {
		for _, not := range notForSpecs {
			if key.Raw() == not.key || strings.HasPrefix(key.Raw(), not.key+".") {
				r.AddFault(key.Errorf("%s is not a setting of learners", key.Raw()).WithNote("set it with %s of the experiment",
					not.instead))
			}
		}
		return false
	}
}

var gridType = schema.CustomType{
	Noun:   language.GridNoun,
	Schema: language.GridSchema(language.MaxGrid, true),
	Read: func(r *schema.Reader, path string, _, n *schema.Node, to any) {
		*to.(*[]language.Axis) = language.ReadGrid(r, path, n, checkKey(r))
	},
}

var varyType = schema.CustomType{
	Noun:   "a map of one key and a list of values",
	Schema: language.GridSchema(1, false),
	Read: func(r *schema.Reader, path string, _, n *schema.Node, to any) {
		axes := language.ReadGrid(r, path, n, checkKey(r))
		switch one := language.HasRange(axes); {
		case n.IsMap() && len(n.Keys()) != 1:
			r.AddFault(n.Errorf("%s takes one key, not %d", path,
				len(n.Keys())).WithNote("write settings to choose from in grid"))
		case one != nil:
			r.AddFault(n.Items()[0].Errorf("%s needs a list of values, not a range", path).WithNote("ranges are for grid"))
		case len(axes) == 1:
			*to.(**language.Axis) = &axes[0]
		}
	},
}

var publishedType = schema.CustomType{
	Noun: "a map of datasets, such as {MNIST-MIPL: {1: 0.976±0.008}}",
	Schema: schema.Object{"type": "object", "additionalProperties": schema.Object{
		"type": []string{"number", "string", "object"}, "additionalProperties": schema.Object{"type": []string{"number",
			"string"}},
	}},
	Read: func(r *schema.Reader, path string, _, n *schema.Node, to any) {
		if !n.IsMap() {
			r.AddFault(n.Errorf("%s must be a map of datasets, such as {MNIST-MIPL: {1: 0.976±0.008}}, not %s", path,
				n.Describe()))
			return
		}
		list := to.(*[]Published)
		for i, name := range n.Keys() {
			p, value := Published{Data: schema.Str{V: name.Raw(), Pos: name.Pos()}, R: Stored}, n.Items()[i]
			if !value.IsMap() {
				*list = appendPublished(r, *list, p, value)
				continue
			}
			for j, label := range value.Keys() {
				v, ok := label.Int()
				if !ok || v < 0 || v > maxR {
					r.AddFault(label.Errorf("r must be a whole number between 0 and %d, not %s", maxR, label.Describe()))
					continue
				}
				p.R = v
				*list = appendPublished(r, *list, p, value.Items()[j])
			}
		}
	},
}

// appendPublished reads one accuracy: a number, or a text such as 0.976±0.008.
func appendPublished(r *schema.Reader, list []Published, p Published, n *schema.Node) []Published {
	if !n.IsValue() || utf8.RuneCountInString(n.Raw()) > maxNameRunes {
		r.AddFault(n.Errorf("a published accuracy is a number or a text such as 0.976±0.008, not %s", n.Describe()))
		return list
	}
	p.Text = n.Raw()
	return append(list, p)
}
