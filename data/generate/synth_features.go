// Generated datasets from labelled feature vectors.

package generate

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/bagfile"
	"github.com/miplc/miplc/data/rawfile"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/ndarray"
)

// birdNames are the species 1 to 13 of the Birdsong data (Briggs, Fern and Raich 2012), as their banding codes.
var birdNames = []string{"BRCR", "WIWR", "PSFL", "RBNU", "DEJU", "OSFL", "HETH",
	"CBCH", "VATH", "HEWA", "SWTH", "HAFL", "WETA"}

// Files of labelled instances.
const (
	birdsongFile = "mil/birdsong/instances.csv.gz"
	sivalFile    = "mil/sival6/instances.csv.gz"
)

// birdsongPool reads mil/birdsong. Segments with a species are positives of that species, segments
// without one are negatives. Segments of other species are not used.
func birdsongPool(o Design) (*instancePool, error) {
	classes, err := classNumbers(o.Classes, birdNames, 1)
	if err != nil {
		return nil, err
	}
	labels := make([]string, len(birdNames)+1) // 0: no species
	for i := range labels {
		labels[i] = strconv.Itoa(i)
	}
	path := filepath.Join(o.Source, filepath.FromSlash(birdsongFile))
	t, err := openLabeled(path, o.Limit, bagfile.Reading{Columns: bagfile.Columns{ModelClasses: labels}})
	if err != nil {
		return nil, err
	}
	p := &instancePool{shape: t.Shape, positives: make([][]int, len(classes))}
	for _, c := range classes {
		p.classes = append(p.classes, birdNames[c])
	}
	for i, label := range t.InstLabels {
		if label == 0 {
			p.negatives = append(p.negatives, i)
		} else if c := slices.Index(classes, label-1); c >= 0 {
			p.positives[c] = append(p.positives[c], i)
		}
	}
	p.instance = func(i int, to []float32) { copy(to, t.Instances[i*t.Dim():(i+1)*t.Dim()]) }
	return p, nil
}

// sivalNames are the six classes of mil/sival6 by their numbers in SIVAL.
var sivalNames = []string{"4", "7", "10", "13", "16", "20"}

// drawSIVAL uses the bags of mil/sival6 (60 images for each of six objects, 31 or 32 segments of 30
// features per bag) and draws only the candidate sets. o.Bags is the number of bags to use, the
// same for each class.
func drawSIVAL(name string, o Design) (*data.Dataset, error) {
	classes, err := classNumbers(o.Classes, sivalNames, 0)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(o.Source, filepath.FromSlash(sivalFile))
	t, err := openLabeled(path, o.Limit, bagfile.Reading{Labels: bagfile.KnownLabels,
		Columns: bagfile.Columns{Roles: bagfile.Roles{Label: "class"}}})
	if err != nil {
		return nil, err
	}
	k := len(classes)
	var bags []int
	for _, c := range classes {
		of := slices.DeleteFunc(t.AllBags(), func(i int) bool { return t.ClassName(t.Labels[i]) != sivalNames[c] })
		if len(of) < o.Bags/k {
			return nil, diag.Errorf(diag.Pos{File: path}, "class %s has %s in the source, %d were requested", sivalNames[c],
				diag.Count(len(of), "bag"), o.Bags/k)
		}
		bags = append(bags, of[:o.Bags/k]...)
	}
	d, err := t.Select(bags)
	if err != nil {
		return nil, err
	}
	d.Name, d.FeatureNames, d.BagNames, d.Classes, d.ClassNames, d.Candidates = name, nil, nil, k, nil, nil
	for _, c := range classes {
		d.ClassNames = append(d.ClassNames, sivalNames[c])
	}
	for i, bag := range bags {
		number := uint64(bag + 1)
		if t.BagNames != nil {
			number, err = strconv.ParseUint(t.BagNames[bag], 10, 64)
		}
		if err != nil {
			return nil, diag.Errorf(diag.Pos{File: path}, "the bag %q is not a whole number", t.BagNames[bag])
		}
		d.Labels[i] = i / (o.Bags / k)
		d.Candidates = append(d.Candidates, data.DrawCandidates(ndarray.NewStream(o.Seed, "bag", number), d.Labels[i], k,
			*o.R)...)
	}
	return d, d.Validate(name)
}

// openLabeled reads a file of labelled instances.
func openLabeled(path string, limit rawfile.Limit, reading bagfile.Reading) (*data.Dataset, error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, missingSource(path)
	}
	reading.MaxBytes = limit
	return bagfile.OpenWith(path, reading)
}
