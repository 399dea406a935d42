// Roles of the columns of a CSV file.

package bagfile

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/internal/diag"
)

// Roles are the names of columns that are not features. An empty name means the usual one: bag,
// label, candidates or instance_label. An empty Group means that the bags have no groups.
type Roles struct{ Bag, Label, Candidates, InstanceLabel, Group string }

// Columns declares columns of CSV files that are not recognised by their names, and what
// the model needs that will predict the bags.
type Columns struct {
	Roles  Roles
	Ignore []string // columns that are not read
	// Coordinates are the columns of x and y. Empty: columns x and y, if the file has both and
	// neither is in Features.
	Coordinates []string
	Features    []string // features that are named like identifiers or coordinates
	// OnlyFeatures: Features are all features, in this order. Other columns without a role are not read.
	OnlyFeatures bool
	Classes      []string // the classes in their order; nil: those of the line "# classes:", or all labels of the file
	// ModelFeatures are the features that a model was trained on. Only these columns are read, in this
	// order. The feature names of files without columns, e.g. .npz, must be equal to ModelFeatures.
	// nil: all features of the file.
	ModelFeatures []string
	// ModelClasses are the classes of a model that will predict the bags. Labels and candidates are
	// then optional, and so is the column bag of a file with one bag. The candidates of a bag
	// without candidates are its label, or all classes if that is unknown; with MultiLabels, the
	// labels of a file are unknown if no bag has one. nil: candidates are required.
	ModelClasses []string
}

// forModel reports whether the bags are read for a model.
func (c *Columns) forModel() bool { return c.ModelFeatures != nil || c.ModelClasses != nil }

// Names of numbers that a model must not learn from, in lower case and without spaces and punctuation.
var (
	// suspectNames are coordinates, labels and indices, of columns and of arrays.
	suspectNames = []string{"y", "z", "xy", "coord", "coordinate", "position", "location", "centroid", "xcoord", "ycoord",
		"coordx", "coordy",
		"xpos", "ypos", "posx", "posy", "centroidx", "centroidy", "row", "col", "column", "left", "top", "lat", "latitude",
		"lon", "lng", "longitude",
		"id", "index", "indices", "idx", "offset", "fold", "split", "group", "label", "instancelabel", "class", "target",
		"candidate"}
	// suspectColumns are columns that usually describe the origin of an instance. Arrays of these names
	// may be features: x, the images of an encoder.
	suspectColumns = []string{"", "x", "date", "time", "timestamp", "frame", "unnamed0", "patient", "subject", "person",
		"case",
		"slide", "image", "tile", "instance", "sample", "donor", "part", "batch", "site", "center", "centre", "hospital"}
	// suspectPrefixes and suspectSuffixes are the starts and ends of names in lower case; the prefix is that of pandas.
	suspectPrefixes = []string{"__index_level_"}
	suspectSuffixes = []string{"_id", "-id", " id"}
)

// ignoredInNames are the characters that plainName leaves out.
const ignoredInNames = " _-.:"

// plainName returns a name in lower case, without spaces and punctuation.
func plainName(name string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(ignoredInNames, r) {
			return -1
		}
		return r
	}, strings.ToLower(strings.TrimSpace(name)))
}

// suspect reports whether a column is named like an identifier or a coordinate.
func suspect(name string) bool {
	lower := strings.ToLower(strings.TrimSpace(name))
	return slices.Contains(suspectNames, plainName(name)) || slices.Contains(suspectColumns, plainName(name)) ||
		slices.ContainsFunc(suspectPrefixes, func(p string) bool { return strings.HasPrefix(lower, p) }) ||
		slices.ContainsFunc(suspectSuffixes, func(s string) bool { return strings.HasSuffix(lower, s) })
}

// suspectArray reports whether an array is named like coordinates, labels or indices, such as y or
// patch_coords.
func suspectArray(name string) bool {
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return strings.ContainsRune(" _-.:/", r) })
	if len(words) == 0 {
		return false
	}
	last := words[len(words)-1]
	return slices.ContainsFunc([]string{last, strings.TrimSuffix(last, "s"), strings.TrimSuffix(last, "es")},
		func(word string) bool {
			return slices.Contains(suspectNames, word)
		})
}

