// Generated datasets from labelled images.

package generate

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/miplc/miplc/data/rawfile"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/fileio"
)

var digitNames = []string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}

var garmentNames = []string{"T-shirt/top", "trouser", "pullover", "dress", "coat",
	"sandal", "shirt", "sneaker", "bag", "ankle-boot"}

// imageSource is one of the two collections of 28x28 grey images.
type imageSource struct {
	folder string
	names  []string
	// Mean and standard deviation of all pixels (white is 1), rounded as in torchvision's
	// examples.
	mean, deviation float32
}

var (
	mnist        = imageSource{folder: "mnist", names: digitNames, mean: 0.1307, deviation: 0.3081}
	fashionMNIST = imageSource{folder: "fashion-mnist", names: garmentNames, mean: 0.2860, deviation: 0.3530}
)

// pool reads the 60,000 training images of MNIST or Fashion-MNIST. The requested classes are the
// positives, all others the negatives. The pixels are scaled as in torchvision's examples: results
// near the published ones need it, and the authors' programs read scaled pixels.
func (s imageSource) pool(o Design) (*instancePool, error) {
	classes, err := classNumbers(o.Classes, s.names, 0)
	if err != nil {
		return nil, err
	}
	if len(classes) == len(s.names) {
		return nil, diag.Errorf(diag.Pos{}, "all %d classes were requested, so that no class remains for the negative "+
			"instances", len(s.names))
	}
	dir := filepath.Join(o.Source, s.folder)
	images, err := openIDXIn(dir, idxImages, o.Limit)
	if err != nil {
		return nil, err
	}
	labels, err := openIDXIn(dir, idxLabels, o.Limit)
	if err != nil {
		return nil, err
	}
	pos := diag.Pos{File: dir}
	if len(images.Shape) != 3 || len(labels.Shape) != 1 || images.Shape[0] != labels.Shape[0] {
		return nil, diag.Errorf(pos, "images of the shape %v and labels of the shape %v do not fit; [n, height, width] "+
			"and [n] are needed", images.Shape, labels.Shape)
	}
	h, w := images.Shape[1], images.Shape[2]
	p := &instancePool{shape: []int{1, h, w}, positives: make([][]int, len(classes))}
	for _, c := range classes {
		p.classes = append(p.classes, s.names[c])
	}
	for i, label := range labels.Bytes {
		if int(label) >= len(s.names) {
			return nil, diag.Errorf(pos, "the label of image %d is %d; labels go up to %d", i+1, label, len(s.names)-1)
		}
		if c := slices.Index(classes, int(label)); c >= 0 {
			p.positives[c] = append(p.positives[c], i)
		} else {
			p.negatives = append(p.negatives, i)
		}
	}
	var features [256]float32 // of each grey level
	for level := range features {
		features[level] = (float32(level)/255 - s.mean) / s.deviation
	}
	p.instance = func(i int, to []float32) {
		for j, level := range images.Bytes[i*h*w : (i+1)*h*w] {
			to[j] = features[level]
		}
	}
	return p, nil
}

const (
	idxImages = "train-images-idx3-ubyte"
	idxLabels = "train-labels-idx1-ubyte"
)

// idxEndings are the extensions in the order in which they are searched.
var idxEndings = [...]string{".gz", ""}

// idxFiles returns all names that the files of a folder may have.
func idxFiles(folder string) []string {
	var list []string
	for _, ending := range idxEndings {
		list = append(list, folder+"/"+idxImages+ending, folder+"/"+idxLabels+ending)
	}
	return list
}

// openIDXIn reads an IDX file of unsigned bytes in a folder, compressed or not.
func openIDXIn(dir, name string, limit rawfile.Limit) (*idx, error) {
	for _, ending := range idxEndings {
		path := filepath.Join(dir, name+ending)
		f, info, err := fileio.Open(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, rawfile.FileError(path, err)
		}
		defer f.Close()
		r, err := rawfile.Unpack(f, path)
		if err != nil {
			return nil, err
		}
		x, err := readIDX(r, limit.ForPacked(info.Size()))
		if err != nil {
			return nil, rawfile.FileError(path, err)
		}
		return x, nil
	}
	return nil, missingSource(filepath.Join(dir, name+".gz"))
}

// missingSource returns the error for a missing source of a dataset.
func missingSource(path string) error {
	return diag.Errorf(diag.Pos{File: path}, "there is no such file").
		WithNote("miplc does not contain the published data, see docs/paper-data.md; name their folder with MIPLC_DATA, " +
			"--data-dir, or --source of miplc data synth")
}
