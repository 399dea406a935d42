// CSV files as spreadsheets, pandas and R write them.

package bagfile

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/x448/float16"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/internal/diag"
)

// utf16Text encodes text like the format "Unicode text" of spreadsheets.
func utf16Text(order binary.AppendByteOrder, text string) string {
	var b []byte
	for _, unit := range utf16.Encode([]rune("\ufeff" + text)) {
		b = order.AppendUint16(b, unit)
	}
	return string(b)
}

// CSV files that other programs write are read as the same dataset.
func TestCSVHabits(t *testing.T) {
	const plain = "bag,label,candidates,f1,f2\nélan,cat,cat dog,0.5,-1e-3\nélan,,,0.25,3\n2,,dog cow,1,2\n"
	want, err := decodeCSV(strings.NewReader(plain), "plain.csv", Reading{})
	if err != nil {
		t.Fatal(err)
	}
	swap := func(pairs ...string) string { return strings.NewReplacer(pairs...).Replace(plain) }
	semicolons := strings.NewReplacer(",", ";", ".", ",").Replace(plain)
	for name, text := range map[string]string{
		"CR LF":                      swap("\n", "\r\n"),
		"CR":                         swap("\n", "\r"),
		"CR and classes":             "# classes: cat cow dog\r" + swap("\n", "\r"),
		"mixed ends":                 strings.Replace(swap("\n", "\r\n"), "\r\n", "\r", 1),
		"no end":                     strings.TrimSuffix(plain, "\n"),
		"mark":                       "\ufeff" + plain,
		"mark and CR LF":             "\ufeff" + swap("\n", "\r\n"),
		"quoted header":              `"bag","label","candidates","f1","f2"` + plain[strings.Index(plain, "\n"):],
		"quoted text":                swap("cat dog", `"cat dog"`, "dog cow", `"dog cow"`),
		"all quoted":                 `"` + strings.TrimSuffix(swap(",", `","`, "\n", "\"\n\""), `"`),
		"semicolons":                 semicolons,
		"semicolons and points":      swap(",", ";"),
		"semicolons, mark and CR LF": "\ufeff" + strings.ReplaceAll(semicolons, "\n", "\r\n"),
		"tabs":                       swap(",", "\t"),
		"tabs in UTF-16":             utf16Text(binary.LittleEndian, swap(",", "\t", "\n", "\r\n")),
		"UTF-16, big end first":      utf16Text(binary.BigEndian, plain),
		"classes filled up":          "# classes: cat cow dog;;;;\n" + semicolons,
		"header in capitals":         strings.Replace(plain, "bag,label", "Bag,Label", 1),
		"empty line at the end":      plain + "\n",
		"another order": "f1,candidates,bag,f2,label\n0.5,cat dog,élan,-1e-3,cat\n0.25,,élan,3,\n1,dog " +
			"cow,2,2,\n",
	} {
		got, err := decodeCSV(strings.NewReader(text), "other.csv", Reading{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if got.Hash() != want.Hash() || got.BagNames[0] != "élan" {
			t.Errorf("%s: a different set is read: %v %v", name, got.ClassNames, got.Instances)
		}
	}
}

// The error for text that would be misread says how to write it.
func TestCSVHabitsRefused(t *testing.T) {
	const head = "bag,label,candidates,f1\n"
	for text, want := range map[string]string{
		",bag,label,candidates,f1\n0,1,a,a b,1\n": "index=False in pandas",
		"\"\",\"bag\",\"label\",\"candidates\"\n": "row.names=FALSE in R",
		"bag,candidates,f1\n1,a b,1\n":            "leave its fields empty",
		"bag,label,f1\n1,a,1\n":                   "--labels known",
		head + "1,,\"[1, 2]\",1\n":                `"[1," does not look like the name of a class`,
		head + "1,,[1 2],1\n":                     `"[1" does not look like the name of a class`,
		head + "1,,\"1,2\",1\n":                   "separate candidates with spaces",
		head + "1,,1;2,1\n":                       "separate candidates with spaces",
		head + "1,,1|2,1\n":                       "separate candidates with spaces",
		head + "1,,1 2,\"0,5\"\n":                 `feature 1 is "0,5", not a number`,
		head + "1,,1 2,\"1,5\"\n":                 "separate the fields with semicolons",
		head + "1,,1 2, \n":                       `fill in the missing values of the column "f1"`,
		head + "1,,1 2,NaN\n":                     `fill in the missing values of the column "f1"`,
		head + "1,,1 2,NA\n":                      "leave the row out",
		"\x1f\x8b\x08":                            "packed by gzip",
		"\xfd7zXZ\x00\x00":                        "packed by xz, bzip2 or Zstandard; unpack it, or pack it by gzip",
		"BZh91AY":                                 "packed by xz, bzip2 or Zstandard",
		"\x28\xb5\x2f\xfd":                        "packed by xz, bzip2 or Zstandard",
		"\xd0\xcf\x11\xe0":                        "save the sheet as CSV",
		"b\x00a\x00g\x00":                         "UTF-16 without a byte order mark; save it in UTF-8",
		"PK\x03\x04bag":                           "save the sheet as CSV",
		head + "1,NA,NA,1\n2,a,a b,1\n":           `the label is "NA", as programs write a missing value`,
		head + "1,,a <NA>,1\n":                    `the label is "<NA>", as programs write a missing value`,
		head + "1,NA,a b,1\n":                     "leave the label empty if it is unknown",
		head + "1,big cat,big cat dog,1\n":        "write class names without spaces, e.g. big_cat",
		head + "1,,1 2,2024-03-01\n":              "--ignore-columns f1",
		head + "1,,1 2,12%\n":                     `if the column "f1" is not a feature`,
		"bag,label,candidates,file,f1\n1,,a b,1.wav,2\n": `if other columns are the features, leave the column "file" out ` +
			`with --ignore-columns file`,
		"bag;label;candidates;f1;f2\n1;;a b;1.234;0,5\n": `"0,5" has a decimal comma, but a number in line 2 a ` +
			`decimal point`,
		"bag;candidates;label;x;y;f1\n1;a b;;1,5;2;3\n1;;;1;2;0.5\n": `"0.5" has a decimal point, but a number in line 2 a ` +
			`decimal comma`,
		"bag;candidates;label;x;y;f1\n1;a b;;1,5;2.5;3\n": `"2.5" has a decimal point`,
		head + "1,,a b,3_17\n":                            `feature 1 is "3_17", not a number`,
		"bag;label;candidates;f1\n1;;a b;1.234,5\n":       `feature 1 is "1.234,5", not a number`,
		"bag,label,candidates,Gr\xf6\xdfe\n1,,a b,1\n": `the column name "Gr\xf6\xdfe" is not UTF-8` +
			"\nsave the file in UTF-8",
		"bag,label,candidates,\"f\n1\"\n1,,a b,1\n": `the name of the column "f\n1" contains a line break or another ` +
			`control character`,
		head + "\xe9lan,,a b,1\n":                        "\"\\xe9lan\" is not UTF-8",
		head + "\"a\n1\",,a b,1\n":                       `the name of bag 1, "a\n1", contains a line break`,
		head + "1,,\xe9 b,1\n":                           `"\xe9 b" is not UTF-8`,
		"bag,label,candidates,patient,f1\na,x,x y,1,2\n": "data.split.group: patient in the spec",
	} {
		_, err := decodeCSV(strings.NewReader(text), "other.csv", Reading{})
		var d diag.Diagnostic
		if !errors.As(err, &d) || !strings.Contains(d.Text+"\n"+strings.Join(d.Notes, "\n"), want) {
			t.Errorf("%q:\ngot  %v %q\nwant %s", text, err, d.Notes, want)
		}
	}
}

// A class that pandas wrote as 1.0 is the class 1, unless 1.0 is listed as a class.
func TestWholeNumbersOfPandas(t *testing.T) {
	for _, c := range []struct {
		text string
		o    Reading
		want string
	}{
		{"bag,label,candidates,f1\na,1.0,0 1,1\nb,,1 10,2\n", Reading{}, "[0 1 10]"},
		{"bag,label,candidates,f1\na,1,0.0 1.0,1\nb,0,0 1,2\n", Reading{}, "[0 1]"},
		{"bag,label,f1\na,10.0,1\na,,1\nb,2.0,2\nc,10,2\n", Reading{Labels: KnownLabels}, "[2 10]"},
		{"bag,label,instance_label,f1\na,1.0,1,1\na,1.0,1.0,1\nb,2,2.0,2\n", Reading{Labels: KnownLabels}, "[1 2]"},
		{"bag,label,f1\na,1.0,1\nb,2 1.0,2\n", Reading{Labels: MultiLabels}, "[1 2]"},
		{"bag,label,f1\na,1.5,1\nb,v2.0,2\n", Reading{Labels: KnownLabels}, "[1.5 v2.0]"},
		{"# classes: 1.0 2.0\nbag,label,f1\na,1.0,1\nb,2.0,2\n", Reading{Labels: KnownLabels}, "[1.0 2.0]"},
		{"bag,label,f1\na,1.0,1\nb,2.0,2\n", Reading{Labels: KnownLabels, Columns: Columns{ModelClasses: []string{"1.0",
			"2"}}}, "[1.0 2]"},
	} {
		d, err := decodeCSV(strings.NewReader(c.text), "pandas.csv", c.o)
		if err != nil || fmt.Sprint(d.ClassNames) != c.want {
			t.Errorf("%q: %v, %v", c.text, d, err)
		}
	}
}

// The advice for the mark of a missing label depends on what an empty field means.
func TestAdviceForMissingLabels(t *testing.T) {
	for _, c := range []struct {
		o    Reading
		want string
	}{
		{Reading{}, "list all classes as candidates if nothing is known"},
		{Reading{Labels: KnownLabels}, "every bag needs a label: leave the bag out"},
		{Reading{Labels: MultiLabels}, "leave the bag out if its labels are unknown"},
		{Reading{Labels: MultiLabels, Columns: Columns{ModelClasses: []string{"a"}}},
			"leave the field empty if the label is unknown"},
	} {
		_, err := decodeCSV(strings.NewReader("bag,label,candidates,f1\n1,nan,nan,1\n"), "missing.csv", c.o)
		var d diag.Diagnostic
		if !errors.As(err, &d) || !strings.Contains(strings.Join(d.Notes, "\n"), c.want) {
			t.Errorf("%v %q, want %s", err, d.Notes, c.want)
		}
	}
}

// Advice names columns of the file, and does not offer to leave out or declare what cannot help.
func TestCSVAdvice(t *testing.T) {
	slides := Columns{Roles: Roles{Bag: "slide"}}
	needed := Columns{ModelFeatures: []string{"f1", "f2"}, ModelClasses: []string{"x", "y"}}
	for _, c := range []struct {
		text    string
		columns Columns
		want    string
		not     string
	}{
		{"slide,label,candidates,f1\na,,x y,1\nb,,x y,1\na,,x y,1\n", slides, `table.sort_values("slide", kind="stable")`,
			"df"},
		{"bag,label,candidates,f1\na,,x y,one\n", Columns{}, "--ignore-columns f1", "--feature-columns"},
		{"bag,f1,f2\na,1,one\n", needed, "the model was trained on numbers in this column", "--ignore-columns"},
		{"bag,f1,f2\na,1,1\na,1,one\n", needed, "the model was trained on numbers in this column", "--ignore-columns"},
		{"bag,label,candidates,slide,f1\na,,x y,1,1\n", Columns{}, "--feature-columns", "data.split.group"},
		{"bag,label,candidates,Unnamed: 0,x_id,f1\na,,x y,1,1,1\n", Columns{}, "--ignore-columns 'Unnamed: 0,x_id'", "\""},
		{"bag,label,candidates,\"area, mean\",f1\na,,x y,large,1\n", Columns{}, "--ignore-columns '\"area, mean\"'",
			"--feature-columns"},
	} {
		_, err := decodeCSV(strings.NewReader(c.text), "other.csv", Reading{Columns: c.columns})
		var d diag.Diagnostic
		if notes := ""; !errors.As(err, &d) {
			t.Errorf("%q: %v", c.text, err)
		} else if notes = strings.Join(d.Notes, "\n"); !strings.Contains(notes, c.want) || strings.Contains(notes, c.not) {
			t.Errorf("%q: %v\n%s", c.text, err, notes)
		}
	}
}

// A missing label of R is not a class, unless the first line lists it.
func TestCSVMissingLabel(t *testing.T) {
	const rows = "bag,label,f1\n1,a,1\n2,NA,2\n3,b,3\n"
	for labels, want := range map[Labels]string{KnownLabels: `bag 2: the label is "NA"`,
		MultiLabels: `bag 2: the label is "NA"`} {
		if _, err := decodeCSV(strings.NewReader(rows), "other.csv", Reading{Labels: labels}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", labels, err)
		}
	}
	d, err := decodeCSV(strings.NewReader("# classes: a b NA\n"+rows), "other.csv", Reading{Labels: KnownLabels})
	if err != nil || d.Labels[1] != 2 {
		t.Fatalf("%v, %v", d, err)
	}
	if _, err := decodeCSV(strings.NewReader(rows), "new.csv",
		Reading{Columns: Columns{ModelClasses: d.ClassNames}}); err != nil {
		t.Errorf("a class of the model: %v", err)
	}
	var text bytes.Buffer
	if err := writeCSV(&text, d); err != nil {
		t.Fatal(err)
	}
	again, err := decodeCSV(&text, "again.csv", Reading{})
	if err != nil || again.Hash() != d.Hash() {
		t.Errorf("CSV changes the set: %v", err)
	}
}

// The rows of a file without the column bag are one bag, unless a column is named like it.
func TestCSVBagColumnToPredict(t *testing.T) {
	o := Reading{Columns: Columns{ModelClasses: []string{"a", "b"}, ModelFeatures: []string{"f1", "bagging"}}}
	_, err := decodeCSV(strings.NewReader("Bag_ID,f1,bagging\n1,1,2\n2,3,4\n"), "new.csv", o)
	var d diag.Diagnostic
	if !errors.As(err, &d) || d.Text != `the header has no column "bag"` || d.Suggestion != "Bag_ID" {
		t.Errorf("%#v", err)
	}
	if d, err := decodeCSV(strings.NewReader("f1,bagging,more\n1,2,0\n3,4,0\n"), "new.csv", o); err != nil ||
		d.Bags() != 1 {
		t.Errorf("%v, %v", d, err)
	}
	_, err = decodeCSV(strings.NewReader("slide,label,f1,bagging\n1,a,1,2\n2,b,3,4\n"), "new.csv", o)
	if !errors.As(err, &d) || !strings.Contains(strings.Join(d.Notes, "\n"),
		`no column "bag", so that all rows are one bag`) {
		t.Errorf("%#v", err)
	}
}

// A gzip file of another program is read like one of miplc.
func TestCSVHabitsPacked(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	z.Name = "bags.csv"
	if _, err := z.Write([]byte("bag;label;candidates;f1\r1;;a b;0,5\r")); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "bags.csv.gz")
	if err := os.WriteFile(path, packed.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	if d, err := Open(path); err != nil || d.Instances[0] != 0.5 {
		t.Errorf("%v, %v", d, err)
	}
}

// Arrays written by other programs are read like those of miplc.
func TestNPZHabits(t *testing.T) {
	x, offsets, s := f4([]int{3, 2}, 1, 2, 3, 4, 5, 6), i8(keyOffsets, 0, 2, 3), u1([]int{2, 2}, 1, 1, 0, 1)
	labels, names := i8(keyLabels, 0, 1), npzEntry{keyClassNames, append(npyStart("<U2", 2), words('a', 'é', 'b', 0)...)}
	read := func(entries ...npzEntry) (*data.Dataset, error) {
		b := npzBytes(t, entries...)
		return decodeNPZ(bytes.NewReader(b), int64(len(b)), "other.npz", Reading{})
	}
	want, err := read(x, offsets, s, labels, names)
	if err != nil {
		t.Fatal(err)
	}
	column := func(e npzEntry) npzEntry { // the same numbers in a column
		rows := len(e.bytes[len(npyStart("<i8", 1)):]) / 8
		return npzEntry{e.name, append(npyStart("<i8", rows, 1), e.bytes[len(npyStart("<i8", 1)):]...)}
	}
	var half []byte
	for _, v := range []float32{1, 2, 3, 4, 5, 6} {
		half = binary.LittleEndian.AppendUint16(half, uint16(float16.Fromfloat32(v)))
	}
	for name, entries := range map[string][]npzEntry{
		"columns":        {x, column(offsets), s, column(labels), names},
		"half precision": {{keyInstances, append(npyStart("<f2", 3, 2), half...)}, offsets, s, labels, names},
		"bytes as text":  {x, offsets, s, labels, {keyClassNames, append(npyStart("|S3", 2), "a\xc3\xa9b\x00\x00"...)}},
	} {
		got, err := read(entries...)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if got.Hash() != want.Hash() {
			t.Errorf("%s: a different set is read: %v %v %v", name, got.ClassNames, got.Labels, got.Instances)
		}
	}
	for text, labels := range map[string]npzEntry{
		"has the shape [2 2]: a bag with any number of labels needs data.labels: multi": {keyLabels,
			append(npyStart("|u1", 2, 2), 1, 0, 0, 1)},
		"contains text instead of whole numbers: the class of each": {keyLabels,
			append(npyStart("|S1", 2), "ab"...)},
		"contains NaN instead of whole numbers: the class of each": {keyLabels,
			append(npyStart("<f4", 2), words(math.Float32bits(float32(math.NaN())), 0)...)},
		`elements of type "|O" are not supported; save numbers as float32`: {keyLabels, append(npyStart("|O", 2),
			1, 2)},
	} {
		if _, err := read(x, offsets, s, labels); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("got  %v\nwant %s", err, text)
		}
	}
}

// True labels may be 0/1 vectors if the candidates are.
func TestMATVectors(t *testing.T) {
	x := matDoubles("", 1, 2, 0.5, 2)
	both, second := matDoubles("", 3, 1, 1, 1, 1), matDoubles("", 1, 3, 0, 1, 0)
	read := func(truth []byte) (*data.Dataset, error) {
		return decodeMAT(bytes.NewReader(matBagsFile([3][]byte{x, both, second}, [3][]byte{x, both, truth})), "other.mat",
			Reading{})
	}
	for want, truth := range map[int][]byte{2: matDoubles("", 1, 3, 0, 0, 1), -1: matDoubles("", 1, 3, 0, 0, 0),
		0: matDoubles("", 1, 1, 1)} {
		if d, err := read(truth); err != nil || d.Labels[0] != 1 || d.Labels[1] != want {
			t.Errorf("%v, %v, want the label %d", d, err, want)
		}
	}
	for _, truth := range [][]byte{matDoubles("", 1, 3, 0, 1, 1), matDoubles("", 1, 3, 0, 0.5, 0.5), matDoubles("", 1, 2,
		0, 1)} {
		if _, err := read(truth); err == nil || !strings.Contains(err.Error(), "bag 2 has") {
			t.Errorf("a wrong vector: %v", err)
		}
	}
}
