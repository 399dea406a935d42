// Reading of npz files.

package bagfile

import (
	"archive/zip"
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/rawfile"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/resources"
)

// Arrays of an .npz file.
const (
	keyInstances  = "instances"       // float32 [N, ...]; other number types are converted
	keyOffsets    = "offsets"         // int64 [m+1]
	keyCandidates = "candidates"      // uint8 [m, k]
	keyLabels     = "labels"          // int64 [m], -1 unknown, may be missing; with MultiLabels uint8 [m, k]
	keyInstLabels = "instance_labels" // int64 [N], -1 negative or unknown; may be missing
	keyCoords     = "coords"          // float32 [N, 2], x and y; other number types are converted; may be missing
	keyClassNames = "class_names"     // unicode [k]; may be missing
	keyBagNames   = "bag_names"       // unicode [m]; may be missing
	keyFeatures   = "feature_names"   // unicode [d]; may be missing
	keyGroups     = "groups"          // unicode or whole numbers [m]; may be missing
	keyGroupName  = "group_name"      // unicode [1]; may be missing
	keyGenerator  = "generator"       // unicode [1], see imagebags.Recipe; may be missing
)

// decodeNPZ reads the arrays above and ignores others.
func decodeNPZ(r io.ReaderAt, size int64, path string, o Reading) (*data.Dataset, error) {
	archive, err := zip.NewReader(r, size)
	start := make([]byte, len(npyMagic))
	n, _ := r.ReadAt(start, 0)
	switch {
	case err == nil:
	case size == 0:
		return nil, diag.Errorf(diag.Pos{File: path}, "the file is empty")
	case string(start[:n]) == npyMagic:
		return nil, diag.Errorf(diag.Pos{File: path}, "a single array, as numpy.save writes it; numpy.savez writes all "+
			"arrays to one file")
	default:
		return nil, diag.Errorf(diag.Pos{File: path}, "not a readable .npz archive (%v); the file is cut short or of "+
			"another kind", err)
	}
	z := &npzReader{path: path, form: o.Form, entries: map[string]*zip.File{}, left: int64(o.MaxBytes.Budget().Bytes),
		limit: o.MaxBytes}
	for _, e := range archive.File {
		key := strings.TrimSuffix(e.Name, ".npy")
		if _, twice := z.entries[key]; twice {
			return nil, diag.Errorf(diag.Pos{File: path}, "the archive contains %q twice", e.Name)
		}
		z.entries[key] = e
	}
	if o.DetectLabels {
		o.Labels = z.detectLabels(o.Labels)
	}
	d := z.dataset(o)
	if err := z.faults.Err(); err != nil {
		return nil, err
	}
	if err := o.Validate(d, path); err != nil {
		return nil, err
	}
	return d, nil
}

type npzReader struct {
	path    string
	form    Form // of the advice in messages
	entries map[string]*zip.File
	limit   rawfile.Limit
	left    int64 // remaining uncompressed bytes
	faults  diag.List
}

