// Rules of the section data.

package language

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/miplc/miplc/data/formats"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/language/schema"
)

func (c *checker) checkData() {
	d, before := &c.spec.Data, len(c.faults)
	defer func() { c.inData += len(c.faults) - before }()
	known := c.checkSet()
	c.checkGroups()
	if known && d.Labels.V != "" && !(c.spec.Multi() && c.spec.Generates()) && !formats.WithLabels().Match(d.Set.V) &&
		c.writtenWith(d.Labels.Pos, d.Set.Pos) {
		e := c.add(d.Labels.Pos, "data.labels applies to %s files", formats.WithLabels().And())
		if c.spec.Encodes() && d.Labels.V == KnownLabels {
			note(e, "the classes of folders of images are known labels without it")
		} else {
			note(e, "data.set is %q", d.Set.V)
		}
	}
	if _, ok := ndarray.SizeWithin(d.Shape.V, maxCount); !ok {
		c.add(d.Shape.Pos, "an instance of data.shape %v would have more than %d numbers", d.Shape.V, maxCount)
	}
	if want := d.SHA256; want.V != "" && !isSHA256(want.V) {
		note(c.add(want.Pos, "data.sha256 must have 64 hexadecimal digits"),
			"miplc data inspect prints the SHA-256 of a dataset")
	}
	if !c.spec.HasColumns() {
		c.uselessSection("data.columns", columnRows, d.Set.Pos, ": data.set is not a CSV file", "data.set is %q", d.Set.V)
	}
	if pair := d.Columns.Coordinates; len(pair.V) != 0 && len(pair.V) != 2 {
		note(c.add(pair.V[len(pair.V)-1].Pos, "data.columns.coordinates names %s, expected those of x and y",
			diag.Count(len(pair.V), "column")), "for example [x, y]")
	}
	c.checkEncoder()
	c.checkSplit()
}

// checkSet checks data.set, and reports whether it is a known kind of dataset.
func (c *checker) checkSet() (known bool) {
	d := &c.spec.Data
	switch set := d.Set.V; {
	case c.spec.Generates():
		if set != prototypes {
			e := c.add(d.Set.Pos, "there is no generator %q", strings.TrimPrefix(set, generatedPrefix))
			*e = e.SuggestOr(Dialect.Suggest(set, []string{prototypes}), "known: %s", prototypes)
		}
		c.checkGenerated()
	case set != "" && !c.spec.Encodes() && !formats.Readable().Match(set):
		e := c.add(d.Set.Pos, "data.set %q is not a known kind of dataset", set)
		note(e, "%s, or a file that ends in %s", prototypes, formats.Readable().Or())
		if formats.Extension(set) == ".parquet" {
			note(e, "%s", formats.ConvertParquet(set, ".csv"))
		}
		if path.Ext(set) == "" {
			note(e, "a folder of images needs data.encoder, or miplc data bags to make a file of it")
		}
		e.Suggestion = Dialect.Suggest(set, []string{prototypes})
		return false
	default:
		c.uselessSection("data.generated", generatedRows, d.Set.Pos, ": data.set is a file", "data.set is %q", set)
	}
	return true
}

// checkEncoder checks the settings of the encoder.
func (c *checker) checkEncoder() {
	d, e := &c.spec.Data, &c.spec.Data.Encoder
	if !c.spec.Encodes() {
		for _, row := range slices.Concat(encoderRows, encoderInputRows) {
			if row.Field != nil && c.writtenWith(row.PosOf(c.spec), d.Set.Pos) {
				note(c.add(row.PosOf(c.spec), "data.encoder has no file"), "name the ONNX file of the encoder: encoder: {file: "+
					"resnet.onnx}")
				return
			}
		}
		return
	}
	if c.spec.Generates() {
		note(c.clash([]diag.Pos{e.File.Pos, d.Set.Pos}, "data.encoder needs images, and data.set is a generator of features"),
			"set data.set to a folder of images or a table of them")
	}
	if d.Shape.Written() && len(d.Shape.V) > 0 {
		c.clash([]diag.Pos{d.Shape.Pos, e.File.Pos}, "data.shape has no effect: the encoder determines the shape of an "+
			"instance")
	}
	for _, list := range []struct {
		name string
		v    schema.Floats
	}{{"mean", e.Mean}, {"std", e.Std}} {
		if n := len(list.v.V); n != 0 && n != 3 {
			c.add(list.v.Pos, "data.encoder.input.%s has %s, expected 3: one for each colour channel", list.name,
				diag.Count(n, "number"))
		}
	}
}

func isSHA256(s string) bool {
	sum, err := hex.DecodeString(s)
	return err == nil && len(sum) == sha256.Size
}

func hasSuffix(s string, suffixes ...string) bool {
	return slices.ContainsFunc(suffixes, func(suffix string) bool { return strings.HasSuffix(strings.ToLower(s), suffix) })
}

