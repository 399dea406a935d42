// Package data contains datasets of bags with candidate label sets: validation, hashes, batches,
// and bags whose instances stay on disk. Subpackages read and write files, draw splits and generate
// datasets.
package data

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"sync"

	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/ndarray"
)

// Dataset is a set of bags with candidate label sets. Bag i consists of the instances Offsets[i] to
// Offsets[i+1]-1.
type Dataset struct {
	Name       string
	Shape      []int     // shape of one instance, e.g. [38] or [1, 28, 28]
	Instances  []float32 // [instances, Shape...] row-major; nil if they stay on disk
	Store      Store     // reads the instances of bags that stay on disk; nil: they are in Instances
	Offsets    []int     // [bags+1], starting at 0, strictly increasing
	Candidates []uint8   // [bags, classes], 1 for candidate labels
	Classes    int
	Labels     []int // [bags] true labels, -1 unknown; nil: all unknown
	// Multi: a bag has any number of true labels, which are its Candidates. Labels is nil.
	Multi      bool
	Noisy      bool  // true labels may be outside of the candidates
	Known      bool  // the candidates are only the true labels, each of which is certain
	InstLabels []int // [instances] class of each instance, -1 negative or unknown; nil: all unknown
	// Coords are the coordinates of the instances, e.g. in pixels of a slide: [instances, 2], x
	// to the right and y downwards; nil if they are unknown, or if Files has those of some bags.
	// Models do not use them.
	Coords     []float32
	ClassNames []string // [classes], or nil
	BagNames   []string // [bags] distinct names, e.g. of the image files; or nil
	// Groups are the groups of the bags, e.g. patients: [bags], not empty; or nil.
	Groups    []string
	GroupName string // kind of the groups, e.g. the name of their column; may be empty
	// SameFile is the first bag whose instances are those of the same file: [bags]; nil if all bags differ.
	SameFile []int
	// FeatureNames are the distinct names of the features of an instance, row-major, e.g. the
	// columns of a CSV file. nil: unknown.
	FeatureNames []string
	// Source identifies the images and the encoder from which the instances were computed. It is
	// empty if the instances were read from a file. Hash uses Source instead of computed instances,
	// because computed numbers differ between machines.
	Source string
	// Warnings describe what the reader of the file noticed and did not refuse, each with its file.
	Warnings []string

	// Generator says how the instances were made from images, see imagebags.RecipeOf; empty: unknown.
	// It is not part of Hash.
	Generator string

	storedHash []byte // set by HashStored
}

// Bags returns the number of bags m.
func (d *Dataset) Bags() int { return len(d.Offsets) - 1 }

// Find returns the index of a bag, see newFinder. Errors are at pos.
func (d *Dataset) Find(pos diag.Pos, bag string) (int, error) {
	return newFinder(d.Bags(), d.BagNames)(pos, bag)
}

// newFinder returns a function that returns the index of the bag with a name or, if the bags have no names,
// with a number from 1. The number of a named bag is not looked up, because names may be numbers: it could
// be that of another bag. Errors are diagnostics at pos.
func newFinder(bags int, names []string) finder {
	byName := make(map[string]int, len(names))
	for i, name := range names {
		byName[name] = i
	}
	byForm := sync.OnceValue(func() map[string]int { return canonical(names) })
	return func(pos diag.Pos, bag string) (int, error) {
		n, err := strconv.Atoi(bag)
		number := err == nil && strconv.Itoa(n) == bag
		i, named := byName[bag]
		if !named && names != nil {
			i, named = byForm()[diag.Canonical(bag)]
		}
		switch {
		case named:
			return i, nil
		case names != nil:
			return 0, noBag(pos, bag, n, names)
		case !number:
			return 0, diag.Errorf(pos, "no bag has the name %q; the bags have numbers from 1 to %d", bag, bags).
				WithSuggestion(diag.Whole(bag))
		case n < 1 || n > bags:
			return 0, diag.Errorf(pos, "there is no bag %d; the dataset has %s", n, diag.Count(bags, "bag"))
		}
		return n - 1, nil
	}
}

// canonical returns the index of each name by its Unicode form NFC, without names that have it in common.
func canonical(names []string) map[string]int {
	index, several := make(map[string]int, len(names)), map[string]bool{}
	for i, name := range names {
		form := diag.Canonical(name)
		if _, twice := index[form]; twice {
			several[form] = true
		}
		index[form] = i
	}
	maps.DeleteFunc(index, func(form string, _ int) bool { return several[form] })
	return index
}

// noBag returns the error that no bag has a name. number is the number that the name is, or 0.
func noBag(pos diag.Pos, bag string, number int, names []string) error {
	d := diag.Errorf(pos, "no bag has the name %q", bag)
	if d.Suggestion = diag.Suggest(bag, names); diag.Whole(bag) != "" &&
		diag.Whole(bag) == diag.Whole(d.Suggestion) { // 7.0 and 007
		return d.WithNote("programs change names that look like numbers: read and write them as text, with dtype=str in " +
			"pandas")
	}
	if kind := diag.Difference(bag, d.Suggestion); kind != "" && d.Suggestion != "" {
		return d.WithNote("the names differ %s only", kind)
	}
	if number >= 1 && number <= len(names) {
		return d.WithNote("the bags have names; bag number %d has the name %q", number, names[number-1])
	}
	return d
}