// dataset reads all arrays and records all errors.
func (z *npzReader) dataset(o Reading) *data.Dataset {
	d := &data.Dataset{}
	var shape, candidates []int // of the instances and of the matrix of candidates or labels
	var ranges precision
	keep := func(err error) { z.faults.AddError(diag.Pos{File: z.path}, err) }
	keep(z.read(keyInstances, true, func(h *npyHeader, r io.Reader) (err error) {
		if len(h.shape) < 2 {
			return fmt.Errorf("has the shape %v; [instances, features] is needed", h.shape)
		}
		shape = h.shape
		d.Instances, err = h.floats(r, ranges.watch(h))
		return err
	}))
	keep(z.ints(keyOffsets, true, "where each bag begins, from 0, and the number of instances", &d.Offsets))
	matrix := keyCandidates
	if d.Multi = o.Labels == MultiLabels && (z.entries[keyLabels] != nil || o.Columns.ModelClasses == nil); d.Multi {
		matrix = keyLabels
	} else {
		keep(z.ints(keyLabels, false, "the class of each bag, from 0, -1 where it is unknown", &d.Labels))
	}
	if d.Multi || o.Labels != KnownLabels && o.Labels != noLabels && !o.NoCandidates {
		var err error
		candidates, err = z.matrix(matrix, d.Multi || o.Columns.ModelClasses == nil, &d.Candidates)
		keep(err)
	}
	keep(z.ints(keyInstLabels, false, "the class of each instance, from 0, -1 where it is negative or unknown",
		&d.InstLabels))
	keep(z.coords(&d.Coords))
	z.allNames(d, keep)
	if len(z.faults) > 0 {
		return nil
	}
	if err := z.checkSizes(d.Offsets, shape[0]); err != nil {
		keep(err)
		return nil
	}
	d.Shape = slices.Clone(shape[1:])
	d.Warnings = ranges.warnings(z.path, d.FeatureNames)
	if o.Labels == noLabels {
		d.Labels, d.ClassNames = nil, nil
		if d.InstLabels != nil {
			keep(fmt.Errorf("%q needs the array %q or %q, which has the classes of the bags", keyInstLabels, keyLabels,
				keyCandidates))
		}
		return d
	}
	if o.Labels == KnownLabels || candidates == nil || o.Labels == MultiLabels && !d.Multi {
		keep(setLabelsAsCandidates(d, o))
		return d
	}
	d.Classes = candidates[1]
	if bags := len(d.Offsets) - 1; bags != candidates[0] {
		keep(fmt.Errorf("%q is for %s, %q for %d; offsets has one number more than there are bags", keyOffsets,
			diag.Count(bags, "bag"), matrix, candidates[0]))
	}
	return d
}

// allNames reads the arrays of texts.
func (z *npzReader) allNames(d *data.Dataset, keep func(error)) {
	for _, a := range []struct {
		key, axis string
		to        *[]string
	}{
		{keyClassNames, "classes", &d.ClassNames}, {keyBagNames, "bags", &d.BagNames},
		{keyFeatures, "features", &d.FeatureNames}, {keyGroups, "bags", &d.Groups},
	} {
		keep(z.names(a.key, a.axis, a.to))
	}
	keep(z.name(keyGroupName, &d.GroupName))
	keep(z.name(keyGenerator, &d.Generator))
}

// detectLabels returns the kind of the labels of the archive, given or that of its arrays.
func (z *npzReader) detectLabels(given Labels) Labels {
	if given == MultiLabels || z.entries[keyCandidates] != nil {
		return given
	}
	labels, axes := noLabels, 0
	if e := z.entries[keyLabels]; e != nil {
		labels = KnownLabels
		if raw, err := e.Open(); err == nil { // an error is reported when the array is read
			if h, err := readNpyHeader(raw); err == nil {
				axes = len(h.shape)
			}
			raw.Close()
		}
	}
	if axes == 2 {
		return MultiLabels
	}
	return labels
}

// coords reads the coordinates of the instances.
func (z *npzReader) coords(to *[]float32) error {
	return z.read(keyCoords, false, func(h *npyHeader, r io.Reader) (err error) {
		if len(h.shape) != 2 || h.shape[1] != 2 {
			return fmt.Errorf("has the shape %v; [instances, 2] is needed: x and y", h.shape)
		}
		*to, err = h.floats(r, nil)
		return err
	})
}

// checkSizes returns an error if there are no bags, or if the offsets are the sizes of bags with n instances in all.
func (z *npzReader) checkSizes(offsets []int, n int) error {
	if len(offsets) < 2 {
		return errors.New("there are no bags: offsets needs the beginning of each bag and the number of instances")
	}
	for _, size := range offsets {
		if size < 1 || size > n {
			return nil
		}
		n -= size
	}
	if n != 0 || len(offsets) == 0 {
		return nil
	}
	return diag.Errorf(diag.Pos{File: z.path}, "array %q: contains the sizes of the bags; it says where each bag begins, "+
		"from 0, and ends with the number of instances", keyOffsets).
		WithNote("write %s=numpy.cumsum([0, *sizes])", keyOffsets)
}

