// Validation of datasets.

package data

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/ndarray"
)

// Validate checks the invariants of Dataset. It returns all violations as a diag.List, each with
// source (a path, or the generator) and the bag, counted from 1.
//
// A bag needs at least one instance and, unless it has any number of true labels, one candidate
// label. A known true label must be among the candidates unless d.Noisy, and all numbers must be finite. A class that
// is not a candidate of any bag is an error, because it cannot be learnt and usually means that labels are
// counted from the wrong number. A class without a true label is allowed: true labels may be unknown, and a class may
// occur only as a false positive.
func (d *Dataset) Validate(source string) error { return d.validate(source, true) }

// ValidateToPredict is Validate for bags that a model will predict: classes need no examples, and
// without any class the bags need no candidates.
func (d *Dataset) ValidateToPredict(source string) error { return d.validate(source, false) }

func (d *Dataset) validate(source string, training bool) error {
	v := validator{d: d, source: source, training: training}
	v.shape()
	if len(v.list) > 0 {
		return v.list.Err() // wrong lengths: later checks could not index
	}
	v.instances()
	v.coords()
	v.candidates()
	v.labels()
	v.classNames()
	v.names(d.BagNames, "bag %d has the name", "bags")
	v.names(d.Groups, "bag %d has the group", "")
	v.names(d.FeatureNames, "feature %d has the name", "features")
	return v.list.Err()
}

// coords checks that all coordinates are finite.
func (v *validator) coords() {
	for i := range v.d.Bags() {
		first := 1
		for _, f := range v.d.Files(i) {
			if j := ndarray.FirstNotFinite(f.Coords); j >= 0 {
				v.errorf("bag %d: instance %d has the coordinate %v; coordinates must be finite", i+1, first+j/2, f.Coords[j])
				return
			}
			first += f.Instances
		}
	}
}

type validator struct {
	d      *Dataset
	source string
	list   diag.List

	training bool // the bags may train a model
}

func (v *validator) errorf(format string, args ...any) {
	v.list.Add(diag.Errorf(diag.Pos{File: v.source}, format, args...))
}

// shape checks the lengths of all fields, so that later checks may index.
func (v *validator) shape() {
	d := v.d
	dim, ok := ndarray.SizeWithin(d.Shape, math.MaxInt)
	switch {
	case len(d.Shape) == 0:
		v.errorf("the instances have no shape; at least one feature is needed")
		return
	case !ok || dim == 0:
		v.errorf("the shape %v of an instance is not usable; every extent must be at least 1", d.Shape)
		return
	case d.Classes < 2 && v.training:
		v.errorf("the number of classes is %d; at least 2 are needed", d.Classes)
		return
	case len(d.Offsets) < 2:
		v.errorf("no bags")
		return
	}
	v.offsets(dim)
	bags := d.Bags()
	if len(d.Candidates) != bags*d.Classes {
		v.errorf("the candidates have %d values; %s of %s need %d", len(d.Candidates), diag.Count(bags, "bag"),
			diag.Count(d.Classes, "class"), bags*d.Classes)
	}
	n := len(d.Instances) / dim
	if d.OnDisk() {
		n = d.Offsets[bags]
	}
	check := func(present bool, have int, what string, want int, of string) {
		if present && have != want {
			v.errorf("%s for %s", diag.Count(have, what), diag.Count(want, of))
		}
	}
	check(d.Labels != nil, len(d.Labels), "true label", bags, "bag")
	check(d.InstLabels != nil, len(d.InstLabels), "instance label", n, "instance")
	check(d.ClassNames != nil, len(d.ClassNames), "class name", d.Classes, "class")
	check(d.FeatureNames != nil, len(d.FeatureNames), "feature name", dim, "feature")
	check(d.Groups != nil, len(d.Groups), "group", bags, "bag")
	check(d.BagNames != nil, len(d.BagNames), "bag name", bags, "bag")
	if d.Coords != nil && len(d.Coords) != 2*n {
		v.errorf("%s for %s; each has x and y", diag.Count(len(d.Coords), "coordinate"), diag.Count(n, "instance"))
	}
}

func (v *validator) offsets(dim int) {
	d := v.d
	if d.Offsets[0] != 0 {
		v.errorf("the offsets start at %d, not at 0", d.Offsets[0])
	}
	for i := range d.Bags() {
		switch lo, hi := d.Offsets[i], d.Offsets[i+1]; {
		case lo == hi:
			v.errorf("bag %d is empty; a bag needs at least one instance", i+1)
		case lo > hi:
			v.errorf("bag %d: the offsets fall from %d to %d; they must increase", i+1, lo, hi)
		}
	}
	if d.OnDisk() {
		return
	}
	if len(d.Instances)%dim != 0 {
		v.errorf("the number of values, %d, is not a multiple of the features of an instance, %d", len(d.Instances), dim)
	} else if n, last := len(d.Instances)/dim, d.Offsets[d.Bags()]; last != n {
		v.errorf("the bags end at instance %d, but the data have %s", last, diag.Count(n, "instance"))
	}
}