// readFeatures finds the columns of features: those that a model needs, or all columns except
// roles, coordinates and ignored ones. Columns named like identifiers or coordinates must be
// declared.
func (c *csvReader) readFeatures(header []string, line int) error {
	if c.Columns.ModelFeatures != nil {
		return c.findFeatures(header, line)
	}
	if c.Columns.OnlyFeatures {
		return c.findOnly(header, line)
	}
	var unclear []string
	for i, name := range header {
		switch {
		case slices.Contains(c.roles[:], i), slices.Contains(c.coordColumns, i), slices.Contains(c.Columns.Ignore, name):
			continue
		case suspect(name) && !slices.Contains(c.Columns.Features, name):
			unclear = append(unclear, name)
		}
		c.featureColumns, c.featureNames = append(c.featureColumns, i), append(c.featureNames, strings.Clone(name))
	}
	if len(unclear) > 0 {
		return c.undeclared(line, unclear, "named like an identifier or a coordinate, not like a feature",
			"declare numeric columns as features with "+c.Form.features())
	}
	if len(c.featureColumns) == 0 {
		if c.Form == FrameForm {
			return c.errorf(line, "the frame has no column with a feature")
		}
		return c.errorf(line, "the header names no feature").WithNote("write the features of each instance to columns, or "+
			"the name of the file with the features of each bag to a column %q", fileColumnName)
	}
	if i := slices.IndexFunc(c.featureNames, func(name string) bool { return !data.PlainName(name) }); i >= 0 {
		return c.errorf(line, "the name of the column %q contains a line break or another control character",
			c.featureNames[i]).
			WithNote("rename the column; predictions find the features by name")
	}
	sorted := slices.Sorted(slices.Values(c.featureNames))
	for i := 1; i < len(sorted); i++ {
		if sorted[i] == sorted[i-1] {
			return c.errorf(line, "two columns are named %q", sorted[i]).
				WithNote("rename one of them, or leave both out with %s", c.Form.ignoring(sorted[i]))
		}
	}
	return nil
}

// checkIgnored returns an error for an argument of Python that names a column which the file does not have.
func (c *csvReader) checkIgnored(header []string, line int) error {
	for _, name := range c.Columns.Ignore {
		if c.Form.python() && !slices.Contains(header, name) {
			return c.errorf(line, "the header has no column %q", name).WithSuggestion(diag.Suggest(name, header))
		}
	}
	return nil
}

// findOnly finds the columns of Columns.Features.
func (c *csvReader) findOnly(header []string, line int) error {
	for i, name := range c.Columns.Features {
		at := slices.Index(header, name)
		if at < 0 {
			return c.errorf(line, "the header has no column %q", name).WithSuggestion(diag.Suggest(name, header))
		}
		if slices.Contains(c.Columns.Features[:i], name) {
			return c.errorf(line, "the feature %q is given twice", name)
		}
		if slices.Contains(header[at+1:], name) {
			return c.errorf(line, "two columns are named %q", name).WithNote("rename one of them")
		}
		c.featureColumns, c.featureNames = append(c.featureColumns, at), append(c.featureNames, name)
	}
	return nil
}

// roleNames are the usual names of the columns that are not features.
var roleNames = [5]string{"bag", "label", "candidates", "instance_label", "group"}

// Indices into roleNames and csvReader.roles.
const (
	roleBag = iota
	roleLabel
	roleCandidates
	roleInstanceLabel
	roleGroup
)

// detectLabels sets the kind of the labels to that of the columns, if the user does not say it.
func (c *csvReader) detectLabels() {
	has := func(role int, declared string) bool { return declared != "" || c.rows.Column(roleNames[role]) >= 0 }
	switch {
	case !c.DetectLabels || c.Labels == MultiLabels || has(roleCandidates, c.Columns.Roles.Candidates):
	case has(roleLabel, c.Columns.Roles.Label):
		c.Labels = KnownLabels
	default:
		c.Labels, c.listedClasses = noLabels, nil
	}
}

