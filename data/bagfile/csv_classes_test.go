// The names of classes survive writing and reading.

package bagfile

import (
	"bytes"
	"testing"
)

// Classes that the rows do not show, or that a reader would refuse, come back from a CSV file.
func TestClassesOfWrittenCSV(t *testing.T) {
	forModel := Reading{Columns: Columns{ModelClasses: []string{"a", "b"}}} // data of a model may lack classes
	for name, names := range map[string][]string{
		"no bag has b":          {"a", "b", "c"},
		"not alphabetical":      {"c", "b", "a"},
		"numbers":               {"000", "1", "02"},
		"a class is called nan": {"a", "b", "nan"},
		"numbers with a point":  {"1.0", "2.0", "3.0"},
		"commas in names":       {"a,b", "b", "c"},
	} {
		d := small()
		d.ClassNames = names
		d.Labels, d.Candidates, d.InstLabels = nil, []uint8{1, 0, 1, 1, 0, 0, 0, 0, 1}, nil
		var text bytes.Buffer
		if err := writeCSV(&text, d); err != nil {
			t.Fatal(err)
		}
		got, err := decodeCSV(bytes.NewReader(text.Bytes()), "bags.csv", forModel)
		if err != nil || got.Hash() != d.Hash() {
			t.Errorf("%s: %v, from\n%s", name, err, text.Bytes())
		}
	}
}