// watch returns the function for npyHeader.floats that adds the instances of an array, nil if float32
// represents all numbers of its type. The columns of an array in Fortran order are features if it has two axes.
func (p *precision) watch(h *npyHeader) func(part []byte, before int) {
	n, width := h.shape[0], ndarray.Size(h.shape[1:])
	feature := func(i int) int { return i % width }
	if h.fortran {
		feature = func(i int) int { return i / n }
	}
	if h.text() || !exceedsFloat32(h.number) || h.fortran && len(h.shape) > 2 {
		return nil
	}
	return func(part []byte, before int) { p.addBytes(h.number, part, before, feature) }
}

// matrix reads a matrix of 0 and 1, [bags, classes]. It returns its shape, or nil if it is missing.
func (z *npzReader) matrix(key string, required bool, to *[]uint8) (shape []int, err error) {
	err = z.read(key, required, func(h *npyHeader, r io.Reader) error {
		if len(h.shape) != 2 {
			return fmt.Errorf("has the shape %v; [bags, classes] is needed", h.shape)
		}
		shape = h.shape
		numbers, err := h.ints(r, "0 or 1 for each bag and class")
		for i, x := range numbers {
			if x != 0 && x != 1 { // such as a list of label numbers
				return fmt.Errorf("bag %d: contains %d; entries must be 0 or 1, one column per class", i/shape[1]+1, x)
			}
			*to = append(*to, uint8(x))
		}
		return err
	})
	return shape, err
}

// setLabelsAsCandidates sets the candidates of bags without candidate sets: the true label, or all classes if it is
// unknown, which is an error for KnownLabels.
func setLabelsAsCandidates(d *data.Dataset, o Reading) error {
	why, wrong := "", "bag %d has the label %d, the model has %s%s"
	if o.Labels == KnownLabels {
		why, wrong = o.Form.known(), "bag %d has the label %d of %s%s"
	} else if d.ClassNames == nil && len(o.Columns.ModelClasses) > 0 {
		d.ClassNames = slices.Clone(o.Columns.ModelClasses)
	}
	if len(d.Labels) != d.Bags() && (d.Labels != nil || why != "") {
		return fmt.Errorf("%s for %s%s", diag.Count(len(d.Labels), "true label"), diag.Count(d.Bags(), "bag"), why)
	}
	var err error
	if d.Classes = len(d.ClassNames); d.ClassNames == nil && len(d.Labels) > 0 {
		examples := max(len(d.Labels), len(o.Columns.ModelClasses)) // bags to predict need no example of each class
		if d.Classes, err = classesUpTo(0, slices.Max(d.Labels), examples, "true label"); err != nil {
			return fmt.Errorf("array %q: %w", keyLabels, err)
		}
	}
	if d.Candidates, err = emptyCandidates(o.MaxBytes, d.Bags(), d.Classes); err != nil {
		return err
	}
	for i := range d.Bags() {
		label, known := d.Label(i)
		set := d.CandidateMask(i)
		switch {
		case known && label >= d.Classes, !known && why != "":
			return fmt.Errorf(wrong, i+1, d.Labels[i], diag.Count(d.Classes, "class"), why)
		case known:
			set[label] = 1
		default:
			copy(set, bytes.Repeat([]byte{1}, d.Classes))
		}
	}
	return nil
}

// ints reads a row or a column of whole numbers. what describes them in messages.
func (z *npzReader) ints(key string, required bool, what string, to *[]int) error {
	return z.read(key, required, func(h *npyHeader, r io.Reader) (err error) {
		if key == keyLabels && len(h.shape) == 2 && h.count != slices.Max(h.shape) {
			return fmt.Errorf("has the shape %v: a bag with any number of labels needs data.labels: multi; otherwise one "+
				"axis is needed: %s", h.shape, what)
		}
		if len(h.shape) == 0 || h.count != slices.Max(h.shape) {
			return fmt.Errorf("has the shape %v; one axis is needed: %s", h.shape, what)
		}
		*to, err = h.ints(r, what)
		return err
	})
}