// findRoles finds the columns of bags and labels by name. In data for a model they may have their
// usual names as well.
func (c *csvReader) findRoles(header []string, line int) error {
	r := c.Columns.Roles
	declared := [len(roleNames)]string{r.Bag, r.Label, r.Candidates, r.InstanceLabel, r.Group}
	for role, name := range declared {
		if role == roleGroup && name == "" {
			c.roles[role] = -1
			continue
		}
		at := c.rows.Column(name)
		if usual := roleNames[role]; name == "" || at < 0 && c.Columns.forModel() {
			at, name = c.rows.Column(usual), cmp.Or(name, usual)
		}
		if at >= 0 && slices.Contains(c.roles[:role], at) {
			return c.errorf(line, "the column %q is used as %s and as %s", header[at], roleNames[slices.Index(c.roles[:], at)],
				roleNames[role])
		}
		optional := role >= roleInstanceLabel || c.Columns.ModelClasses != nil ||
			!c.Labels.sets() && role == roleCandidates || c.DetectLabels && role == roleLabel
		if mustExist := declared[role] != "" && !c.Columns.forModel(); at < 0 && (mustExist || !optional) {
			containing := slices.IndexFunc(header, func(h string) bool { // such as Bag_ID
				return strings.Contains(strings.ToLower(h), strings.ToLower(name))
			})
			suggestion := diag.Suggest(name, header)
			if suggestion == "" && containing >= 0 {
				suggestion = header[containing]
			}
			return c.errorf(line, "the header has no column %q", name).WithSuggestion(suggestion).
				WithNote("%s", c.Form.missingColumn(role))
		}
		c.roles[role] = at
		if role == roleBag && at >= 0 {
			c.bagColumn = strings.Clone(header[at])
		}
		if like := c.namedLike(header, name); role == roleBag && at < 0 && like != "" {
			return c.errorf(line, "the header has no column %q", name).WithSuggestion(like).
				WithNote("rename the column %q to %q; if all rows are one bag, leave it out", like, name)
		}
	}
	return nil
}

// namedLike returns the first column of data for a model that would not be read although it starts
// with a name in any case, such as Bag_ID, or "".
func (c *csvReader) namedLike(header []string, name string) string {
	if c.Columns.ModelFeatures == nil {
		return "" // all columns are read
	}
	for _, h := range header {
		if strings.HasPrefix(strings.ToLower(h), strings.ToLower(name)) &&
			!slices.Contains(slices.Concat(c.Columns.ModelFeatures, c.Columns.Ignore), h) {
			return h
		}
	}
	return ""
}

// findCoordinates finds the columns of x and y.
func (c *csvReader) findCoordinates(header []string, line int) error {
	names := c.Columns.Coordinates
	declared := len(names) > 0
	if declared && (len(names) != 2 || names[0] == names[1]) {
		return c.errorf(line, "coordinates need two columns, x and y, but %s named", diag.Count(len(names), "column"))
	}
	if !declared {
		names = []string{"x", "y"}
	}
	at := []int{slices.Index(header, names[0]), slices.Index(header, names[1])}
	for i, name := range names {
		switch {
		case declared && at[i] < 0 && c.Columns.forModel():
			return nil // data for a model need not have coordinates
		case declared && at[i] < 0:
			return c.errorf(line, "the header has no column %q", name).WithSuggestion(diag.Suggest(name, header)).
				WithNote("%s names the columns of x and y", c.Form.coordinates())
		case declared && slices.Contains(c.roles[:], at[i]):
			return c.errorf(line, "the column %q is used as a coordinate and as %s", name,
				roleNames[slices.Index(c.roles[:], at[i])])
		case !declared && (at[i] < 0 || slices.Contains(c.roles[:], at[i])),
			!declared && slices.Contains(slices.Concat(c.Columns.Features, c.Columns.Ignore, c.Columns.ModelFeatures), name):
			return nil
		}
	}
	c.coordColumns = at
	return nil
}

// readCoordinates reads x and y of an instance.
func (c *csvReader) readCoordinates(row []string, line, bag int) error {
	for _, at := range c.coordColumns {
		x, err := c.rows.Number(row[at], 32)
		if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
			return diag.Errorf(diag.Pos{File: c.path, Line: line, Col: c.textColumn(at)},
				"bag %d: the coordinate is %q, not a finite number", bag, row[at])
		}
		if err := c.checkDecimal(row[at], line, at); err != nil {
			return err
		}
		c.d.Coords = append(c.d.Coords, float32(x))
	}
	return nil
}

// findFeatures finds the columns that a model was trained on by their names.
func (c *csvReader) findFeatures(header []string, line int) error {
	at := make(map[string]int, len(header))
	var all []string
	for i, name := range header {
		if slices.Contains(c.roles[:], i) {
			continue
		}
		form := diag.Canonical(name)
		if _, twice := at[form]; twice && slices.Contains(c.Columns.ModelFeatures, name) {
			return c.errorf(line, "two columns are named %q; rename the one that is not the feature of the model", name)
		}
		at[form] = i
		all = append(all, name)
	}
	for i, name := range c.Columns.ModelFeatures {
		column, ok := at[diag.Canonical(name)]
		if !ok {
			return unwanted(diag.Pos{File: c.path, Line: line}, c.Columns.ModelFeatures, all, i)
		}
		c.featureColumns, c.featureNames = append(c.featureColumns, column), append(c.featureNames, name)
	}
	return nil
}