// GroupOf returns the group of bag i, empty if the bags have no groups.
func (d *Dataset) GroupOf(i int) string {
	if d.Groups == nil {
		return ""
	}
	return d.Groups[i]
}

// AllBags returns the numbers of all bags, 0 to m-1.
func (d *Dataset) AllBags() []int { return numbers(d.Bags()) }

// Dim returns the number of features of an instance.
func (d *Dataset) Dim() int { return ndarray.Size(d.Shape) }

// CoordsOf returns the coordinates of bag i, [n, 2], sharing memory; nil if they are unknown or if the
// bag consists of several files, see Files.
func (d *Dataset) CoordsOf(i int) []float32 {
	if files := d.Files(i); len(files) == 1 {
		return files[0].Coords
	}
	return nil
}

// File is a file with instances of a bag, such as one slide of a patient. Coordinates of different
// files are in different planes.
type File struct {
	Name      string // as its table names it; empty if the dataset is one file
	Instances int
	Coords    []float32 // [Instances, 2], or nil
	Side      float64   // side of the square that an instance covers, in units of Coords; 0: unknown
}

// Files returns the files of bag i, in the order of their instances: one or more. Slices share memory.
func (d *Dataset) Files(i int) []File {
	list := []File{{Instances: d.Size(i)}}
	if s, ok := d.Store.(interface{ Files(bag int) []File }); ok {
		list = s.Files(i)
	}
	if d.Coords != nil { // the bag is one file
		list[0].Coords = d.Coords[2*d.Offsets[i] : 2*d.Offsets[i+1]]
	}
	return list
}

// Size returns the number of instances of bag i.
func (d *Dataset) Size(i int) int { return d.Offsets[i+1] - d.Offsets[i] }

// SizeOf returns the number of instances of bags.
func (d *Dataset) SizeOf(bags []int) (n int) {
	for _, i := range bags {
		n += d.Size(i)
	}
	return n
}

// MaxInstances returns the maximum number of instances in a batch of size bags: the sum of the size
// largest of bags.
func (d *Dataset) MaxInstances(bags []int, size int) (n int) {
	sizes := make([]int, len(bags))
	for i, bag := range bags {
		sizes[i] = d.Size(bag)
	}
	slices.Sort(sizes)
	for _, s := range sizes[max(0, len(sizes)-size):] {
		n += s
	}
	return n
}

// Label returns the true class of bag i. known is false if the dataset does not contain it.
func (d *Dataset) Label(i int) (class int, known bool) {
	if d.Labels == nil || d.Labels[i] < 0 {
		return 0, false
	}
	return d.Labels[i], true
}

// Outside returns the number of bags whose true label is not a candidate.
func (d *Dataset) Outside() (n int) {
	for i := range d.Bags() {
		if class, known := d.Label(i); known && d.CandidateMask(i)[class] == 0 {
			n++
		}
	}
	return n
}

// CountKnown returns the number of bags whose true labels are known.
func (d *Dataset) CountKnown(bags []int) (n int) {
	for _, i := range bags {
		if _, known := d.Label(i); known || d.Multi {
			n++
		}
	}
	return n
}

// TrueMask returns the true labels of bag i as a mask, [Classes]: 1 for its labels, else 0. It returns nil if they are
// unknown. The caller must not change it.
func (d *Dataset) TrueMask(i int) []uint8 {
	if d.Multi {
		return d.CandidateMask(i)
	}
	class, known := d.Label(i)
	if !known {
		return nil
	}
	labels := make([]uint8, d.Classes)
	labels[class] = 1
	return labels
}

// Positive reports whether an instance, counted from 0 in the dataset, is known to show a true label
// of its bag. If the true labels of the bag are unknown, every instance with a known class counts.
func (d *Dataset) Positive(bag, instance int) bool {
	if d.InstLabels == nil || d.InstLabels[instance] < 0 {
		return false
	}
	if d.Multi {
		return d.CandidateMask(bag)[d.InstLabels[instance]] == 1
	}
	class, known := d.Label(bag)
	return !known || d.InstLabels[instance] == class
}

// TrueLists returns the true labels of each bag in ascending order: [-1] for a bag whose only label is
// unknown. The result is nil if the dataset has no known label.
func (d *Dataset) TrueLists() [][]int {
	if !d.Multi && !AnyKnown(d.Labels) {
		return nil
	}
	sets := make([][]int, d.Bags())
	for i := range sets {
		if d.Multi {
			sets[i] = d.CandidateList(i)
		} else {
			sets[i] = []int{d.Labels[i]}
		}
	}
	return sets
}

// ClassName returns the name of class c, or its number from 0 if the classes have no names.
func (d *Dataset) ClassName(c int) string {
	if d.ClassNames == nil {
		return fmt.Sprint(c)
	}
	return d.ClassNames[c]
}

