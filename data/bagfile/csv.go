// Reading of CSV files.

package bagfile

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/rawfile"
	"github.com/miplc/miplc/internal/diag"
)

// The CSV format of datasets has one row per instance:
//
//	# classes: cat dog cow
//	bag,label,candidates,f1,f2
//	1,cat,cat dog,0.5,1.25
//	1,,,0.25,-3
//
// The rows of a bag are adjacent and have the same text in the column bag. The first row has the
// true label (empty: unknown) and the candidates, separated by spaces or as a JSON list. Later rows repeat them or
// leave them empty. With MultiLabels the column label has all true labels, separated by spaces, and
// the column candidates is ignored. rawfile.CSV describes separators and line ends. Labels are always names.
// Numbers are names too, so that files that count from 0 and from 1 are both read correctly. The
// classes are the names in the file, in numerical order if all are whole numbers and in
// alphabetical order otherwise, unless a first line "# classes:" lists them. The text in the column
// bag becomes the name of the bag unless it is the number of the bag. Columns x and y are the
// coordinates of the instances. The optional column instance_label has the class of the
// instance, empty if it is negative or unknown. The order of the columns does not matter.

const classesLine = "# classes:"

// maxClasses is the maximum number of classes of a file, as in model files.
const maxClasses = 1 << 16

// spreadsheetPadding are separators that spreadsheets append to the line of classes, up to the width of the
// rows.
const spreadsheetPadding = ",;"

func decodeCSV(r io.Reader, path string, o Reading) (*data.Dataset, error) {
	r, err := rawfile.Unpack(r, path)
	if err != nil {
		return nil, err
	}
	text := rawfile.CSVText(r, o.MaxBytes.Exceeded("the text"))
	c := &csvReader{path: path, Reading: o, classes: map[string]bool{}}
	if packed := packedText(text); packed != "" {
		return nil, c.errorf(0, "this is not a text file: it is %s", packed)
	}
	c.linesBefore = rawfile.SkipSeparatorLine(text)
	if err := c.readClassesLine(text); err != nil {
		return nil, err
	}
	if o.Columns.Classes != nil {
		c.listedClasses = o.Columns.Classes
	}
	if c.rows, err = rawfile.ReadCSV(text, path, c.linesBefore, "bag,label,candidates,f1,..."); err != nil {
		return nil, err
	}
	c.rows.Short = o.Form == FrameForm
	return c.decode()
}

// packedText describes the format of a file that is not plain text, by its start. It returns "" for
// plain text.
func packedText(text *bufio.Reader) string {
	start, _ := text.Peek(4)
	switch {
	case bytes.HasPrefix(start, []byte("\x1f\x8b")):
		return "packed by gzip; a name that ends in .csv.gz says so"
	case bytes.Equal(start, []byte("PK\x03\x04")):
		return "a zip archive or a workbook of Excel; unpack it, or save the sheet as CSV"
	case bytes.Equal(start, []byte("\xd0\xcf\x11\xe0")):
		return "a workbook of Excel; save the sheet as CSV"
	case bytes.Equal(start, []byte("\xfd7zX")), bytes.HasPrefix(start, []byte("BZh")), bytes.Equal(start,
		[]byte("\x28\xb5\x2f\xfd")):
		return "packed by xz, bzip2 or Zstandard; unpack it, or pack it by gzip and name it .csv.gz"
	case bytes.Equal(start, []byte("PAR1")):
		return "a Parquet file; write it as CSV: table.to_csv(path, index=False) in pandas"
	case bytes.IndexByte(start, 0) >= 0:
		return "binary, or UTF-16 without a byte order mark; save it in UTF-8"
	}
	return ""
}

