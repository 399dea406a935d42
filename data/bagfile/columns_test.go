// The meanings of columns.

package bagfile

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/miplc/miplc/internal/diag"
)

// Columns that do not look like features must be declared or are rejected. They are never used as
// features.
func TestColumns(t *testing.T) {
	const head, row = "bag,label,candidates", "\n1,a,a b"
	rows := func(names, values string) string {
		return head + names + row + values + "\n2,b,a b" + values + "\n"
	}
	for _, c := range []struct {
		name, text string
		columns    Columns
		features   int
		want       string // error
	}{
		{"numbered", rows(",f1,f2", ",1,2"), Columns{}, 2, ""},
		{"own names", rows(",mean_area,feature_0,x1,Eccentricity,identity", ",1,2,3,4,5"), Columns{}, 5, ""},
		{"coordinates", rows(",x,y,f1", ",1,2,3"), Columns{}, 1, ""},
		{"x alone", rows(",x,f1", ",1,2"), Columns{}, 0, `column "x": named like`},
		{"other coordinates", rows(",f1,col,row,x", ",1,2,3,4"), Columns{Coordinates: []string{"col", "row"},
			Features: []string{"x"}}, 2, ""},
		{"missing coordinates", rows(",f1,col", ",1,2"), Columns{Coordinates: []string{"col", "row"}}, 0,
			`the header has no column "row"`},
		{"missing coordinates of a model", rows(",f1", ",1"), Columns{Coordinates: []string{"col", "row"},
			ModelFeatures: []string{"f1"}}, 1, ""},
		{"coordinates that are labels", rows(",f1", ",1"), Columns{Coordinates: []string{"bag", "f1"}}, 0,
			`"bag" is used as a coordinate and as bag`},
		{"text of a coordinate", rows(",x,y,f1", ",left,2,3"), Columns{}, 0, `bags.csv:2:9: bag 1: the coordinate is "left"`},
		{"coordinates of a model", rows(",y,f1,x", ",1,2,3"), Columns{ModelFeatures: []string{"f1", "x"}}, 2, ""},
		{"identifier", rows(",Patient ID,f1", ",7,3"), Columns{}, 0, `column "Patient ID": named like`},
		{"ending", rows(",slide_id,f1", ",7,3"), Columns{}, 0, `column "slide_id": named like`},
		{"text", rows(",scanner,f1,stain", ",Zeiss,3,HE"), Columns{}, 0, `columns "scanner", "stain": its values are text`},
		{"ignored", rows(",x,f1,scanner,f2", ",9,3,Zeiss,4"), Columns{Ignore: []string{"x", "scanner"}}, 2, ""},
		{"declared", rows(",x,y", ",1,2"), Columns{Features: []string{"x", "y"}}, 2, ""},
		{"nothing left", rows(",x", ",1"), Columns{Ignore: []string{"x"}}, 0, "names no feature"},
		{"twice", rows(",f1,f1", ",1,2"), Columns{}, 0, `two columns are named "f1"`},
		{"wanted", rows(",scanner,x,f2", ",Zeiss,1,2"), Columns{ModelFeatures: []string{"f2", "x"}}, 2, ""},
		{"wanted, missing", rows(",f1,g", ",1,2"), Columns{ModelFeatures: []string{"f1", "f2"}}, 0,
			`feature 2 of the model, "f2", is missing; the data has "g" instead`},
		{"wanted, fewer", rows(",f1", ",1"), Columns{ModelFeatures: []string{"f1", "f2"}}, 0,
			`feature 2 of the model, "f2", is missing`},
		{"wanted, twice", rows(",f1,f1", ",1,2"), Columns{ModelFeatures: []string{"f1"}}, 0, `two columns are named "f1"`},
		{"roles", "scanner,f1,class,set,image,f2\nZeiss,1,a,a b,one,2\nZeiss,3,b,a b,two,4\n",
			Columns{Roles: Roles{Bag: "image", Label: "class", Candidates: "set"}, Ignore: []string{"scanner"}}, 2, ""},
		{"role in two cases", "bag,Class,class,candidates,f1\n1,tumor,a,a b,1\n2,normal,b,a b,2\n",
			Columns{Roles: Roles{Label: "class"}, Ignore: []string{"Class"}}, 1, ""},
		{"missing role", rows(",f1", ",1"), Columns{Roles: Roles{Bag: "image"}}, 0, `the header has no column "image"`},
		{"longer name", "Bag_ID,label,candidates,f1\na,x,x,1\n", Columns{}, 0,
			`the header has no column "bag" (did you mean "Bag_ID"?)`},
		{"missing role of a model", rows(",f1", ",1"), Columns{Roles: Roles{Bag: "image"}, ModelFeatures: []string{"f1"}}, 1,
			""},
		{"two roles", rows(",f1", ",1"), Columns{Roles: Roles{Bag: "label"}}, 0, `is used as bag and as label`},
		{"row numbers", rows(",,f1", ",1,2"), Columns{}, 0, "a column has no name"},
		{"missing label", "bag,label,candidates,f1\na,x,x y,1\nb,y,nan,2\n", Columns{}, 0,
			`bags.csv:3: bag 2: the label is "nan", as programs write a missing value`},
		{"listed class nan", "# classes: nan x\nbag,label,candidates,f1\na,x,x nan,1\n", Columns{}, 1, ""},
	} {
		d, err := decodeCSV(strings.NewReader(c.text), "bags.csv", Reading{Columns: c.columns})
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.want == "" && d.Dim() != c.features:
			t.Errorf("%s: %d features", c.name, d.Dim())
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v", c.name, err)
		}
		if list, ok := diag.ListOf(err); ok && strings.Contains(c.want, "named like") &&
			!slices.ContainsFunc(list[0].Notes, func(n string) bool { return strings.Contains(n, "--ignore-columns") }) {
			t.Errorf("%s: no advice in %v", c.name, list)
		}
	}
	_, err := decodeCSV(strings.NewReader(rows(",f1", ",1")), "bags.csv",
		Reading{Columns: Columns{ModelFeatures: []string{"f1", "f2"}}})
	if err == nil || strings.Contains(err.Error(), "did you mean") {
		t.Errorf("another feature of the model is suggested for a missing one: %v", err)
	}
	d, err := decodeCSV(strings.NewReader(rows(",x,f1,scanner,f2", ",9,3,Zeiss,4")), "bags.csv",
		Reading{Columns: Columns{Ignore: []string{"x", "scanner"}}})
	if err != nil || !slices.Equal(d.Instances, []float32{3, 4, 3, 4}) ||
		!slices.Equal(d.FeatureNames, []string{"f1", "f2"}) {
		t.Errorf("%v, %v, %v", d.Instances, d.FeatureNames, err)
	}
	d, err = decodeCSV(strings.NewReader(rows(",y,f1,x", ",1,2,3")), "bags.csv", Reading{})
	if err != nil || !slices.Equal(d.Coords, []float32{3, 1, 3, 1}) || !slices.Equal(d.CoordsOf(1), []float32{3, 1}) {
		t.Errorf("%v, %v", d, err)
	}
	var table, arrays bytes.Buffer
	if err := errors.Join(writeCSV(&table, d), writeNPZ(&arrays, d)); err != nil {
		t.Fatal(err)
	}
	fromCSV, err := decodeCSV(&table, "bags.csv", Reading{})
	if err != nil || !slices.Equal(fromCSV.Coords, d.Coords) {
		t.Errorf("%v, %v", fromCSV, err)
	}
	fromNPZ, err := decodeNPZ(bytes.NewReader(arrays.Bytes()), int64(arrays.Len()), "bags.npz", Reading{})
	if err == nil {
		fromNPZ, err = fromNPZ.Select([]int{1})
	}
	if err != nil || !slices.Equal(fromNPZ.Coords, d.CoordsOf(1)) {
		t.Errorf("%v, %v", fromNPZ, err)
	}
	d, err = decodeCSV(strings.NewReader(rows(",scanner,x,f2", ",Zeiss,1,2")), "bags.csv",
		Reading{Columns: Columns{ModelFeatures: []string{"f2", "x"}}})
	if err != nil || !slices.Equal(d.Instances, []float32{2, 1, 2, 1}) {
		t.Errorf("in the order of a model: %v, %v", d.Instances, err)
	}
	_, err = decodeCSV(strings.NewReader("bag,label,candidates,f1,stain\n1,a,a b,1,2\n2,b,a b,3,HE\n"), "bags.csv",
		Reading{})
	list, _ := diag.ListOf(err)
	if len(list) != 1 || list[0].Error() == "" || !strings.Contains(err.Error(),
		`bags.csv:3:11: error: bag 2: feature 2 is "HE", not a number`) &&
		!strings.Contains(err.Error(), `bags.csv:3:11: bag 2`) || !slices.ContainsFunc(list[0].Notes, func(n string) bool {
		return strings.Contains(n, `"stain"`)
	}) {
		t.Errorf("text in the second row: %v", list)
	}
}
