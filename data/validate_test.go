// Faults of a dataset are found and named.

package data_test

import (
	"math"
	"strings"
	"testing"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/generate"
	"github.com/miplc/miplc/internal/diag"
)

func TestValidate(t *testing.T) {
	if err := small().Validate("x.npz"); err != nil {
		t.Fatalf("a valid set: %v", err)
	}
	nan, inf := float32(math.NaN()), float32(math.Inf(-1))
	for _, c := range []struct {
		name   string
		change func(*data.Dataset)
		want   string
	}{
		{"truth outside", func(d *data.Dataset) { d.Labels[1] = 0 },
			`x.npz: bag 2: the true label "wren" is not among the candidates {jay, crow}`},
		{"empty bag", func(d *data.Dataset) { d.Offsets[2] = 2 }, `x.npz: bag 2 is empty; a bag needs at least one instance`},
		{"offsets fall", func(d *data.Dataset) { d.Offsets[1] = 4 },
			`x.npz: bag 2: the offsets fall from 4 to 3; they must increase`},
		{"offsets start", func(d *data.Dataset) { d.Offsets[0] = 1 }, `x.npz: the offsets start at 1, not at 0`},
		{"offsets end", func(d *data.Dataset) { d.Offsets[3] = 7 },
			`x.npz: the bags end at instance 7, but the data have 6 instances`},
		{"NaN", func(d *data.Dataset) { d.Instances[3] = nan },
			`x.npz: bag 1: feature 2 of instance 2 is NaN; features must be finite (float32)`},
		{"Inf", func(d *data.Dataset) { d.Instances[6] = inf },
			`x.npz: bag 3: feature 1 of instance 1 is -Inf; features must be finite (float32)`},
		{"no candidate", func(d *data.Dataset) { copy(d.Candidates[3:], []uint8{0, 0, 0}); d.Labels[1] = -1 },
			`x.npz: bag 2 has no candidate label`},
		{"class without examples", func(d *data.Dataset) {
			d.Candidates[2], d.Candidates[5], d.Candidates[8] = 0, 0,
				0
			d.Labels[1] = 1
		},
			`x.npz: class "crow" has no examples: it is a candidate of no bag`},
		{"candidate entry", func(d *data.Dataset) { d.Candidates[0] = 2 },
			`x.npz: bag 1: the candidate entry of class "wren" is 2; it must be 0 or 1`},
		{"label off by one", func(d *data.Dataset) { d.Labels[2] = 3 },
			`x.npz: bag 3: the true label 3 is out of range; classes count from 0 to 2, -1 means unknown`},
		{"label below", func(d *data.Dataset) { d.Labels[2] = -2 },
			`x.npz: bag 3: the true label -2 is out of range; classes count from 0 to 2, -1 means unknown`},
		{"instance label", func(d *data.Dataset) { d.InstLabels[2] = 9 },
			`x.npz: bag 2: the label 9 of instance 1 is out of range; classes count from 0 to 2, -1 means negative or unknown`},
		{"labels too few", func(d *data.Dataset) { d.Labels = d.Labels[:2] }, `x.npz: 2 true labels for 3 bags`},
		{"instance labels too few", func(d *data.Dataset) { d.InstLabels = d.InstLabels[:2] },
			`x.npz: 2 instance labels for 6 instances`},
		{"candidates too few", func(d *data.Dataset) { d.Candidates = d.Candidates[:8] },
			`x.npz: the candidates have 8 values; 3 bags of 3 classes need 9`},
		{"names too few", func(d *data.Dataset) { d.ClassNames = d.ClassNames[:2] }, `x.npz: 2 class names for 3 classes`},
		{"name twice", func(d *data.Dataset) { d.ClassNames[2] = "wren" },
			`x.npz: classes 0 and 2 (counted from 0) are both named "wren"`},
		{"name empty", func(d *data.Dataset) { d.ClassNames[1] = "" }, `x.npz: class 1 (counted from 0) has an empty name`},
		{"name of bytes", func(d *data.Dataset) { d.ClassNames[1] = "\xff" },
			`x.npz: class 1 (counted from 0) has the name "\xff", which is not plain text (UTF-8)`},
		{"bag names too few", func(d *data.Dataset) { d.BagNames = d.BagNames[:2] }, `x.npz: 2 bag names for 3 bags`},
		{"bag name twice", func(d *data.Dataset) { d.BagNames[2] = "a/2.png" },
			`x.npz: bags 2 and 3 are both named "a/2.png"`},
		{"bag name with spaces", func(d *data.Dataset) {
			d.BagNames[1] = " x"
		}, `x.npz: bag 2 has the name " x", which is empty, not plain text (UTF-8), or has spaces around it`},
		{"half an instance", func(d *data.Dataset) { d.Instances, d.InstLabels = d.Instances[:11], nil },
			`x.npz: the number of values, 11, is not a multiple of the features of an instance, 2`},
		{"no bags", func(d *data.Dataset) { d.Offsets = []int{0} }, `x.npz: no bags`},
		{"nothing", func(d *data.Dataset) { *d = data.Dataset{} },
			`x.npz: the instances have no shape; at least one feature is needed`},
		{"one class", func(d *data.Dataset) { d.Classes = 1 }, `x.npz: the number of classes is 1; at least 2 are needed`},
		{"no features", func(d *data.Dataset) { d.Shape = []int{2, 0} },
			`x.npz: the shape [2 0] of an instance is not usable; every extent must be at least 1`},
		{"overflow", func(d *data.Dataset) { d.Shape = []int{1 << 40, 1 << 40} },
			`x.npz: the shape [1099511627776 1099511627776] of an instance is not usable; every extent must be at least 1`},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := small()
			c.change(d)
			err := d.Validate("x.npz")
			if err == nil {
				t.Fatal("no error")
			}
			if err.Error() != c.want {
				t.Errorf("got  %s\nwant %s", err, c.want)
			}
		})
	}
}

// A file with many errors gives a list of limited length.
func TestValidateStopsCounting(t *testing.T) {
	o := generate.DefaultPrototypes
	o.Bags = 2000
	d, err := generate.Prototypes(o)
	if err != nil {
		t.Fatal(err)
	}
	for i := range d.Labels {
		d.Labels[i] = 5
	}
	list, ok := d.Validate("x").(diag.List)
	if !ok || len(list) != diag.MaxFound || !strings.Contains(list.Error(), "and at least 980 more errors") ||
		strings.Count(list.Error(), "\n") != 20 {
		t.Errorf("%d entries: %v", len(list), list)
	}
}