// decode reads c.rows.
func (c *csvReader) decode() (*data.Dataset, error) {
	if err := c.readRows(); err != nil {
		return nil, err
	}
	d, err := c.dataset()
	if err != nil {
		return nil, err
	}
	switch {
	case c.fileColumn < 0 && c.Files != nil:
		return nil, c.errorf(0, "the table has no column %q, which names the images of each bag", fileColumnName).
			WithNote("an encoder needs images: a folder of images, or a table with the columns bag, label, candidates and %s",
				fileColumnName)
	case c.Files != nil:
		err = c.openFiles(d)
	case c.fileColumn >= 0:
		err = c.attachFiles(d)
	}
	if err != nil {
		return nil, err
	}
	if err := c.Validate(d, c.path); err != nil {
		return nil, err
	}
	if d.OnDisk() {
		var cache data.HashCache
		if s, ok := d.Store.(*fileStore); ok && d.Offsets[d.Bags()]*d.Dim() >= minCached {
			cache = hashCacheOf(s)
		}
		if err := d.HashStored(cache); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// csvBag is the content of the first row of a bag.
type csvBag struct {
	line       int
	id         string
	label      string
	group      string // empty without the column
	candidates []string
	quoted     bool // the candidates are a JSON list, so that their names may contain any character
}

// instanceName is the class of an instance, and where it occurs first.
type instanceName struct {
	name      string
	bag, line int
}

// csvReader reads one CSV file.
type csvReader struct {
	Reading
	path string
	rows *rawfile.CSV

	// From the lines before the rows.
	linesBefore    int                 // lines before the header
	listedClasses  []string            // classes of the line "# classes:", or nil
	roles          [len(roleNames)]int // columns with the roles of roleNames; -1: none
	bagColumn      string              // name of the column of the bags
	featureColumns []int
	featureNames   []string
	coordColumns   []int // columns of x and y, or nil
	fileColumn     int   // column of the files of a table; -1: the features are in the columns

	// From the rows so far.
	d           data.Dataset
	bags        []csvBag
	ids         map[string]int  // bag number from 0
	classes     map[string]bool // labels and candidates that occur
	instNames   []instanceName  // names in the column instance_label; d.InstLabels has their indices for now
	instIndex   map[string]int  // index of each of them
	files       []tableFile     // rows of a table of files
	fileLines   map[string]int  // lines of the files of the last bag
	ranges      precision
	decimal     byte // decimal separator of the numbers, 0: all are whole
	decimalLine int  // line of the first number with it
	decimals    int  // numbers with a point if all of them could have it between thousands; -1: one could not
}

func (c *csvReader) errorf(line int, format string, args ...any) diag.Diagnostic {
	return diag.Errorf(diag.Pos{File: c.path, Line: line}, format, args...)
}

func (c *csvReader) readClassesLine(r *bufio.Reader) error {
	if start, _ := r.Peek(len(classesLine)); string(start) != classesLine {
		return nil
	}
	line, err := r.ReadString('\n')
	if err != nil {
		return rawfile.CSVError(c.path, 0, err)
	}
	c.linesBefore++
	c.listedClasses = strings.Fields(strings.TrimRight(line[len(classesLine):], spreadsheetPadding+" \t\n"))
	if len(c.listedClasses) > maxClasses {
		return c.errorf(1, "%d classes are listed, more than the limit of %d", len(c.listedClasses), maxClasses)
	}
	sorted := slices.Sorted(slices.Values(c.listedClasses))
	for i := 1; i < len(sorted); i++ {
		if sorted[i] == sorted[i-1] {
			return c.errorf(1, "the class %q is listed twice", sorted[i])
		}
	}
	return nil
}

func (c *csvReader) readRows() error {
	if err := c.readHeader(c.rows.Header); err != nil {
		return err
	}
	c.ids = map[string]int{}
	c.d.Offsets = []int{0}
	n := 0
	err := c.rows.Each(func(row []string) error {
		n++
		return c.readRow(row, c.rows.Line, n-1)
	})
	if err != nil {
		return err
	}
	if n == 0 {
		return c.errorf(0, "no rows after the header")
	}
	c.d.Offsets = append(c.d.Offsets, n)
	return nil
}

func (c *csvReader) readHeader(header []string) error {
	line := 1 + c.linesBefore
	if err := c.checkUTF8(line, "the column name", header...); err != nil {
		return err
	}
	c.detectLabels()
	if err := c.findRoles(header, line); err != nil {
		return err
	}
	c.instIndex = map[string]int{}
	if err := c.checkIgnored(header, line); err != nil {
		return err
	}
	c.fileColumn = slices.IndexFunc(header, func(name string) bool {
		return strings.EqualFold(name, fileColumnName) && !slices.Contains(c.Columns.Ignore, name) && c.Form != FrameForm
	})
	if c.fileColumn >= 0 {
		return c.tableHeader(header, line)
	}
	if err := c.findCoordinates(header, line); err != nil {
		return err
	}
	return c.readFeatures(header, line)
}

// readRow reads instance n, counted from 0.
func (c *csvReader) readRow(row []string, line, n int) error {
	if n == 0 {
		if err := c.checkText(row, line); err != nil {
			return err
		}
	}
	if err := c.readBag(row, line, n); err != nil {
		return err
	}
	if c.fileColumn >= 0 {
		return c.readFile(row, line, n)
	}
	bag := len(c.bags)
	if at := c.roles[roleInstanceLabel]; at >= 0 {
		name := c.className(row[at])
		index, known := c.instIndex[name]
		switch {
		case name == "":
			index = -1
		case !known:
			index, name = len(c.instNames), strings.Clone(name)
			c.instNames, c.instIndex[name] = append(c.instNames, instanceName{name, bag, line}), index
		}
		c.d.InstLabels = append(c.d.InstLabels, index)
	}
	if err := c.readCoordinates(row, line, bag); err != nil {
		return err
	}
	for j, at := range c.featureColumns {
		if at >= c.rows.Fields { // the numbers are in the frame
			c.d.Instances = append(c.d.Instances, 0)
			continue
		}
		field := row[at]
		x, err := c.feature(field, 32)
		switch {
		case errors.Is(err, strconv.ErrRange):
			return c.errorf(line, "bag %d: %s is %s, too large for float32", bag, c.featureName(j), field)
		case err != nil:
			return c.notANumber(line, bag, j, field)
		case math.IsNaN(x) || math.IsInf(x, 0):
			return c.errorf(line, "bag %d: %s is %s; features must be finite", bag, c.featureName(j), field).
				WithNote(adviceMissingValue, c.featureNames[j])
		}
		if err := c.checkDecimal(field, line, at); err != nil {
			return err
		}
		c.watchThousands(field)
		if c.ranges.isNarrow(j) {
			exact, _ := c.feature(field, 64)
			c.ranges.add(j, exact)
		}
		c.d.Instances = append(c.d.Instances, float32(x))
	}
	return nil
}

// feature parses a feature: a number, or True or False, as pandas writes 1 and 0 in a column of booleans.
func (c *csvReader) feature(field string, bits int) (float64, error) {
	x, err := c.rows.Number(field, bits)
	if err != nil {
		switch {
		case strings.EqualFold(field, "true"):
			return 1, nil
		case strings.EqualFold(field, "false"):
			return 0, nil
		}
	}
	return x, err
}

// featureName returns how messages name feature j, from 0. In frames, features have another order.
func (c *csvReader) featureName(j int) string {
	if c.Form == FrameForm {
		return fmt.Sprintf("the column %q", c.featureNames[j])
	}
	return fmt.Sprintf("feature %d", j+1)
}

// checkUTF8 returns an error for the first text that is not UTF-8. what precedes the text in the
// message. Bytes of another encoding would make the same name differ between files.
func (c *csvReader) checkUTF8(line int, what string, texts ...string) error {
	for _, text := range texts {
		if !utf8.ValidString(text) {
			return c.errorf(line, "%s %q is not UTF-8", what, text).
				WithNote(`save the file in UTF-8: "CSV UTF-8" in Excel, encoding="utf-8" in pandas, fileEncoding="UTF-8" in R`)
		}
	}
	return nil
}

// checkDecimal returns an error if the decimal separator of a number is not that of the numbers
// before: one of the two separates thousands. Only fields between semicolons may have both.
func (c *csvReader) checkDecimal(field string, line, column int) error {
	if c.rows.Comma != ';' {
		return nil
	}
	i := strings.IndexAny(field, ",.")
	switch {
	case i < 0 || field[i] == c.decimal:
		return nil
	case c.decimal == 0:
		c.decimal, c.decimalLine = field[i], line
		return nil
	}
	name := map[byte]string{',': "comma", '.': "point"}
	return diag.Errorf(diag.Pos{File: c.path, Line: line, Col: c.textColumn(column)},
		"%q has a decimal %s, but a number in line %d a decimal %s", field, name[field[i]], c.decimalLine, name[c.decimal]).
		WithNote("write all numbers with the same decimal separator, and without a separator of thousands")
}

// adviceMissingValue is the advice for a value that is missing in a column.
const adviceMissingValue = "every instance needs all features: fill in the missing values of the column %q, such as " +
	"with its mean, or leave the row out"

// notANumber returns the error for feature j, from 0, of the row that was read last.
func (c *csvReader) notANumber(line, bag, j int, field string) error {
	at := c.textColumn(c.featureColumns[j])
	d := diag.Errorf(diag.Pos{File: c.path, Line: line, Col: at}, "bag %d: %s is %q, not a number", bag, c.featureName(j),
		field)
	switch _, err := strconv.ParseFloat(strings.Replace(field, ",", ".", 1), 32); {
	case missing(field):
		return d.WithNote(adviceMissingValue, c.featureNames[j])
	case thousands.MatchString(field):
		return d.WithNote("if the comma separates thousands, remove it; if it is a decimal comma, separate the fields with " +
			"semicolons")
	case err == nil && strings.Contains(field, ","):
		return d.WithNote("if numbers have a decimal comma, separate the fields with semicolons")
	case c.Columns.ModelFeatures != nil:
		return d.WithNote("%s", adviceModelFeature)
	}
	return d.WithNote("features are numbers; if the column %q is not a feature, leave it out with %s", c.featureNames[j],
		c.Form.ignoring(c.featureNames[j]))
}

// textColumn returns the position of a field in the line that was read last, 0 if the row lacks it.
func (c *csvReader) textColumn(field int) int {
	if field >= c.rows.Fields {
		return 0
	}
	_, at := c.rows.FieldPos(field)
	return at
}

// thousands matches numbers with commas between thousands.
var thousands = regexp.MustCompile(`^[+-]?[0-9]{1,3}(,[0-9]{3})+(\.[0-9]+)?$`)

// groupOfThree matches numbers with a point before their last three digits: a decimal point, or one between thousands.
var groupOfThree = regexp.MustCompile(`^[+-]?[1-9][0-9]{0,2}\.[0-9]{3}$`)

// watchThousands counts the numbers with a point in a file whose fields are separated by semicolons. Where the decimal
// separator is a comma, spreadsheets write a point between thousands: 1.037 is 1037.
func (c *csvReader) watchThousands(field string) {
	if c.rows.Comma != ';' || c.decimals < 0 || !strings.Contains(field, ".") {
		return
	}
	if c.decimals++; !groupOfThree.MatchString(field) {
		c.decimals = -1
	}
}

// missing reports whether a field of a column of numbers is a missing value. Other texts than those of data.MissingMark
// cannot be names there.
func missing(field string) bool {
	return data.MissingMark(field) || slices.Contains([]string{"", "na", "none", "?", "-", "."}, strings.ToLower(field))
}

// readBag starts a new bag, or checks that the row agrees with the first row of the current bag.
func (c *csvReader) readBag(row []string, line, n int) error {
	b, listing := c.bagOf(row, line)
	number := len(c.bags) + 1
	if number > 1 && c.bags[number-2].id == b.id {
		return c.checkSame(&b, listing)
	}
	other, seen := c.ids[b.id]
	switch {
	case b.id == "":
		return c.errorf(line, "the column bag is empty")
	case data.MissingMark(b.id):
		return c.errorf(line, "the name of bag %d is %q, %s", number, b.id, data.WrittenForMissing).
			WithNote("give each bag a name of its own")
	case seen:
		return c.errorf(line, "bag %d (%q) occurs again after other bags; the rows of a bag must be adjacent (the first "+
			"is line %d)", other+1, b.id, c.bags[other].line).
			WithNote("if these rows are one bag, sort the rows by bag: table.sort_values(%q, kind=\"stable\") in pandas",
				c.bagColumn).
			WithNote("if they are different bags, give each of them a name of its own")
	case !data.PlainName(b.id) && utf8.ValidString(b.id):
		return c.errorf(line, "the name of bag %d, %q, contains a line break or another control character; rename the bag",
			number, b.id)
	case b.group == "" && c.roles[roleGroup] >= 0:
		return c.errorf(line, "bag %d (%q) has no group: the column %s is empty", number, b.id, c.Columns.Roles.Group).
			WithNote("%s", data.AdviceMissingGroup)
	case data.MissingMark(b.group):
		return c.errorf(line, "bag %d (%q): the column %s has %q, %s", number, b.id, c.Columns.Roles.Group, b.group,
			data.WrittenForMissing).WithNote("%s", data.AdviceMissingGroup)
	}
	if err := c.checkUTF8(line, "the text", b.id, b.label, b.group, listing); err != nil {
		return err
	}
	if err := c.registerClasses(&b); err != nil {
		return err
	}
	if err := c.settleCandidates(&b, listing); err != nil {
		return err
	}
	if n > 0 {
		c.d.Offsets = append(c.d.Offsets, n)
	}
	c.ids[b.id] = len(c.bags)
	c.bags = append(c.bags, b)
	return nil
}

// bagOf returns the bag of a row, whose texts are valid until the next row. listing is the text of
// the candidates.
func (c *csvReader) bagOf(row []string, line int) (b csvBag, listing string) {
	field := func(role int) string {
		if at := c.roles[role]; at >= 0 {
			return row[at]
		}
		return ""
	}
	b = csvBag{line: line, id: field(roleBag), label: c.className(field(roleLabel)), group: field(roleGroup)}
	if c.roles[roleBag] < 0 {
		b.id = "1" // the file has one bag
	}
	switch {
	case c.Labels == KnownLabels, c.Labels == noLabels, c.NoCandidates:
		return b, ""
	case c.Labels == MultiLabels: // they are the candidates of the bag, which has no label
		listing, b.label = b.label, ""
	default:
		listing = field(roleCandidates)
	}
	if b.quoted = strings.HasPrefix(listing, "[") && json.Unmarshal([]byte(listing), &b.candidates) == nil; !b.quoted {
		b.candidates = strings.Fields(listing)
	}
	for i, name := range b.candidates {
		b.candidates[i] = c.className(strings.TrimSpace(name))
	}
	return b, listing
}

// className returns the class that a file names: one that the file or the model lists, if need be in another Unicode
// form. pandas writes the class 1 as 1.0 if other fields of the column are empty, so 1.0 is the class 1, unless a class
// 1.0 is listed.
func (c *csvReader) className(name string) string {
	if slices.Contains(c.listedClasses, name) || slices.Contains(c.Columns.ModelClasses, name) {
		return name
	}
	for _, listed := range slices.Concat(c.listedClasses, c.Columns.ModelClasses) {
		if diag.Canonical(listed) == diag.Canonical(name) {
			return listed
		}
	}
	whole, found := strings.CutSuffix(name, ".0")
	if !found {
		return name
	}
	if _, err := strconv.Atoi(whole); err != nil {
		return name
	}
	return whole
}

// checkSame checks that a row agrees with the current bag, to which it belongs.
func (c *csvReader) checkSame(row *csvBag, listing string) error {
	b := c.bags[len(c.bags)-1]
	differs := func(what, here, there string) error {
		d := c.errorf(row.line, "bag %d (%q) has the %s %q here and %q in line %d", len(c.bags), b.id, what, here, there,
			b.line)
		if c.roles[roleBag] < 0 {
			return d.WithNote("the header has no column \"bag\", so that all rows are one bag; rename the column with the " +
				"names of the bags to \"bag\"")
		}
		return d
	}
	switch {
	case row.label != "" && row.label != b.label:
		return differs("label", row.label, b.label)
	case len(row.candidates) > 0 && !slices.Equal(row.candidates, b.candidates):
		return differs(c.Labels.word(2), listing, strings.Join(b.candidates, " "))
	case row.group != "" && row.group != b.group:
		return differs("group", row.group, b.group)
	}
	return nil
}

// registerClasses registers the candidates of a new bag and copies its texts.
func (c *csvReader) registerClasses(b *csvBag) error {
	b.id, b.label, b.group = strings.Clone(b.id), strings.Clone(b.label), strings.Clone(b.group)
	listed := make(map[string]bool, min(len(b.candidates), maxClasses))
	for i, name := range b.candidates {
		if listed[name] {
			return c.errorf(b.line, "bag %d (%q) lists the %s %q twice", len(c.bags)+1, b.id, c.Labels.word(1), name)
		}
		listed[name] = true
		if err := c.class(name, b.quoted, b.line, len(c.bags)+1); err != nil {
			return err
		}
		b.candidates[i] = strings.Clone(name)
	}
	return nil
}

// settleCandidates checks the label and the candidates of a new bag against each other. A bag
// without candidates gets its label as the only one.
func (c *csvReader) settleCandidates(b *csvBag, listing string) error {
	number := len(c.bags) + 1
	switch {
	case c.Labels == MultiLabels:
	case c.Labels == KnownLabels && b.label == "":
		if !c.DetectLabels {
			return c.noLabel(b, number)
		} // perhaps no bag has one
	case len(b.candidates) == 0 && c.Columns.ModelClasses == nil && c.Labels.sets():
		return c.errorf(b.line, "bag %d (%q) has no candidate label", number, b.id)
	case len(b.candidates) == 0 && b.label != "":
		if err := c.class(b.label, false, b.line, number); err != nil {
			return err
		}
		b.candidates = []string{b.label}
	case b.label != "" && (c.Labels == NoisyLabels || c.Columns.ModelClasses != nil || data.MissingMark(b.label) &&
		!c.listed(b.label)):
		return c.class(b.label, false, b.line, number)
	case b.label != "" && !slices.Contains(b.candidates, b.label):
		d := c.errorf(b.line, "bag %d (%q): the true label %q is not among the candidates %q", number, b.id, b.label, listing)
		if strings.Contains(b.label, " ") && !b.quoted {
			return d.WithNote("spaces separate candidates: write class names without spaces, e.g. %s",
				strings.ReplaceAll(b.label, " ", "_"))
		}
		return d.WithNote("change the label or the candidates; leave an unknown label empty").
			WithNote("if candidate sets are noisy on purpose: %s", c.Form.labels("noisy"))
	}
	return nil
}

// noLabel returns the error that bag number, counted from 1, needs a label.
func (c *csvReader) noLabel(b *csvBag, number int) error {
	return c.errorf(b.line, "bag %d (%q) has no label%s", number, b.id, c.Form.known()).
		WithNote("leave the bag out, or use candidates: all classes if nothing is known")
}

// foreignSeparators are separators of candidates in files of other programs. A class name that contains one
// must be listed in the first line of the file.
const foreignSeparators = ",;|[]"

// adviceMissingLabel is the advice for the mark of a missing label.
func (c *csvReader) adviceMissingLabel() string {
	switch {
	case c.Columns.ModelClasses != nil:
		return "leave the field empty if the label is unknown"
	case c.Labels == KnownLabels:
		return "every bag needs a label: leave the bag out"
	case c.Labels == MultiLabels:
		return "leave the field empty if no class is true, and leave the bag out if its labels are unknown"
	}
	return "leave the label empty if it is unknown; list all classes as candidates if nothing is known"
}

// listed reports whether the file or the model lists its classes, so that a name needs no check.
func (c *csvReader) listed(name string) bool {
	return c.listedClasses != nil || slices.Contains(c.Columns.ModelClasses, name)
}

// class registers the name of a class. bag counts from 1. A quoted name may contain separators.
func (c *csvReader) class(name string, quoted bool, line, bag int) error {
	switch {
	case c.classes[name]:
		return nil
	case !c.listed(name) && data.MissingMark(name):
		return c.errorf(line, "bag %d: the label is %q, %s", bag, name, data.WrittenForMissing).
			WithNote("%s", c.adviceMissingLabel()).
			WithNote("if it is the name of a class, %s", c.Form.classes())
	case !c.listed(name) && !quoted && strings.ContainsAny(name, foreignSeparators):
		d := c.errorf(line, "bag %d: %q does not look like the name of a class", bag, name)
		if c.Labels != KnownLabels {
			d = d.WithNote("separate %s with spaces, e.g. cat dog", c.Labels.word(2))
		}
		return d.WithNote("if class names contain one of %s, %s", foreignSeparators, c.Form.classes())
	}
	if len(c.classes) == maxClasses {
		return c.errorf(line, "bag %d: there are more than %d classes; is the column candidates mixed up?", bag, maxClasses)
	}
	c.classes[strings.Clone(name)] = true
	return nil
}

// dataset numbers the classes and fills in the labels.
func (c *csvReader) dataset() (*data.Dataset, error) {
	d := &c.d
	d.Shape, d.FeatureNames = []int{len(c.featureColumns)}, c.featureNames
	d.Warnings = c.ranges.warnings(c.path, c.featureNames)
	if c.decimals > 1 {
		d.Warnings = append(d.Warnings, c.path+": all numbers with a point have three digits after it; if the point "+
			"separates thousands (1.037 for 1037), remove it")
	}
	d.ClassNames = c.listedClasses
	labeled := slices.ContainsFunc(c.bags, func(b csvBag) bool { return len(b.candidates) > 0 })
	d.Multi = c.Labels == MultiLabels && (labeled || c.Columns.ModelClasses == nil)
	if i := slices.IndexFunc(c.bags, func(b csvBag) bool { return b.label == "" }); i >= 0 && c.Labels == KnownLabels {
		if labeled {
			return nil, c.noLabel(&c.bags[i], i+1)
		}
		c.Labels, c.listedClasses = noLabels, nil
	}
	if c.listedClasses == nil {
		if slices.ContainsFunc(c.bags, func(b csvBag) bool { return len(b.candidates) == 0 }) {
			for _, name := range c.Columns.ModelClasses {
				c.classes[name] = true
			}
		}
		if err := c.checkInstanceLabels(); err != nil {
			return nil, err
		}
		d.ClassNames = sortedNames(slices.Collect(maps.Keys(c.classes)))
		if err := c.checkContinuous(d.ClassNames); err != nil {
			return nil, err
		}
	}
	d.Classes = len(d.ClassNames)
	var err error
	if d.Candidates, err = emptyCandidates(c.MaxBytes, len(c.bags), d.Classes); err != nil {
		return nil, err
	}
	number := make(map[string]int, d.Classes)
	for i, name := range d.ClassNames {
		number[name] = i
	}
	if err := c.setLabels(number); err != nil {
		return nil, err
	}
	c.nameBags()
	for i, index := range d.InstLabels {
		if index < 0 {
			continue
		}
		first, ok := c.instNames[index], false
		if d.InstLabels[i], ok = number[first.name]; !ok {
			return nil, c.unknownClass(first.line, first.bag-1, first.name)
		}
	}
	return d, nil
}

// nameBags sets the groups and the names of the bags; names that are the numbers of the bags are left out.
func (c *csvReader) nameBags() {
	d, numbered := &c.d, true
	if c.roles[roleGroup] >= 0 {
		d.GroupName = c.Columns.Roles.Group
		for _, b := range c.bags {
			d.Groups = append(d.Groups, b.group)
		}
	}
	for i, b := range c.bags {
		if d.BagNames = append(d.BagNames, b.id); b.id != strconv.Itoa(i+1) {
			numbered = false
		}
	}
	if numbered {
		d.BagNames = nil
	}
}

// setLabels sets the candidates and the labels of the bags. number is the number of each class.
func (c *csvReader) setLabels(number map[string]int) error {
	d := &c.d
	d.Labels = make([]int, len(c.bags))
	for i, b := range c.bags {
		if len(b.candidates) == 0 && !d.Multi { // unknown
			for class := range d.Classes {
				d.CandidateMask(i)[class] = 1
			}
		}
		for _, name := range b.candidates {
			class, ok := number[name]
			if !ok {
				return c.unknownClass(b.line, i, name)
			}
			d.CandidateMask(i)[class] = 1
		}
		d.Labels[i] = -1
		if b.label != "" {
			class, ok := number[b.label]
			if !ok {
				return c.unknownClass(b.line, i, b.label)
			}
			d.Labels[i] = class
		}
	}
	if !data.AnyKnown(d.Labels) {
		d.Labels = nil
	}
	return nil
}

// checkContinuous returns an error if most bags have classes of their own that are numbers with a fraction.
func (c *csvReader) checkContinuous(classes []string) error {
	fraction := ""
	for _, name := range classes {
		x, err := strconv.ParseFloat(strings.Replace(name, ",", ".", 1), 64)
		if err != nil {
			return nil
		}
		if x != math.Trunc(x) && fraction == "" {
			fraction = name
		}
	}
	if fraction == "" || len(classes) < 3 || 2*len(classes) <= len(c.bags) || c.Columns.ModelClasses != nil {
		return nil
	}
	return c.errorf(0, "%s have %s that are numbers such as %s: miplc predicts classes, not numbers",
		diag.Count(len(c.bags), "bag"), diag.Count(len(classes), "different label"), fraction).
		WithNote("divide the numbers into classes, such as low and high, and write these as labels").
		WithNote("if they are the names of classes, %s", c.Form.classes())
}

// checkInstanceLabels returns an error for the first label of an instance that is not a class of the
// bags or of the model that predicts.
func (c *csvReader) checkInstanceLabels() error {
	for _, i := range c.instNames {
		if !c.classes[i.name] && !slices.Contains(c.Columns.ModelClasses, i.name) {
			return c.errorf(i.line, "the instance label %q is no label and no candidate of any bag", i.name).
				WithNote("leave the field of an instance without a known class empty")
		}
		c.classes[i.name] = true
	}
	return nil
}

func (c *csvReader) unknownClass(line, bag int, name string) error {
	where := "of the first line"
	if c.Columns.Classes != nil {
		where = "of the given list"
	}
	return c.errorf(line, "bag %d: %q is not a class %s", bag+1, name, where).
		WithSuggestion(diag.Suggest(name, c.listedClasses))
}

// sortedNames returns class names in numerical order if all are whole numbers, and in alphabetical
// order otherwise.
func sortedNames(names []string) []string {
	sorted, numbers := slices.Sorted(slices.Values(names)), map[string]int{}
	for _, name := range sorted {
		number, err := strconv.Atoi(name)
		if err != nil {
			return sorted
		}
		numbers[name] = number
	}
	slices.SortStableFunc(sorted, func(a, b string) int { return cmp.Compare(numbers[a], numbers[b]) })
	return sorted
}
