// The documentation lists the formats of the table.

package bagfile

import (
	"os"
	"strings"
	"testing"
)

// The tables of formats in the documentation have every ending.
func TestFormatsAreDocumented(t *testing.T) {
	for page, list := range map[string]Endings{"data.md": Readable(), "large-data.md": oneBag()} {
		text, err := os.ReadFile("../../docs/" + page)
		if err != nil {
			t.Fatal(err)
		}
		for _, ending := range list {
			if !strings.Contains(string(text), "`"+ending+"`") {
				t.Errorf("docs/%s does not mention %s", page, ending)
			}
		}
	}
}

// The lists of endings as messages and help texts show them.
func TestEndings(t *testing.T) {
	for got, want := range map[string]string{
		Readable().List():   ".npz, .mat, .csv, .csv.gz",
		Writable().Or():     ".npz, .csv or .csv.gz",
		WithColumns().And(): ".csv and .csv.gz",
		WithLabels().And():  ".npz, .csv and .csv.gz",
		oneBag().List():     ".npz, .h5, .hdf5, .safetensors, .npy",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if !Readable().Match("a/B.CSV.gz") || Readable().Match("a.gz") || Readable().Match("a.h5") || Readable().Match("csv") {
		t.Error("Match")
	}
}
