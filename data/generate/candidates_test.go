// From the answers of annotators to candidate sets.

package generate

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/rawfile"
	"github.com/miplc/miplc/internal/diag"
)

func write(t testing.TB, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// Each case has the rows of three annotators over the classes A to D, and the expected candidates.
func TestDistill(t *testing.T) {
	for _, c := range []struct {
		name   string
		said   [][]float64
		want   []float64
		picked bool
	}{
		{"in two sets", [][]float64{{.6, .4, 0, 0}, {.5, 0, .5, 0}, {0, .3, 0, .7}}, []float64{1, 1, 0, 0}, false},
		{"in all three", [][]float64{{.6, .4, 0, 0}, {.9, .1, 0, 0}, {.2, .8, 0, 0}}, []float64{1, 1, 0, 0}, false},
		{"however unlikely", [][]float64{{.999, .001, 0, 0}, {.999, 0, .001, 0}, {0, .001, 0, .999}}, []float64{1, 1, 0, 0},
			false},
		{"one label agreed on", [][]float64{{1, 0, 0, 0}, {.9, .1, 0, 0}, {0, 0, .3, .7}}, []float64{1, 0, 0, 1}, true},
		{"the agreed label is nobody's first", [][]float64{{.6, .4, 0, 0}, {0, .3, .7, 0}, {0, 0, 0, 1}}, []float64{1, 0, 1,
			1}, true},
		{"no label agreed on", [][]float64{{.6, 0, 0, 0}, {0, .3, 0, 0}, {0, 0, .3, .7}}, []float64{1, 1, 0, 1}, true},
		{"all say the same", [][]float64{{1, 0, 0, 0}, {1, 0, 0, 0}, {1, 0, 0, 0}}, []float64{1, 0, 0, 0}, true},
		{"equally probable", [][]float64{{.5, .5, 0, 0}, {0, 0, 1, 0}, {0, 0, 1, 0}}, []float64{1, 1, 1, 0}, true},
		{"one says nothing", [][]float64{{0, 0, 0, 0}, {.2, .8, 0, 0}, {0, 0, 1, 0}}, []float64{0, 1, 1, 0}, true},
		{"five annotators", [][]float64{{1, 0, 0, 0}, {1, 0, 0, 0}, {0, 1, 0, 0}, {0, 1, 0, 0}, {0, 0, 0, 1}},
			[]float64{1, 1, 0, 0}, false},
		{"nobody says anything", [][]float64{{0, 0, 0, 0}, {0, 0, 0, 0}, {0, 0, 0, 0}}, []float64{0, 0, 0, 0}, true},
	} {
		got := make([]float64, 4)
		n, picked := distill(c.said, got)
		sum := 0.0
		for _, v := range got {
			sum += v
		}
		if !reflect.DeepEqual(got, c.want) || picked != c.picked || float64(n) != sum {
			t.Errorf("%s: %v (%d, picked %v), want %v", c.name, got, n, picked, c.want)
		}
	}
}

func TestAnnotatorsToCandidates(t *testing.T) {
	dir := t.TempDir()
	a := write(t, dir, "a.csv", "\ufeffimage,A,B,C\n1.png,0.6,0.4,\n2.png,1,0,0\n")
	b := write(t, dir, "b.csv", "image,C,B,A\n2.png,0,.5,.5\n\"1.png\",0,0.1,0.9\n") // rows and columns in another order
	c := write(t, dir, "c.csv", "image, A ,B,C\r\n 1.png ,0,1,0\r\n2.png,0,0,1\r\n")
	annotators, err := ReadAnnotators([]string{a, b, c}, nil)
	if err != nil {
		t.Fatal(err)
	}
	table, stats, err := DistillCandidates(annotators)
	if err != nil {
		t.Fatal(err)
	}
	if want := []float64{1, 1, 0, 1, 1, 1}; !reflect.DeepEqual(table.Values, want) {
		t.Errorf("candidates %v, want %v", table.Values, want)
	}
	want := CrowdStats{Images: 2, Classes: 3, Annotators: 3,
		MeanCandidates: 2.5, Agreed: 1, Picked: 1, MeanLabels: 9.0 / 6}
	if stats != want {
		t.Errorf("stats %+v, want %+v", stats, want)
	}
	var text bytes.Buffer
	if err := WriteCandidates(&text, table); err != nil {
		t.Fatal(err)
	}
	if want := "image,A,B,C\n1.png,1,1,0\n2.png,1,1,1\n"; text.String() != want {
		t.Errorf("written as %q", text.String())
	}
	again, err := ReadCandidates(write(t, dir, "out.csv", text.String()), []string{"C", "A", "B"})
	if err != nil || !reflect.DeepEqual(again.row(0), []float64{0, 1, 1}) {
		t.Errorf("read back as %v, %v", again, err)
	}
}

func TestBadTables(t *testing.T) {
	classes := []string{"stroma", "mucus", "debris"}
	wrong := make([]string, 50)
	for i := range wrong {
		wrong[i] = fmt.Sprintf("%d,2,0,0\n", i)
	}
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"empty", "", []string{"f.csv: the file is empty"}},
		{"no rows", "image,stroma,mucus,debris\n", []string{"f.csv: no rows"}},
		{"no image column", "name,stroma,mucus,debris\nx,1,0,0\n", []string{`f.csv:1:1: the header must start with image`}},
		{"one class", "image,stroma\nx,1\n", []string{"names 1 class; 2 to"}},
		{"unknown class", "image,stroma,mucsu,debris\nx,1,0,0\n",
			[]string{`f.csv:1:14: unknown class "mucsu" (did you mean "mucus"?)`, `the class "mucus" has no column`}},
		{"class twice", "image,stroma,mucus,debris,mucus\nx,1,0,0,0\n",
			[]string{`f.csv:1:27: the class "mucus" is in columns 3 and 5`}},
		{"class without a name", "image,stroma,,debris\nx,1,0,0\n", []string{"column 3 has no usable class name"}},
		{"missing class", "image,stroma,debris\nx,1,0\n", []string{`f.csv:1: the class "mucus" has no column`}},
		{"out of range", "image,stroma,mucus,debris\nx,1.5,-0.1,0\ny,NaN,Inf,1e999\n", []string{
			`f.csv:2:3: image "x", class "stroma": the probability 1.5 is not between 0 and 1`,
			`f.csv:2:7: image "x", class "mucus": the probability -0.1`,
			`f.csv:3:3: image "y", class "stroma": the probability NaN`, `the probability Inf`, `the probability 1e999`}},
		{"no number", "image,stroma,mucus,debris\nx,yes,0,0\n",
			[]string{`f.csv:2:3: image "x", class "stroma": "yes" is not a number`}},
		{"row twice", "image,stroma,mucus,debris\nx,1,0,0\ny,1,0,0\nx,0,1,0\n",
			[]string{`f.csv:4:1: the image "x" has a second row; the first is in line 2`}},
		{"ragged rows", "image,stroma,mucus,debris\nx,1,0\ny,1,0,0,0\nz,1,0,a\n",
			[]string{"f.csv:2: the row has 3 fields, the header 4", "f.csv:3: the row has 5 fields, the header 4",
				`f.csv:4:7: image "z", class "debris": "a" is not a number`}},
		{"no name", "image,stroma,mucus,debris\n,1,0,0\n", []string{`f.csv:2:1: "" is not a usable image name`}},
		{"quotes", "image,stroma,mucus,debris\n\"x,1,0,0\n", []string{"f.csv:2:10: not well-formed CSV"}},
		{"quotes over rows", "image,stroma,mucus,debris\n\"x,1,0,0\ny,1,0,0\n", []string{"f.csv:2: not well-formed CSV"}},
		{"many faults", "image,stroma,mucus,debris\n" + strings.Join(wrong, ""), []string{"and 30 more errors"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := decodeText(c.text, "f.csv", classes)
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got  %v\nwant %s", err, want)
				}
			}
		})
	}
}

