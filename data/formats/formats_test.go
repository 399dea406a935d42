// The documentation lists the formats of the table, and the advice for Parquet.

package formats

import (
	"os"
	"strings"
	"testing"
)

// The tables of formats in the documentation have every ending.
func TestFormatsAreDocumented(t *testing.T) {
	for page, list := range map[string]Endings{"data.md": Readable(), "large-data.md": OneBag()} {
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
		OneBag().List():     ".npz, .h5, .hdf5, .safetensors, .npy",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if !Readable().Match("a/B.CSV.gz") || Readable().Match("a.gz") || Readable().Match("a.h5") || Readable().Match("csv") {
		t.Error("Match")
	}
}

// The commands ran in pandas 2.3 and 3.1.
func TestConvertParquet(t *testing.T) {
	for _, c := range []struct{ path, to, want string }{
		{"a.parquet", ".csv", `python3 -c 'import sys, pandas; pandas.read_parquet(sys.argv[1])` +
			`.to_csv(sys.argv[2], index=False)' a.parquet a.csv`},
		{"my bags.Parquet", ".npz", `python3 -c 'import sys, numpy, pandas; t = pandas.read_parquet(sys.argv[1]); ` +
			`numpy.savez(sys.argv[2], features=numpy.array(t.drop(columns=["x", "y"], errors="ignore"), "float32", ` +
			`order="C"), ` +
			`coords=numpy.array(t.filter(["x", "y"]), order="C"))' 'my bags.Parquet' 'my bags.npz'`},
	} {
		if got := ConvertParquet(c.path, c.to); got != "convert the file: "+c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
	d := UnknownFormat("a.parquet", "read", ".csv")
	if len(d.Notes) != 1 || d.Notes[0] != ConvertParquet("a.parquet", ".csv") {
		t.Errorf("%#v", d)
	}
}