// unwanted returns the error that feature i of a model is not at its position in names.
func unwanted(at diag.Pos, want, names []string, i int) error {
	d := diag.Errorf(at, "feature %d of the model, %q, is missing", i+1, want[i])
	if i < len(names) && !slices.Contains(want, names[i]) {
		d = diag.Errorf(at, "feature %d of the model, %q, is missing; the data has %q instead", i+1, want[i], names[i])
	}
	others := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(want, name) })
	return d.WithSuggestion(diag.Suggest(want[i], others)).
		WithNote("the model was trained on %s; the data must have the same features under the same names",
			diag.Count(len(want), "named feature")).
		WithNote("if the data has the feature under another name, rename it in the file; otherwise train a model on the " +
			"features of this file")
}

// checkFeatures returns an error for the first feature of a dataset that is not the feature of the
// model. Datasets without names pass, because the model checks the number of features.
func checkFeatures(d *data.Dataset, path string, want []string) error {
	if want == nil || d.FeatureNames == nil {
		return nil
	}
	at := diag.Pos{File: path}
	for i := range want {
		switch {
		case i < len(d.FeatureNames) && d.FeatureNames[i] == want[i]:
		case slices.Contains(d.FeatureNames, want[i]):
			return diag.Errorf(at, "feature %d of the model, %q, is at another position", i+1, want[i]).
				WithNote("put the features into the order of the model, or use a CSV file, whose columns are found by name")
		default:
			return unwanted(at, want, d.FeatureNames, i)
		}
	}
	if len(d.FeatureNames) > len(want) {
		return diag.Errorf(at, "feature %d, %q, is not a feature of the model", len(want)+1, d.FeatureNames[len(want)])
	}
	return nil
}

// groupColumns are names of columns with the group of each bag, without punctuation and "id".
var groupColumns = []string{"patient", "subject", "person", "donor", "case", "group"}

// adviseGroup adds how to declare the first column that is named like a group, if there is one.
func (c *csvReader) adviseGroup(wrong diag.Diagnostic, names []string) diag.Diagnostic {
	for _, name := range names {
		if word := strings.TrimSuffix(plainName(name), "id"); slices.Contains(groupColumns, word) {
			return wrong.WithNote("to keep the bags of a %s in one part of the split: %s", word, c.Form.group(name))
		}
	}
	return wrong
}

// undeclared returns the error that the user has to declare whether columns are features.
func (c *csvReader) undeclared(line int, names []string, why string, notes ...string) error {
	if slices.Contains(names, "") {
		return c.errorf(line, "a column has no name, as a column of row numbers").WithNote("%s", c.Form.unnamed())
	}
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = strconv.Quote(name)
	}
	word := "column"
	if len(names) > 1 {
		word = "columns"
	}
	wrong := c.errorf(line, "%s %s: %s", word, diag.Words(quoted), why)
	wrong = c.adviseGroup(wrong, names)
	wrong = wrong.WithNote("leave columns out with %s", c.Form.ignoringOr(names...))
	for _, note := range notes {
		wrong = wrong.WithNote("%s", note)
	}
	return wrong
}

// adviceModelFeature is the advice for text in a feature of a model.
const adviceModelFeature = "the model was trained on numbers in this column: convert its values in the same way, or " +
	"train a model without it"

// checkText returns an error for columns whose first value is text.
func (c *csvReader) checkText(row []string, line int) error {
	var text []string
	for j, at := range c.featureColumns {
		field := row[at]
		if !strings.ContainsFunc(field, unicode.IsLetter) || missing(field) {
			continue // readRow reports missing and malformed numbers
		}
		if _, err := c.feature(field, 64); err == nil || errors.Is(err, strconv.ErrRange) {
			continue
		}
		text = append(text, c.featureNames[j])
	}
	if len(text) == 0 {
		return nil
	}
	if c.Columns.ModelFeatures != nil {
		return c.errorf(line, "column %q: its values are text, and features are numbers", text[0]).WithNote("%s",
			adviceModelFeature)
	}
	return c.undeclared(line, text, "its values are text, and features are numbers")
}