// names reads an optional array of text or whole numbers. axis is what it names.
func (z *npzReader) names(key, axis string, to *[]string) error {
	return z.read(key, false, func(h *npyHeader, r io.Reader) (err error) {
		if len(h.shape) != 1 {
			return fmt.Errorf("has the shape %v; [%s] is needed", h.shape, axis)
		}
		if h.text() {
			*to, err = h.strings(r)
			return err
		}
		numbers, err := h.ints(r, "text or a number for each of the "+axis)
		for _, n := range numbers {
			*to = append(*to, strconv.Itoa(n))
		}
		return err
	})
}

// name reads an optional array of one text.
func (z *npzReader) name(key string, to *string) error {
	var names []string
	if err := z.names(key, "1", &names); err != nil || names == nil {
		return err
	}
	if len(names) != 1 {
		return fmt.Errorf("array %q: has the shape [%d]; [1] is needed", key, len(names))
	}
	*to = names[0]
	return nil
}

// read opens an array, checks its size against the limit, and calls use with its elements.
func (z *npzReader) read(key string, required bool, use func(*npyHeader, io.Reader) error) error {
	e, ok := z.entries[key]
	if !ok {
		if required {
			d := diag.Errorf(diag.Pos{File: z.path}, "no array %q in the archive; %s, %s and %s are needed", key, keyInstances,
				keyOffsets, keyCandidates)
			switch {
			case key == keyCandidates:
				return d.WithNote("%s", z.form.certainLabels())
			case key == keyInstances:
				return z.adviseNames(d)
			}
			return d
		}
		return nil
	}
	if err := z.decode(e, key, use); err != nil {
		if _, ok := errors.AsType[*resources.MemoryError](err); ok {
			return err
		}
		return fmt.Errorf("array %q: %w", key, err)
	}
	return nil
}

// adviseNames adds the names that the arrays need to the error that there are no instances.
func (z *npzReader) adviseNames(d diag.Diagnostic) diag.Diagnostic {
	names := slices.Sorted(maps.Keys(z.entries))
	d = d.WithNote("the archive has %s", diag.Words(names))
	for _, features := range []string{"X", "x", "data", "features"} {
		if z.entries[features] == nil {
			continue
		}
		d = d.WithNote("name the array with the instances of all bags, [instances, features], %s: %s=%s", keyInstances,
			keyInstances, features)
		if z.entries[keyOffsets] == nil {
			d = d.WithNote("%s says where each bag begins: numpy.arange(len(%s) + 1) if each row is a bag of one instance; "+
				"if the array is [bags, n, features], write %s=%[2]s.reshape(-1, %[2]s.shape[2]) and "+
				"%[1]s=numpy.arange(len(%[2]s) + 1) * %[2]s.shape[1]", keyOffsets, features, keyInstances)
		}
		for _, labels := range []string{"y", "Y", "target", "targets", "label"} {
			if z.entries[labels] != nil && z.entries[keyLabels] == nil {
				d = d.WithNote("name the array with the class of each bag, from 0, %s: %s=%s", keyLabels, keyLabels, labels)
			}
		}
		return d
	}
	return d
}

func (z *npzReader) decode(e *zip.File, key string, use func(*npyHeader, io.Reader) error) error {
	raw, err := e.Open()
	if err != nil {
		return err
	}
	defer raw.Close()
	tooLarge := z.limit.Exceeded(fmt.Sprintf("array %q", key))
	r := bufio.NewReaderSize(rawfile.Bound(raw, z.left, tooLarge), 1<<16)
	h, err := readNpyHeader(r)
	if err != nil {
		return err
	}
	if h.cost() > z.left {
		return tooLarge
	}
	if err := use(h, r); err != nil {
		return err
	}
	switch _, err := r.ReadByte(); {
	case err == nil:
		return fmt.Errorf("contains more data than its shape %v needs", h.shape)
	case err != io.EOF:
		return fmt.Errorf("%w", err) // the checksum is compared at the end
	}
	z.left -= h.cost()
	return nil
}

