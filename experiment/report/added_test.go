// Results of other programs appear in all parts of a report, and lines that do not fit are reported.

package report

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/miplc/miplc/data/rawfile"
	"github.com/miplc/miplc/experiment/definition"
)

// A learner of another program is in tables, tests and results.csv.
func TestAdd(t *testing.T) {
	r, err := Read(folder(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	for on, splits := range r.plannedSplits() {
		for split := range splits { // as if the results had recorded the numbers of bags
			r.testTrainRatios[definition.Coord{Data: on.Data, R: on.R, Learner: "demipl"}][split] = 3. / 7
		}
	}
	file := filepath.Join(t.TempDir(), "other.csv")
	text := "Learner;data;r;split;seconds;accuracy;log_loss\n" +
		"mine;MNIST_MIPL;1.0;1;5;0,5;2\n" + "mine;MNIST_MIPL;1;2;5;0,51;\n" + "mine;MNIST_MIPL;1;3;5;0,52;2\n" +
		"mine;CRC;;2;5;0,25;2\n"
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := r.Add(file); err != nil {
		t.Fatal(err)
	}
	r.Corrected = true
	out := t.TempDir()
	if _, err := r.Write(out); err != nil {
		t.Fatal(err)
	}
	for name, wants := range map[string][]string{
		markdownFile: {"|  | 1 | 0.510±0.010 • | – |", "| mine |  | – | 0.250 (1 of 3)‡ |", "From the file " + file +
			": mine."},
		csvFile: {"MNIST_MIPL,1,mine,,1,,,,,,0.5,2,", "CRC,,mine,,2,,,,,,0.25,2,"},
	} {
		got, err := os.ReadFile(filepath.Join(out, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range wants {
			if !bytes.Contains(got, []byte(want)) {
				t.Errorf("%s has no %q:\n%s", name, want, got)
			}
		}
	}
}

// Lines that do not fit the experiment are reported with their line.
func TestAddWrong(t *testing.T) {
	dir := folder(t, 1)
	for _, c := range []struct{ text, want string }{
		{"", "other.csv: the file is empty"},
		{"learner,split\n", "other.csv:1: the column accuracy is missing"},
		{"learner,data,r,split,accuracy\n", "other.csv: the file has no results"},
		{"learner,data,r,split,accuracy\nmine,CRC,,1,97.5\n",
			`other.csv:2: the accuracy is "97.5"; it must be a number from 0 to 1`},
		{"learner,data,r,split,accuracy\nmine,CRC,,1,NaN\n", `the accuracy is "NaN"`},
		{"learner,data,r,split,accuracy\nmine,CRC,,1,\n", `the accuracy is ""`},
		{"learner,data,r,split,accuracy,log_loss\nmine,CRC,,1,0.5,-1\n",
			`the log loss is "-1"; it must be a number of at least 0`},
		{"learner,data,r,split,accuracy,log_loss\nmine,CRC,,1,0.5,inf\n", `the log loss is "inf"`},
		{"learner,data,r,split,accuracy\nmine,CRC,,1,0.5\nmine,CRC,7,1,0.5\n",
			"other.csv:3: mine on CRC split 1 has two results"},
		{"learner,data,r,split,accuracy\nmine,CRC,,4,0.5\n", `there is no split "4" of CRC`},
		{"learner,data,r,split,accuracy\nmine,MNIST_MIPL,,1,0.5\n", `no results on MNIST_MIPL with r = ""`},
		{"learner,data,r,split,accuracy\nmine,MNIST_MIPL,5,1,0.5\n", `no results on MNIST_MIPL with r = "5"`},
		{"learner,data,r,split,accuracy\nmine,MNIST,1,1,0.5\n", `no results on a dataset "MNIST"`},
		{"learner,data,r,split,accuracy\ndemipl,CRC,1,1,0.5\n", `the experiment has a learner "demipl" already`},
		{"learner,data,r,split,accuracy\n,CRC,1,1,0.5\n", "the learner has no name"},
		{"learner,data,r,split,accuracy\nmine,CRC,1\n", "other.csv:2"},
	} {
		r, err := Read(dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := addText(r, c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %s", c.text, err, c.want)
		}
	}
}

// addText adds the results of a text in CSV.
func addText(r *Document, text string) error {
	rows, err := rawfile.NewCSV(strings.NewReader(text), "other.csv", maxAdded, "learner,...")
	if err != nil {
		return err
	}
	return r.add(rows)
}

// Any text is read or ends in an error.
func FuzzAdd(f *testing.F) {
	f.Add("learner,data,r,split,accuracy,log_loss,error\nmine,CRC,,1,0.5,2,\nmine,CRC,,2,,,no memory\n")
	f.Add("learner;split;accuracy\n\"a\nb\";1;0,5\n")
	dir := folder(f, 1)
	f.Fuzz(func(t *testing.T, text string) {
		r, err := Read(dir)
		if err != nil {
			t.Fatal(err)
		}
		before := r.done
		if err := addText(r, text); err == nil && r.done == before {
			t.Error("no result was added, without an error")
		}
	})
}