// AllClassNames returns the names of all classes, see ClassName.
func (d *Dataset) AllClassNames() []string {
	names := make([]string, d.Classes)
	for c := range names {
		names[c] = d.ClassName(c)
	}
	return names
}

// TrueNames returns the names of the true labels of bag i, none if they are unknown.
func (d *Dataset) TrueNames(i int) []string { return d.namesOf(d.TrueMask(i)) }

// CandidateNames returns the names of the candidates of bag i.
func (d *Dataset) CandidateNames(i int) []string { return d.namesOf(d.CandidateMask(i)) }

// namesOf returns the names of the labels of a mask.
func (d *Dataset) namesOf(labels []uint8) (names []string) {
	for c, in := range labels {
		if in != 0 {
			names = append(names, d.ClassName(c))
		}
	}
	return names
}

// TrueMasksIn returns the TrueMask of each bag as a mask of other classes, e.g. the classes of a model.
// Classes are matched by name if the dataset names them, otherwise by number. The masks of bags with a
// true label that is not in classes are nil, and the error names the first of these bags.
func (d *Dataset) TrueMasksIn(classes []string) ([][]uint8, error) {
	out, index := make([][]uint8, d.Bags()), d.indicesIn(classes)
	first, wrong := "", 0
	for i := range out {
		labels := d.TrueMask(i)
		mask, missing := make([]uint8, len(classes)), -1
		for c, in := range labels {
			switch {
			case in == 0:
			case index[c] >= 0:
				mask[index[c]] = 1
			case missing < 0:
				missing = c
			}
		}
		if missing >= 0 {
			if wrong++; wrong == 1 {
				first = fmt.Sprintf("the true label of bag %d, %s, is not one of the classes %s", i+1, d.ClassName(missing),
					diag.Words(classes))
			}
		} else if labels != nil {
			out[i] = mask
		}
	}
	switch {
	case wrong == 0:
		return out, nil
	case wrong > 1:
		first += ", nor are those of " + diag.Count(wrong-1, "other bag")
	}
	return out, diag.Errorf(diag.Pos{File: d.Name}, "%s", first)
}

// indicesIn returns the index in classes of each class of the dataset, -1 if it is not among them.
func (d *Dataset) indicesIn(classes []string) []int {
	index, byForm := make([]int, d.Classes), canonical(classes)
	for c := range index {
		if index[c] = c; d.ClassNames != nil {
			if index[c] = slices.Index(classes, d.ClassNames[c]); index[c] < 0 {
				if at, found := byForm[diag.Canonical(d.ClassNames[c])]; found {
					index[c] = at
				}
			}
		}
		if index[c] >= len(classes) {
			index[c] = -1
		}
	}
	return index
}

// CandidateMasksIn returns a function that returns the candidates of a bag as a mask of classes, e.g.
// those of a model, matched like TrueMasksIn. Candidates that are not in classes are dropped. For
// a bag whose candidates are all classes of the dataset the function returns nil, because such a
// set contains no information, and for every bag of a dataset without candidates.
func (d *Dataset) CandidateMasksIn(classes []string) func(bag int) []uint8 {
	index := d.indicesIn(classes)
	return func(bag int) []uint8 {
		set := d.CandidateMask(bag)
		if d.Multi || !slices.Contains(set, 0) {
			return nil
		}
		out := make([]uint8, len(classes))
		for c, in := range set {
			if in != 0 && index[c] >= 0 {
				out[index[c]] = 1
			}
		}
		return out
	}
}

// CandidateMask returns the candidates of bag i as a mask, [Classes], sharing memory.
func (d *Dataset) CandidateMask(i int) []uint8 {
	return d.Candidates[i*d.Classes : (i+1)*d.Classes]
}

// ClassesWithout returns the names of the classes that are candidates of none of the bags.
func (d *Dataset) ClassesWithout(bags []int) (names []string) {
	found := make([]bool, d.Classes)
	for _, i := range bags {
		for c, in := range d.CandidateMask(i) {
			found[c] = found[c] || in != 0
		}
	}
	for c := range found {
		if !found[c] {
			names = append(names, d.ClassName(c))
		}
	}
	return names
}

// CandidateList returns the candidates of bag i in ascending order.
func (d *Dataset) CandidateList(i int) (list []int) {
	for c, in := range d.CandidateMask(i) {
		if in != 0 {
			list = append(list, c)
		}
	}
	return list
}

// Reshape returns the dataset with instances of another shape and as many numbers, e.g. [1, 28, 28] for 784 features;
// everything else is shared with d.
func (d *Dataset) Reshape(shape []int) (*Dataset, error) {
	n, ok := ndarray.SizeWithin(shape, math.MaxInt)
	if !ok || n != d.Dim() || len(shape) == 0 {
		return nil, diag.Errorf(diag.Pos{File: d.Name}, "instances of %s cannot take the shape %v", diag.Count(d.Dim(),
			"feature"), shape)
	}
	out := *d
	out.Shape = append([]int(nil), shape...)
	return &out, nil
}