// instances checks the features of a dataset in memory. A Store checks the rows that it reads.
func (v *validator) instances() {
	d := v.d
	if d.OnDisk() {
		return
	}
	for i := range d.Bags() {
		x, _ := d.Bag(i) // which is in memory
		if err := CheckFinite(x, d.Dim(), 0); err != nil {
			v.errorf("bag %d: %v", i+1, err)
		}
	}
}

func (v *validator) candidates() {
	d := v.d
	seen := make([]bool, d.Classes)
	for i := range d.Bags() {
		any := false
		for c, s := range d.CandidateMask(i) {
			if s > 1 {
				v.errorf("bag %d: the candidate entry of class %s is %d; it must be 0 or 1", i+1, v.className(c), s)
			}
			if s != 0 {
				any, seen[c] = true, true
			}
		}
		if !any && !d.Multi && d.Classes > 0 {
			v.errorf("bag %d has no candidate label", i+1)
		}
	}
	for c, ok := range seen {
		if ok || !v.training {
			continue
		}
		if d.Multi {
			v.errorf("class %s has no examples: it is a label of no bag", v.className(c))
		} else {
			v.errorf("class %s has no examples: it is a candidate of no bag", v.className(c))
		}
	}
}

func (v *validator) labels() {
	d := v.d
	if len(d.Labels) > 0 && slices.Max(d.Labels) == d.Classes && slices.Min(d.Labels) == 1 {
		v.errorf("the true labels count from 1 to %d; classes count from 0 to %d: take 1 from each", d.Classes, d.Classes-1)
		return
	}
	for i, c := range d.Labels {
		switch {
		case c == -1: // unknown
		case c < -1 || c >= d.Classes:
			v.errorf("bag %d: the true label %d is out of range; classes count from 0 to %d, -1 means unknown", i+1, c,
				d.Classes-1)
		case d.CandidateMask(i)[c] == 0 && v.training && !d.Noisy && slices.Contains(d.CandidateMask(i), 1):
			names := d.CandidateNames(i)
			if len(names) > 10 {
				names = append(names[:10], "...")
			}
			v.errorf("bag %d: the true label %s is not among the candidates {%s}", i+1, v.className(c),
				strings.Join(names, ", "))
		}
	}
	if d.InstLabels == nil {
		return
	}
	for i := range d.Bags() {
		for j, c := range d.InstLabels[d.Offsets[i]:d.Offsets[i+1]] {
			if c < -1 || c >= d.Classes {
				v.errorf("bag %d: the label %d of instance %d is out of range; classes count from 0 to %d, -1 means negative or "+
					"unknown", i+1, c, j+1, d.Classes-1)
				break
			}
		}
	}
}

// classNames checks that the names of classes are distinct plain text.
func (v *validator) classNames() {
	first := map[string]int{}
	for c, name := range v.d.ClassNames {
		other, twice := first[name]
		switch {
		case name == "":
			v.errorf("class %d (counted from 0) has an empty name", c)
		case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
			v.errorf("class %d (counted from 0) has the name %q, which is not plain text (UTF-8)", c, name)
		case twice:
			v.errorf("classes %d and %d (counted from 0) are both named %q", other, c, name)
		default:
			first[name] = c
		}
	}
}

// names checks that names are plain text, and distinct if the plural of what they name is not
// empty. format describes entry %d, counted from 1, e.g. "bag %d has the name".
func (v *validator) names(names []string, format, plural string) {
	first := map[string]int{}
	for i, name := range names {
		if !PlainName(name) {
			v.errorf(format+" %q, which is empty, not plain text (UTF-8), or has spaces around it", i+1, name)
		} else if MissingMark(name) && plural != "features" { // a column may have any name
			v.errorf(format+" %q, %s", i+1, name, WrittenForMissing)
		} else if other, twice := first[name]; twice && plural != "" {
			v.errorf("%s %d and %d are both named %q", plural, other+1, i+1, name)
		} else {
			first[name] = i
		}
	}
}

// PlainName reports whether every file format can store the name of a bag, group or feature
// unchanged.
func PlainName(name string) bool {
	return name != "" && utf8.ValidString(name) && !strings.ContainsFunc(name, unicode.IsControl) &&
		strings.TrimSpace(name) == name
}

// className returns class c for a message.
func (v *validator) className(c int) string {
	if v.d.ClassNames != nil && v.d.ClassNames[c] != "" {
		return fmt.Sprintf("%q", v.d.ClassNames[c])
	}
	return fmt.Sprintf("%d (counted from 0)", c)
}

// CheckFinite returns an error for the first value of x that is NaN or infinite. x has
// rows of dim features, which are instances from number firstRow (from 0) on.
func CheckFinite(x []float32, dim, firstRow int) error {
	if i := ndarray.FirstNotFinite(x); i >= 0 {
		return fmt.Errorf("feature %d of instance %d is %v; features must be finite (float32)", i%dim+1, firstRow+i/dim+1,
			x[i])
	}
	return nil
}
