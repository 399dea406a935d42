// CSV files as Excel writes them.

package bagfile

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/miplc/miplc/internal/diag"
)

func TestSpreadsheets(t *testing.T) {
	for name, text := range map[string]string{
		"separator line":      "sep=;\r\nbag;label;f1;f2\r\na;x;0,5;1\r\nb;y;1,5;2\r\n",
		"with classes":        "sep=,\n# classes: x y\nbag,label,f1,f2\na,x,0.5,1\nb,y,1.5,2\n",
		"quoted separators":   "f1;\"f, 2\";label;bag\n0,5;1;x;a\n1,5;2;y;b\n",
		"quotes in quotes":    "\"f \"\"a;b\"\", 1\",f2,label,bag\n0.5,1,x,a\n1.5,2,y,b\n",
		"empty rows":          "bag,label,f1,f2\na,x,0.5,1\n,,,\nb,y,1.5,2\n,,,\n , , , \n",
		"empty columns":       "bag;label;f1;f2;;\na;x;0,5;1;;\nb;y;1,5;2;;\n;;;;;\n",
		"columns without end": "bag,label,f1,f2,\na,x,0.5,1\nb,y,1.5,2,\n",
	} {
		d, err := decodeCSV(strings.NewReader(text), "x.csv", Reading{Labels: KnownLabels})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if want := []float32{0.5, 1, 1.5, 2}; !slices.Equal(d.Instances, want) || fmt.Sprint(d.ClassNames) != "[x y]" ||
			d.Bags() != 2 {
			t.Errorf("%s: %v, classes %v", name, d.Instances, d.ClassNames)
		}
	}
	for text, want := range map[string]string{
		"bag,label,f1,\na,x,1,\nb,y,2,7\n":             `x.csv:3: field 4 is "7", but its column has no name in the header`,
		"sep=;\nbag;label;f1\na;x;1\nb;y;one\n":        `x.csv:4:5: bag 2: feature 1 is "one", not a number`,
		"sep=;\n# classes: x y\nbag;label;f1\na;z;1\n": `x.csv:4: bag 1: "z" is not a class of the first line`,
		"bag,label,f1\na,x,\"1,000\"\nb,y,2\n":         `x.csv:2:5: bag 1: feature 1 is "1,000", not a number`,
	} {
		_, err := decodeCSV(strings.NewReader(text), "x.csv", Reading{Labels: KnownLabels})
		if err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
		var d diag.Diagnostic
		if advice := "separates thousands, remove it"; strings.Contains(text, "1,000") && (!errors.As(err, &d) ||
			!strings.Contains(strings.Join(d.Notes, ""), advice)) {
			t.Errorf("%q: %q", text, d.Notes)
		}
	}
}

// Points between thousands are read as decimal points: there is a warning if all numbers may have them.
func TestPointsBetweenThousands(t *testing.T) {
	for text, warned := range map[string]bool{
		"bag;label;f1\na;x;1.037\nb;y;12.500\nc;x;7\n": true,
		"bag;label;f1\na;x;1.037\nb;y;0.500\n":         false,
		"bag;label;f1\na;x;1.037\nb;y;1.5\n":           false,
		"bag,label,f1\na,x,1.037\nb,y,12.500\n":        false,
	} {
		d, err := decodeCSV(strings.NewReader(text), "x.csv", Reading{Labels: KnownLabels})
		if err != nil || (len(d.Warnings) > 0) != warned {
			t.Errorf("%q: %v, %v", text, d.Warnings, err)
		}
	}
}