func (c *checker) checkGenerated() {
	d, g := &c.spec.Data, &c.spec.Data.Generated
	if g.MinSize.V > g.MaxSize.V {
		c.clash([]diag.Pos{g.MinSize.Pos, g.MaxSize.Pos}, "min_size %d is above max_size %d", g.MinSize.V, g.MaxSize.V)
	}
	if g.Candidates.V >= g.Classes.V {
		note(c.clash([]diag.Pos{g.Candidates.Pos, g.Classes.Pos}, "candidates is %d, too many for %s", g.Candidates.V,
			diag.Count(g.Classes.V, "class")),
			"one class is the true one, so at most %d can be false candidates", g.Classes.V-1)
	}
	if g.Bags.V < g.Classes.V {
		c.clash([]diag.Pos{g.Bags.Pos, g.Classes.Pos}, "%s cannot show %s", diag.Count(g.Bags.V, "bag"),
			diag.Count(g.Classes.V, "class"))
	}
	if d.Classes.V != 0 && d.Classes.V != g.Classes.V {
		c.clash([]diag.Pos{d.Classes.Pos, g.Classes.Pos}, "data.classes is %d, the generator makes %d", d.Classes.V,
			g.Classes.V)
	}
	c.checkShare()
	if volume, ok := ndarray.SizeWithin(d.Shape.V, maxCount); len(d.Shape.V) > 0 && ok && volume != g.Features.V {
		c.clash([]diag.Pos{d.Shape.Pos, g.Features.Pos}, "data.shape %v has %s, the generator makes %s", d.Shape.V,
			diag.Count(volume, "number"), diag.Count(g.Features.V, "feature"))
	}
}

// checkGroups checks the source of the groups of the bags.
func (c *checker) checkGroups() {
	column, group := c.spec.Data.Columns.Group, c.spec.Data.Split.Group
	switch {
	case group.V != "" && c.spec.Generates():
		note(c.clash([]diag.Pos{group.Pos, c.spec.Data.Set.Pos}, "data.split.group is %q, but generated bags have no groups",
			group.V), "name a dataset with data.set")
	case column.V != "" && group.V == "":
		note(c.add(column.Pos, "data.columns.group has no effect without data.split.group"), "add split: {group: %s}",
			column.V)
	case column.V != "" && !strings.EqualFold(column.V, group.V):
		c.clash([]diag.Pos{column.Pos, group.Pos}, "data.columns.group is %q, data.split.group is %q: they must be the same",
			column.V, group.V)
	}
}

// checkShare rejects a share of training bags that leaves no bag for training, or none for testing unless it is 1.
func (c *checker) checkShare() {
	share, bags, folds := c.spec.Data.Split.Train, c.spec.Data.Generated.Bags, c.spec.Data.Split.Folds
	if c.spec.usesFolds() && folds.V > bags.V {
		c.clash([]diag.Pos{folds.Pos, bags.Pos}, "%s cannot be divided into %d folds", diag.Count(bags.V, "bag"), folds.V)
	}
	if n := int(math.Round(share.V * float64(bags.V))); c.spec.usesShare() && share.V < 1 && (n < 1 || n >= bags.V) {
		note(c.clash([]diag.Pos{share.Pos, bags.Pos}, "a share of %v of %s leaves %d for training and %d for testing",
			share.V, diag.Count(bags.V, "bag"), n, bags.V-n), "both need at least one bag")
	}
}

// checkFolds checks conflicts between the settings of folds.
func (c *checker) checkFolds() {
	s := &c.spec.Data.Split
	switch {
	case s.Folds.V == 0:
		c.useless("data.split.fold", s.Fold.Pos, s.Fold.Pos, " without folds", "give the number of folds, such as folds: 5")
	case s.Folds.V > 0 && s.Fold.V > s.Folds.V:
		c.clash([]diag.Pos{s.Fold.Pos, s.Folds.Pos}, "fold is %d, but there are only %d folds", s.Fold.V, s.Folds.V)
	}
	if s.Folds.V > 0 {
		c.useless("data.split.train", s.Train.Pos, s.Folds.Pos, " with folds", "one of %d folds has the test bags", s.Folds.V)
	}
}

// resolveSearch reports a held-out share with folds, and drops inherited folds that it replaces.
func (c *checker) resolveSearch() {
	switch s := &c.spec.Search; {
	case s.Folds.V == 0:
	case s.Holdout.Written() && c.ExtendedBy(s.Folds.Pos, s.Holdout.Pos):
		s.Folds = schema.Int{}
	default:
		c.useless("search.holdout", s.Holdout.Pos, s.Folds.Pos, " with folds", "each of the %d folds is held out once",
			s.Folds.V)
	}
}

func (c *checker) checkSplit() {
	s := &c.spec.Data.Split
	if s.Index.V == "" {
		c.useless("data.split.number", s.Number.Pos, s.Number.Pos, " without index", "name the file of splits with index")
		c.checkFolds()
		return
	}
	random := []string{"train", "folds", "fold"}
	if !c.spec.drawsBags() {
		random = append(random, "seed")
	}
	c.uselessSection("data.split", slices.DeleteFunc(slices.Clone(splitRows), func(row schema.Row) bool {
		return !slices.Contains(random, row.Name)
	}), s.Index.Pos, " with index", "the index file says which bags train")
	switch {
	case !hasSuffix(s.Index.V, ".mat", ".csv", ".csv.gz"):
		note(c.add(s.Index.Pos, "data.split.index %q is not a known kind of index file", s.Index.V),
			"a .mat with trainIndex and testIndex, or a .csv of splits")
	case hasSuffix(s.Index.V, ".mat") && c.writtenWith(s.Number.Pos, s.Index.Pos):
		c.add(s.Number.Pos, "data.split.number has no effect: a .mat file contains one split")
	}
}
