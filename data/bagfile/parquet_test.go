package bagfile

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestParquet(t *testing.T) {
	want, err := Open("testdata/parquet/rows.csv")
	if err != nil {
		t.Fatal(err)
	}
	got, err := Open("testdata/parquet/rows.parquet")
	if err != nil {
		t.Fatal(err)
	}
	if got.Hash() != want.Hash() || !slices.Equal(got.BagNames, want.BagNames) || !slices.Equal(got.FeatureNames, want.FeatureNames) || !slices.Equal(got.Coords, want.Coords) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	renamed, err := OpenWith("testdata/parquet/rows.parquet", Options{Columns: Columns{Roles: Roles{Group: "label"}}})
	if err == nil || !strings.Contains(err.Error(), `the column "label" is used as label and as group`) {
		t.Errorf("the roles of CSV files: %v, %v", renamed, err)
	}
	list, err := OpenWith("testdata/parquet/list.parquet", Options{Columns: Columns{ModelClasses: []string{"a", "b"}}})
	if err != nil || !slices.Equal(list.FeatureNames, []string{"features_1", "features_2", "features_3"}) || !slices.Equal(list.Instances, bagValues(0, 4, 3)) {
		t.Errorf("%+v, %v", list, err)
	}
}

// Files with the instances of one bag stay on disk.
func TestParquetBags(t *testing.T) {
	folder, err := filepath.Abs("testdata/parquet")
	if err != nil {
		t.Fatal(err)
	}
	table := filepath.Join(t.TempDir(), "table.csv")
	text := "bag,label,candidates,file\n"
	for _, bag := range []string{"a,no,no,list.parquet", "b,yes,yes,list.parquet#features", "c,yes,yes,columns.parquet"} {
		text += strings.Replace(bag, ",list", ","+folder+"/list", 1) + "\n"
	}
	text = strings.Replace(text, ",columns", ","+folder+"/columns", 1)
	if err := os.WriteFile(table, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	d, err := Open(table)
	if err != nil {
		t.Fatal(err)
	}
	want := bagValues(0, 4, 3)
	for i := range d.Bags() {
		if x, err := d.Bag(i); err != nil || !slices.Equal(x, want) {
			t.Errorf("bag %d: %v, %v", i, x, err)
		}
		if at := d.CoordsOf(i); !slices.Equal(at, []float32{0, 0, 256, 512, 512, 1024, 768, 1536}) {
			t.Errorf("bag %d: coordinates %v", i, at)
		}
	}
	some := make([]float32, 6)
	if err := d.ReadSelected(some, 2, []int{1, 3}); err != nil || !slices.Equal(some, slices.Concat(want[3:6], want[9:12])) {
		t.Errorf("%v, %v", some, err)
	}
}

// Features of one file per bag are found by position, so that all files need the same columns.
func TestParquetBagColumns(t *testing.T) {
	folder, err := filepath.Abs("testdata/parquet")
	if err != nil {
		t.Fatal(err)
	}
	table := filepath.Join(t.TempDir(), "table.csv")
	open := func(want []string, files ...string) error {
		text := "bag,label,candidates,file\n"
		for i, file := range files {
			text += fmt.Sprintf("s%d,,no yes,%s\n", i+1, filepath.Join(folder, file))
		}
		if err := os.WriteFile(table, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := OpenWith(table, Options{Columns: Columns{ModelFeatures: want}})
		return err
	}
	names := []string{"f0", "f1", "f2"}
	for _, files := range [][]string{{"columns.parquet", "columns.parquet"}, {"list.parquet", "columns.parquet"}} {
		if err := open(names, files...); err != nil {
			t.Errorf("%v: %v", files, err)
		}
	}
	if err := open(nil, "columns.parquet", "list.parquet", "reversed.parquet"); err == nil || !strings.Contains(err.Error(), `bag 3 ("s3"): feature 1 is the column "f2", in bag 1 the column "f0"`) {
		t.Errorf("another order: %v", err)
	}
	if err := open(names, "reversed.parquet", "reversed.parquet"); err == nil || !strings.Contains(err.Error(), `feature 1 of the model, "f0", is at another position`) {
		t.Errorf("another order than the model: %v", err)
	}
}

func TestParquetErrors(t *testing.T) {
	for _, c := range []struct {
		path, want string
		columns    Columns
	}{
		{"testdata/parquet/missing.parquet", `missing.parquet:4: bag 2: feature 1 is "", not a number`, Columns{}},
		{"testdata/parquet/list.parquet", `the column "features" contains lists`, Columns{Roles: Roles{Candidates: "features"}, ModelClasses: []string{"a"}}},
		{"testdata/parquet/index.parquet", `"__index_level_0__": named like an identifier`, Columns{ModelClasses: []string{"a"}}},
		{"testdata/parquet/list.parquet", `the header has no column "bag"`, Columns{Ignore: []string{"x", "y"}}},
		{"../parquet/testdata/others.parquet", "others.parquet: error: the column \"when\" cannot be read: it contains times", Columns{}},
		{"../parquet/testdata/lz4.parquet", "the compression LZ4", Columns{ModelClasses: []string{"a"}}},
		{"../hdf5/testdata/none.parquet", "none.parquet", Columns{}},
	} {
		_, err := OpenWith(c.path, Options{Columns: c.columns})
		if err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), ": error:", ":"), strings.ReplaceAll(c.want, ": error:", ":")) {
			t.Errorf("%s: %v, expected %q", c.path, err, c.want)
		}
	}
}
