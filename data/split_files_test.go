// Splits of files: those of the authors, names, and mistakes.

package data

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/miplc/miplc/data/rawfile"
	"github.com/miplc/miplc/internal/testkit/testsupport"
)

// These index files are not splits of 3 bags. The expected errors are in testdata/bad. A case without
// text is read from testdata/bad/*.mat.
func TestBadIndexFiles(t *testing.T) {
	const head = "split,part,bags\n"
	for _, c := range []struct {
		name string
		part int
		text string
	}{
		{"index-overlap.mat", 0, ""},
		{"index-from-zero.mat", 0, ""},
		{"index-beyond.mat", 0, ""},
		{"index-missing-bags.mat", 0, ""},
		{"index-twice.mat", 0, ""},
		{"index-empty-part.mat", 0, ""},
		{"index-half.mat", 0, ""},
		{"index-names.mat", 0, ""},
		{"index-logical.mat", 0, ""},
		{"index-part.mat", 2, "any"},
		{"split-header.csv", 1, "fold,part,bags\n"},
		{"split-empty.csv", 1, "split,part,bags\n"},
		{"split-part.csv", 2, head + "1,train,1 2\n1,test,3\n"},
		{"split-word.csv", 1, head + "1,training,1 2\n"},
		{"split-number.csv", 1, head + "1,train,1 two\n"},
		{"split-overlap.csv", 1, head + "1,train,1 2\n1,test,2 3\n"},
		{"split-quote.csv", 1, head + "1,train,\"1 2\n1,test,3\n"},
		{"split-name.csv", 1, "bag,part\na,train\nb,train\nd,test\n"},
		{"split-bag-number.csv", 1, "bag,part\n1,train\nb,train\nc,test\n"},
		{"split-bag-part.csv", 1, "bag,part\na,train\nb,dev\nc,test\n"},
		{"split-bag-second.csv", 2, "bag,part,split\na,train,1\nb,train,1\nc,test,1\n"},
		{"split-from-zero.csv", 1, head + "0,train,1 2\n0,test,3\n1,train,1 3\n1,test,2\n"},
		{"split-columns.csv", 1, ",train,val,test\n0,a,b,c\n1,b,,\n"},
		{"split-columns-second.csv", 2, ",train,val,test\n0,a,b,c\n"},
		{"split.json", 1, "{}"},
	} {
		path := filepath.Join("testdata", "bad", c.name)
		if c.text != "" {
			path = filepath.Join(t.TempDir(), c.name)
			if err := os.WriteFile(path, []byte(c.text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		_, err := OpenSplit(path, c.part, 3, []string{"a", "b", "c"})
		if err == nil {
			t.Errorf("%s was read without an error", c.name)
			continue
		}
		got := strings.ReplaceAll(err.Error(), path, c.name) + "\n"
		testsupport.CheckGolden(t, filepath.Join("testdata", "bad", c.name+".out"), got)
	}
}

func FuzzIndexMAT(f *testing.F) {
	testsupport.AddFiles(f, filepath.Join("testdata", "bad", "*.mat"))
	f.Fuzz(func(t *testing.T, b []byte) {
		vars, err := rawfile.ReadMAT(bytes.NewReader(b), rawfile.FixedLimit("the file", 1<<22))
		if err != nil {
			return
		}
		for _, v := range vars {
			indexNumbers(v)
		}
	})
}

func FuzzSplitCSV(f *testing.F) {
	f.Add([]byte("split,part,bags\n1,train,1 2\n1,test,3\n"))
	f.Add([]byte("split,part,bags\n1,train,1 2\n1,validation,4\n1,test,3\n"))
	f.Add([]byte("bag,part\na,train\n2,test\n"))
	f.Add([]byte("split,part,bags\n1,train,1 2\n1,test,3\n1,unused,4 5 6 7 8 9 10\n"))
	f.Add([]byte(",train,val,test\n0,a,b,c\n1,d,,\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		rows, err := rawfile.NewCSV(bytes.NewReader(b), "fuzz.csv", maxIndexBytes, "bag,part")
		if err != nil {
			return
		}
		numbers, err := decodeIndexCSV(rows, 1, newFinder(10, []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"}))
		if err != nil {
			return
		}
		if s, err := newIndexSplit("fuzz.csv", numbers, 10, nil); err == nil &&
			len(s.Train)+len(s.Validation)+len(s.Test)+len(numbers[unusedPart]) != 10 {
			t.Errorf("a split of 10 bags has parts of %d, %d, %d and %d unused", len(s.Train), len(s.Validation),
				len(s.Test), len(numbers[unusedPart]))
		}
	})
}

// Files of splits may name the bags, one in each row or one of each part in each row.
func TestSplitsOfNames(t *testing.T) {
	want := &Split{Train: []int{0, 2}, Validation: []int{3}, Test: []int{1}}
	for name, text := range map[string]string{
		"bag,part":       "bag,part\na,train\nb,test\nc,Train\nd d,val\n",
		"with split":     "note,split,part,bag\nx,1,test,a\nx,2,train,a\nx,2,test,b\nx,2,train,c\nx,2,validation,d d\n",
		"train,val,test": ",train,val,test\n0,a,d d,b\n1,c,,\n",
		"of booleans": ",train,val,test\na,True,False,False\nb,False,False,True\nc,True,False,False\n" +
			"d d,False,True,False\n",
		"of R": ",train,val,test\n0,a,d d,b\n1,c,NA,NaN\n",
	} {
		number := 1
		if name == "with split" {
			number = 2
		}
		path := filepath.Join(t.TempDir(), "names.csv")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		s, err := OpenSplit(path, number, 4, []string{"a", "b", "c", "d d"})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if s.Source = ""; !reflect.DeepEqual(s, want) {
			t.Errorf("%s: %+v, want %+v", name, s, want)
		}
	}
}

func TestOpenSplit(t *testing.T) {
	s, err := OpenSplit(filepath.Join("testdata", "index-small.mat"), 0, 3, nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := (&Split{Train: []int{0, 2}, Test: []int{1}, Source: "index-small.mat"}); !reflect.DeepEqual(s, want) {
		t.Errorf("got %+v, want %+v", s, want)
	}
}

// The authors' index files and their copies as text are equal. They are stratified for 500 bags
// in the order of five classes: each tests 30 bags of each class.
func TestAuthorsSplits(t *testing.T) {
	dir := testsupport.Data(t, "mipl-splits", "its files are in data/MNIST_MIPL/index of the repository tangw-seu/DEMIPL")
	labels := sortedLabels(500, 5)
	for part := 1; part <= 10; part++ {
		mat, err := OpenSplit(filepath.Join(dir, fmt.Sprintf("index%d.mat", part)), 0, 500, nil)
		if err != nil {
			t.Fatal(err)
		}
		text, err := OpenSplit(filepath.Join(dir, "splits.csv"), part, 500, nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(mat.Train) != 350 || len(mat.Test) != 150 {
			t.Errorf("split %d has %d and %d bags", part, len(mat.Train), len(mat.Test))
		}
		if !slices.Equal(mat.Train, text.Train) || !slices.Equal(mat.Test, text.Test) {
			t.Errorf("split %d: the .mat and the CSV differ", part)
		}
		if got := classCounts(labels, mat.Test); !slices.Equal(got, []int{30, 30, 30, 30, 30}) {
			t.Errorf("split %d tests %v bags of the classes, want 30 of each", part, got)
		}
	}
}

// Written splits are read back.
func TestWriteSplits(t *testing.T) {
	var want []*Split
	for seed := range uint64(3) {
		s, err := RandomSplit(60, nil, SplitSettings{Train: 0.6, Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, s)
	}
	path := filepath.Join(t.TempDir(), "splits.csv")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(WriteSplit(f, want), f.Close()); err != nil {
		t.Fatal(err)
	}
	for i, w := range want {
		got, err := OpenSplit(path, i+1, 60, nil)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got.Train, w.Train) || !slices.Equal(got.Test, w.Test) {
			t.Errorf("split %d: %v and %v, want %v and %v", i+1, got.Train, got.Test, w.Train, w.Test)
		}
	}
}

// The names of bags may be numbers. A file of splits has names then: numbers could be those of other bags.
func TestNamesThatAreNumbers(t *testing.T) {
	for _, c := range []struct {
		text  string
		names []string
		want  string // the training bags and the error
	}{
		{"bag,part\n00001,train\n00003,train\n00002,test\n", []string{"00003", "00001", "00002"}, "[0 1] <nil>"},
		{"bag,part\n1,train\n3,train\n2,test\n", []string{"00003", "00001", "00002"},
			`split.csv:2: no bag has the name "1" (did you mean "00001"?)`},
		{"bag,part\n1,train\n", []string{"00001", "00002"}, `split.csv:2: no bag has the name "1" (did you mean "00001"?)`},
		{"train,val,test\n1013.0,,1010\n", []string{"1010", "1012", "1013"},
			`split.csv:2: no bag has the name "1013.0" (did you mean "1013"?)`},
		{"split,part,bags\n1,train,1 3\n1,test,2\n", []string{"00003", "00001", "00002"},
			`split.csv: the file has numbers of bags, but bag 1 has the name "00003": a number may be that of one bag and the ` +
				`name of another`},
		{"split,part,bags\n1,train,1 3\n1,test,2\n", []string{"0", "1", "2"},
			`split.csv: the file has numbers of bags, but bag 2 has the name "1": a number may be that of one bag and the ` +
				`name of another`},
		{"bag,part\nNA,train\n", []string{"a", "b"}, `split.csv:2: the bag is "NA", as programs write a missing value`},
		{"split,part,bags\n1,train,1 3\n1,test,2\n", []string{"001", "002", "003"}, "[0 2] <nil>"},
		{"split,part,bags\n1,train,1 3\n1,test,2\n", []string{"1010", "1012", "1013"}, "[0 2] <nil>"},
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, "split.csv")
		if err := os.WriteFile(path, []byte(c.text), 0o644); err != nil {
			t.Fatal(err)
		}
		s, err := OpenSplit(path, 1, len(c.names), c.names)
		got := fmt.Sprint(err)
		if err == nil {
			got = fmt.Sprint(s.Train, err)
		}
		if got = strings.ReplaceAll(got, dir+string(filepath.Separator), ""); got != c.want {
			t.Errorf("%q of %q:\n%s, want\n%s", c.text, c.names, got, c.want)
		}
	}
	if _, err := OpenSplit(filepath.Join("testdata", "index-small.mat"), 0, 3, []string{"3", "1", "2"}); err == nil ||
		!strings.Contains(err.Error(), `bag 1 has the name "3"`) {
		t.Errorf("index-small.mat: %v", err)
	}
}
