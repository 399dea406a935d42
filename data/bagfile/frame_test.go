// Tests of what pandas writes: booleans, lists of labels, and the columns of frames that the Python package hands over.

package bagfile

import (
	"slices"
	"strings"
	"testing"
)

func TestBooleansAreNumbers(t *testing.T) {
	text := "bag,label,candidates,stained,f\na,u,u,True,0.5\na,,,false,1\nb,v,v,TRUE,2\n"
	d, err := decodeCSV(strings.NewReader(text), "bags.csv", Reading{})
	if err != nil {
		t.Fatal(err)
	}
	if want := []float32{1, 0.5, 0, 1, 1, 2}; !slices.Equal(d.Instances, want) {
		t.Errorf("instances %v, want %v", d.Instances, want)
	}
	for _, text := range []string{
		"bag,label,candidates,stained,f\na,u,u,yes,0.5\nb,v,v,no,2\n", // text
		"bag,label,candidates,f,x,y\na,u,u,1,True,2\nb,v,v,2,False,3\n",
	} {
		if _, err := decodeCSV(strings.NewReader(text), "bags.csv", Reading{}); err == nil {
			t.Errorf("no error for %q", text)
		}
	}
}

func TestListsOfLabels(t *testing.T) {
	for _, test := range []struct {
		name, label, candidates string
		want                    string // the classes, otherwise a part of the error
	}{
		{"names with spaces", "New York", `["New York", "Oslo, N"]`, "New York|Oslo, N|v"},
		{"one", "", `["u"]`, "u|v"},
		{"spaces around names", "", `[ " u " ]`, "u|v"},
		{"twice", "", `["u", "u"]`, "twice"},
		{"missing value", "", `["u", "nan"]`, "as programs write a missing value"},
		{"empty name", "", `["u", null]`, "empty name"},
		{"empty", "", `[]`, "no candidate label"},
		{"other label", "New York", `["u"]`, "is not among the candidates"},
		{"of Python", "", `['u']`, "does not look like the name of a class"},
		{"of numbers", "", `[1]`, "does not look like the name of a class"},
	} {
		t.Run(test.name, func(t *testing.T) {
			text := "bag,label,candidates,f\na," + quoteCSV(test.label) + "," + quoteCSV(test.candidates) + ",1\nb,v,v,2\n"
			d, err := decodeCSV(strings.NewReader(text), "bags.csv", Reading{})
			if err != nil {
				if !strings.Contains(err.Error(), test.want) {
					t.Errorf("error %q, want %q", err, test.want)
				}
				return
			}
			if got := strings.Join(d.ClassNames, "|"); got != test.want {
				t.Errorf("classes %s, want %s", got, test.want)
			}
		})
	}
	text := "bag,label,f\na,\"[\"\"New York\"\", \"\"u\"\"]\",1\nb,u,2\n"
	d, err := decodeCSV(strings.NewReader(text), "bags.csv", Reading{Labels: MultiLabels})
	if err != nil || !slices.Equal(d.ClassNames, []string{"New York", "u"}) {
		t.Errorf("several labels: %v, %v", d, err)
	}
}

// The rows of a frame lack the columns of numbers at the end, and need not have any text.
func TestRowsOfAFrame(t *testing.T) {
	for _, test := range []struct {
		name, text string
		columns    Columns
		want       string // the features, otherwise a part of the error
	}{
		{"numbers", "bag,label,f,g\na,u\nb,v\n", Columns{}, "f|g"},
		{"text and numbers", "bag,label,t,f\na,u,1\nb,v,2\n", Columns{}, "t|f"},
		{"declared", "bag,label,time,f,g\na,u\nb,v\n", Columns{Features: []string{"g", "time"}, OnlyFeatures: true},
			"g|time"},
		{"a column of files", "bag,label,file,f\na,u,1\nb,v,2\n", Columns{}, "file|f"},
		{"row without text", "bag,label,f\na,u\n,\n", Columns{}, "the column bag is empty"},
		{"missing coordinate", "bag,label,f,x,y\na,u,1\nb,v,1\n", Columns{}, "the coordinate is"},
		{"no number", "bag,label,t,f\na,u,1\nb,v,z\n", Columns{}, `the column "t" is "z", not a number`},
		{"no such column", "bag,label,f\na,u\nb,v\n", Columns{Ignore: []string{"g"}}, `no column "g"`},
		{"two of one name", "bag,label,f,f\na,u\nb,v\n", Columns{Features: []string{"f"}, OnlyFeatures: true}, "two columns"},
		{"no name", "bag,label,\"\",f\na,u,1\nb,v,2\n", Columns{}, "a column has no name"},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := Reading{Form: FrameForm, DetectLabels: true, Columns: test.columns}
			d, err := decodeCSV(strings.NewReader(test.text), "frame.csv", o)
			if err != nil {
				if !strings.Contains(err.Error(), test.want) {
					t.Errorf("error %q, want %q", err, test.want)
				}
				return
			}
			if got := strings.Join(d.FeatureNames, "|"); got != test.want || len(d.Instances) != 4 {
				t.Errorf("features %s of %v, want %s", got, d.Instances, test.want)
			}
		})
	}
}