// writeNPZ writes the arrays. The same dataset gives the same bytes.
func writeNPZ(w io.Writer, d *data.Dataset) error {
	return writeArrays(&npzWriter{zip: zip.NewWriter(w), method: zip.Deflate}, d)
}

// writeArrays writes the arrays of a dataset.
func writeArrays(z *npzWriter, d *data.Dataset) error {
	z.instances(d)
	z.ints(keyOffsets, d.Offsets)
	matrix := keyCandidates
	if d.Multi {
		matrix = keyLabels
	}
	if d.Classes > 0 {
		writeArray(z, matrix, npyStart("|u1", d.Bags(), d.Classes), d.Candidates)
		z.ints(keyLabels, d.Labels)
	}
	z.ints(keyInstLabels, d.InstLabels)
	if d.Coords != nil {
		writeArray(z, keyCoords, npyStart("<f4", len(d.Coords)/2, 2), d.Coords)
	}
	z.names(keyClassNames, d.ClassNames)
	z.names(keyBagNames, d.BagNames)
	z.names(keyFeatures, d.FeatureNames)
	z.names(keyGroups, d.Groups)
	if d.Groups != nil && d.GroupName != "" {
		z.names(keyGroupName, []string{d.GroupName})
	}
	if d.Generator != "" {
		z.names(keyGenerator, []string{d.Generator})
	}
	return errors.Join(z.err, z.zip.Close())
}

// instances writes the instances of all bags.
func (z *npzWriter) instances(d *data.Dataset) {
	w := z.begin(keyInstances, npyStart("<f4", append([]int{d.Offsets[d.Bags()]}, d.Shape...)...))
	err := d.Each(d.AllBags(), func(_ int, x []float32) error {
		writeValues(z, w, x)
		return z.err
	})
	if z.err == nil {
		z.err = err
	}
}

type npzWriter struct {
	zip    *zip.Writer
	method uint16 // of compression
	err    error
}

// ints writes an optional array of numbers.
func (z *npzWriter) ints(key string, numbers []int) {
	if numbers == nil {
		return
	}
	wide := make([]int64, len(numbers))
	for i, n := range numbers {
		wide[i] = int64(n)
	}
	writeArray(z, key, npyStart("<i8", len(wide)), wide)
}

// names writes an optional array of text, as UTF-32 of fixed width.
func (z *npzWriter) names(key string, names []string) {
	if names == nil {
		return
	}
	width := 1
	for _, s := range names {
		width = max(width, utf8.RuneCountInString(s))
	}
	var text []rune
	for _, s := range names {
		text = append(text, []rune(s)...)
		text = append(text, make([]rune, width-utf8.RuneCountInString(s))...)
	}
	writeArray(z, key, npyStart(fmt.Sprintf("<U%d", width), len(names)), text)
}

// writeArray writes one entry.
func writeArray[T any](z *npzWriter, key string, start []byte, values []T) {
	writeValues(z, z.begin(key, start), values)
}

// begin starts an entry, without a modification time.
func (z *npzWriter) begin(key string, start []byte) io.Writer {
	if z.err != nil {
		return nil
	}
	w, err := z.zip.CreateHeader(&zip.FileHeader{Name: key + ".npy", Method: z.method})
	if err == nil {
		_, err = w.Write(start)
	}
	z.err = err
	return w
}

// writeValues appends values to an entry.
func writeValues[T any](z *npzWriter, w io.Writer, values []T) {
	for part := range slices.Chunk(values, 1<<14) {
		if z.err == nil {
			z.err = binary.Write(w, binary.LittleEndian, part)
		}
	}
}
