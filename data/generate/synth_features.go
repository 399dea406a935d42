// Generated datasets from labelled feature vectors.

package generate

import (
	"errors"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/rawfile"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/fileio"
	"github.com/miplc/miplc/internal/ndarray"
)

// birdNames are the species 1 to 13 of the Birdsong data (Briggs, Fern and
// Raich 2012), as their banding codes.
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
	path := filepath.Join(o.Source, filepath.FromSlash(birdsongFile))
	t, err := openLabelledCSV(path, "instance_label", o.Limit)
	if err != nil {
		return nil, err
	}
	p := &instancePool{shape: []int{t.features}, positives: make([][]int, len(classes))}
	for _, c := range classes {
		p.classes = append(p.classes, birdNames[c])
	}
	for i, label := range t.labels {
		if label == 0 {
			p.negatives = append(p.negatives, i)
		} else if c := slices.Index(classes, label-1); c >= 0 {
			p.positives[c] = append(p.positives[c], i)
		}
	}
	p.instance = func(i int, to []float32) { copy(to, t.x[i*t.features:(i+1)*t.features]) }
	return p, nil
}

// drawSIVAL uses the bags of mil/sival6 (60 images for each of six objects, 31 or 32 segments of 30
// features per bag) and draws only the candidate sets. o.Bags is the number of bags to use, the
// same for each class.
func drawSIVAL(name string, o Design) (*data.Dataset, error) {
	classes, err := classNumbers(o.Classes, sivalNames, 0)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(o.Source, filepath.FromSlash(sivalFile))
	t, err := openLabelledCSV(path, "class", o.Limit)
	if err != nil {
		return nil, err
	}
	k := len(classes)
	d, err := newDrawing(name, []int{t.features}, float64(len(t.bags)), o.Bags, k)
	if err != nil {
		return nil, err
	}
	for _, c := range classes {
		d.ClassNames = append(d.ClassNames, sivalNames[c])
	}
	bags := t.bagsOf()
	for label, c := range classes {
		of := bags[sivalNames[c]]
		if len(of) < o.Bags/k {
			return nil, diag.Errorf(diag.Pos{File: path}, "class %s has %s in the source, %d were requested", sivalNames[c],
				diag.Count(len(of), "bag"), o.Bags/k)
		}
		for _, rows := range of[:o.Bags/k] {
			d.Instances = append(d.Instances, t.x[rows.start*t.features:rows.end*t.features]...)
			d.Offsets = append(d.Offsets, d.Offsets[len(d.Offsets)-1]+rows.end-rows.start)
			r := ndarray.NewStream(o.Seed, "bag", uint64(t.bags[rows.start]))
			d.Labels = append(d.Labels, label)
			d.Candidates = append(d.Candidates, data.DrawCandidates(r, label, k, *o.R)...)
		}
	}
	return &d.Dataset, d.Validate(name)
}

// sivalNames are the six classes of mil/sival6 by their numbers in SIVAL.
var sivalNames = []string{"4", "7", "10", "13", "16", "20"}

// labelledCSV is a table of instances: bag, label, features.
type labelledCSV struct {
	bags, labels []int
	x            []float32 // [len(labels), features]
	features     int
}

// rowRange is the range of rows from start to end-1.
type rowRange struct{ start, end int }

// bagsOf returns the rows of the bags of each label, in the order of the file.
func (t *labelledCSV) bagsOf() map[string][]rowRange {
	bags := map[string][]rowRange{}
	for start := 0; start < len(t.bags); {
		end := start
		for end < len(t.bags) && t.bags[end] == t.bags[start] {
			end++
		}
		label := strconv.Itoa(t.labels[start])
		bags[label] = append(bags[label], rowRange{start, end})
		start = end
	}
	return bags
}

func openLabelledCSV(path, labelColumn string, limit rawfile.Limit) (*labelledCSV, error) {
	f, info, err := fileio.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, missingSource(path)
	}
	if err != nil {
		return nil, rawfile.FileError(path, err)
	}
	defer f.Close()
	z, err := rawfile.Unpack(f, path)
	if err != nil {
		return nil, err
	}
	text := rawfile.CSVText(z, limit.ForPacked(info.Size()).Exceeded("the text"))
	rows, err := rawfile.ReadCSV(text, path, 0, "bag,"+labelColumn+",f1,...")
	if err != nil {
		return nil, err
	}
	t := &labelledCSV{}
	return t, t.read(rows, labelColumn)
}

func (t *labelledCSV) read(rows *rawfile.CSV, labelColumn string) error {
	if h := rows.Header; len(h) < 3 || h[0] != "bag" || h[1] != labelColumn {
		return rows.Errorf("the header must be bag,%s and the features from f1 on", labelColumn)
	}
	t.features = len(rows.Header) - 2
	for {
		row, err := rows.Next()
		if row == nil || err != nil {
			return err
		}
		bag, err := strconv.Atoi(row[0])
		if err != nil {
			return rows.Errorf("the bag %q is not a whole number", row[0])
		}
		label, err := strconv.Atoi(row[1])
		if err != nil {
			return rows.Errorf("the label %q is not a whole number", row[1])
		}
		for j, field := range row[2:] {
			x, err := strconv.ParseFloat(field, 32)
			if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
				return rows.Errorf("feature %d is %q, not a finite number", j+1, field)
			}
			t.x = append(t.x, float32(x))
		}
		t.bags, t.labels = append(t.bags, bag), append(t.labels, label)
	}
}