func TestBadAnnotators(t *testing.T) {
	dir := t.TempDir()
	full := "image,A,B\n1,1,0\n2,0,1\n"
	a, b := write(t, dir, "a.csv", full), write(t, dir, "b.csv", full)
	lacks := write(t, dir, "lacks.csv", "image,A,B\n1,1,0\n3,1,0\n4,1,0\n")
	other := write(t, dir, "other.csv", "image,A,X\n1,1,0\n2,0,1\n")
	silent := write(t, dir, "silent.csv", "image,A,B\n1,,\n2,0,1\n")
	for _, c := range []struct {
		name  string
		files []string
		want  []string
	}{
		{"two annotators", []string{a, b}, []string{"the rule needs the files of at least 3 annotators, 2 given"}},
		{"the same file", []string{a, b, a}, []string{"a.csv: the file is given twice"}},
		{"no file", []string{a, b, filepath.Join(dir, "c.csv")}, []string{"c.csv: there is no such file"}},
		{"missing images", []string{a, b, lacks}, []string{`lacks.csv: no row for the image "2", which `,
			`a.csv: no row for the image "3", which `}},
		{"unknown class", []string{a, b, other}, []string{`other.csv:1:9: unknown class "X"`}},
	} {
		_, err := ReadAnnotators(c.files, nil)
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %s", c.name, err, want)
			}
		}
	}
	annotators, err := ReadAnnotators([]string{silent, write(t, dir, "s2.csv", "image,A,B\n1,0,0\n2,0,1\n"),
		write(t, dir, "s3.csv", "image,A,B\n1,0,0\n2,0,1\n")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := DistillCandidates(annotators); err == nil ||
		!strings.Contains(err.Error(), `silent.csv:2: no annotator gives the image "1" any label`) {
		t.Errorf("an image without labels: %v", err)
	}
	for text, want := range map[string]string{
		"image,A,B\n1,0.5,0\n": `f.csv:2: image "1", class "A": 0.5 is neither 0 nor 1`,
		"image,A,B\n1,0,0\n":   `f.csv:2: the image "1" has no candidate label`,
	} {
		if _, err := ReadCandidates(write(t, dir, "f.csv", text), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// bags returns a set of three bags of one instance each.
func bags() *data.Dataset {
	return &data.Dataset{
		Name: "bags", Shape: []int{1}, Instances: []float32{1, 2, 3}, Offsets: []int{0, 1, 2, 3},
		Candidates: []uint8{1, 0, 0, 1, 0, 1}, Classes: 2, ClassNames: []string{"A", "B"}, Labels: []int{0, 1, 1},
		BagNames: []string{"train/A/1.png", "train/B/1.png", "train/B/2.png"},
	}
}

func TestAttach(t *testing.T) {
	table := func(images string, values ...float64) *LabelTable {
		names := strings.Fields(images)
		return &LabelTable{Path: "c.csv", Classes: []string{"B", "A"}, Images: names, Values: values, lines: []int{2, 3, 4,
			5}[:len(names)]}
	}
	good := table("other.png A/1.png train/B/1.png 2.png", 1, 1, 1, 1, 1, 0, 1, 1)
	d, wrong, err := AttachCandidates(bags(), good, OutsideError)
	if err != nil || wrong != 0 {
		t.Fatal(wrong, err)
	}
	if want := []uint8{1, 1, 0, 1, 1, 1}; !reflect.DeepEqual(d.Candidates, want) || d.Validate("d") != nil {
		t.Errorf("candidates %v, want %v", d.Candidates, want)
	}
	outside := table("A/1.png B/1.png B/2.png", 1, 0, 1, 1, 1, 0)
	for how, want := range map[Outside]string{
		OutsideAdd:    "[1 1 1 1 0 1] [0 1 1]",
		OutsideForget: "[0 1 1 1 0 1] [-1 1 1]",
		OutsideDrop:   "[1 1 0 1] [1 1]",
	} {
		d, wrong, err := AttachCandidates(bags(), outside, how)
		if err != nil || wrong != 1 {
			t.Fatalf("%s: %d, %v", how, wrong, err)
		}
		if got := fmt.Sprint(d.Candidates, d.Labels); got != want {
			t.Errorf("%s: %s, want %s", how, got, want)
		}
	}
	unnamed := bags()
	unnamed.BagNames = nil
	strange := table("A/1.png B/1.png B/2.png", 1, 1, 1, 1, 1, 1)
	strange.Classes = []string{"B", "C"}
	for _, c := range []struct {
		set   *data.Dataset
		table *LabelTable
		want  string
	}{
		{bags(), outside, "c.csv: 1 of 3 images have a true label that is not among their candidates; the first is " +
			"train/A/1.png of class A"},
		{unnamed, outside, "bags: the bags have no names to match with images"},
		{bags(), table("A/1.png 1.png B/2.png", 1, 1, 1, 1, 1, 1), `c.csv:3: several bags are named "1.png" at the end`},
		{bags(), table("A/1.png B/2.png", 1, 1, 1, 1), `c.csv: no row for the image "train/B/1.png"`},
		{bags(), table("A/1.png B/1.png B/2.png 2.png", 1, 1, 1, 1, 1, 1, 1, 1),
			`c.csv:5: the image "2.png" is the bag "train/B/2.png", which line 4 gives candidates already`},
		{bags(), strange, `c.csv: unknown class "C"`},
	} {
		_, _, err := AttachCandidates(c.set, c.table, OutsideError)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
	bare := bags() // images without a class folder: no classes yet
	bare.Classes, bare.ClassNames, bare.Candidates, bare.Labels = 0, nil, nil, []int{-1, -1, -1}
	d, _, err = AttachCandidates(bare, good, OutsideError)
	if err != nil || d.Validate("bare") != nil || d.ClassName(0) != "B" {
		t.Errorf("without classes: %+v, %v", d, err)
	}
}

// decodeText reads a table of a text.
func decodeText(text, path string, classes []string) (*LabelTable, error) {
	rows, err := rawfile.NewCSV(strings.NewReader(text), path, maxBytes, "image,CLASS,CLASS,...")
	if err != nil {
		return nil, diag.List{err.(diag.Diagnostic)}
	}
	return decodeTable(rows, classes)
}

// Any table that is read is complete, and its candidates can be written and read without a change.
// An error names the file.
func FuzzTable(f *testing.F) {
	f.Add("image,A,B\n1.png,0.5,0.5\n2.png,,1\n")
	f.Add("\ufeffimage,A,B\r\n\"1,\"\"png\",1,0\r\n")
	f.Add("image,A,A\nx,2,nan\nx,1\n")
	f.Add("image,A,B\n\"x")
	f.Fuzz(func(t *testing.T, text string) {
		table, err := decodeText(text, "fuzz.csv", nil)
		if err != nil {
			if list, ok := err.(diag.List); !ok || len(list) == 0 || list[0].Pos.File != "fuzz.csv" {
				t.Fatalf("the error does not name the file: %v", err)
			}
			return
		}
		if len(table.Values) != len(table.Images)*len(table.Classes) || len(table.lines) != len(table.Images) ||
			len(table.Classes) < 2 {
			t.Fatalf("a table of %d values for %d images and %d classes", len(table.Values), len(table.Images),
				len(table.Classes))
		}
		for _, v := range table.Values {
			if !(v >= 0 && v <= 1) {
				t.Fatalf("a probability of %v", v)
			}
		}
		out, stats, err := DistillCandidates([]*LabelTable{table, table, table})
		if err != nil {
			return // an image without any label
		}
		if stats.Agreed+stats.Picked != len(table.Images) || stats.MeanCandidates < 1 {
			t.Fatalf("stats %+v", stats)
		}
		var b bytes.Buffer
		if err := WriteCandidates(&b, out); err != nil {
			t.Fatal(err)
		}
		again, err := decodeText(b.String(), "fuzz.csv", table.Classes)
		if err != nil || !reflect.DeepEqual(again.Values, out.Values) || !reflect.DeepEqual(again.Images, out.Images) {
			t.Fatalf("the candidates change on their way through a file: %v", err)
		}
	})
}
