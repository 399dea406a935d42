// Folders of tiles as bags.

package imagebags

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/bagfile"
	"github.com/miplc/miplc/data/formats"
	"github.com/miplc/miplc/data/rawfile"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/fileio"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/resources"
)

// TileForm says how an encoder gets its images.
type TileForm struct {
	Side    int    // images of Side x Side pixels; files of another size are resized
	Encoder string // identity of the encoder, which the hash of the dataset includes
}

// shape returns the shape of an image: red, green and blue, each from 0 to 1.
func (f TileForm) shape() []int { return []int{3, f.Side, f.Side} }

// Tiles are the instances of a dataset of images. The images stay on disk.
type Tiles struct {
	form   TileForm
	bags   [][]tile
	arrays *data.Dataset // has the pixels if the images are not in files
	open   []io.Closer
}

var _ bagfile.Files = (*Tiles)(nil)

// tile is one image and the SHA-256 of its file, or of its pixels.
type tile struct {
	image Image
	sum   [sha256.Size]byte
}

// OpenTiles opens a dataset whose instances are images for an encoder. It has the same hash as the features that
// the encoder computes from it. paths are images, which are one bag, or one path of
//
//   - a folder or a zip archive. A folder with images in it is a bag, and the folder above it names
//     the class of the bag, if there is one.
//   - a table of bags (.csv). Its column file names a folder, an archive or an image for each bag.
//   - a dataset of images [3, side, side], such as the generator patches makes.
//
// It reads all files once for their hashes. The class of a bag in a folder is its only candidate.
// Bags without a class have all classes of o.Columns.Classes as candidates. The dataset has the
// store *Tiles. Archives stay open.
func OpenTiles(paths []string, form TileForm, o bagfile.Reading) (*data.Dataset, error) {
	t := &Tiles{form: form}
	d, err := t.read(paths, o)
	if err != nil {
		for _, c := range t.open {
			c.Close()
		}
		return nil, err
	}
	return d, nil
}

func (t *Tiles) read(paths []string, o bagfile.Reading) (*data.Dataset, error) {
	if !slices.ContainsFunc(paths, func(p string) bool { return !IsImage(p) }) {
		return t.images(paths, o)
	}
	if len(paths) > 1 {
		return nil, diag.Errorf(diag.Pos{File: paths[1]}, "give either one folder, archive or table, or several images, "+
			"which are one bag")
	}
	path := paths[0]
	info, err := os.Stat(path)
	name := strings.ToLower(path)
	switch {
	case err != nil:
		return nil, rawfile.FileError(path, err)
	case info.IsDir() || strings.HasSuffix(name, ".zip"):
		return t.folders(path, o)
	}
	table := formats.WithColumns().Match(name)
	if table {
		o.Files = t
	}
	d, err := bagfile.OpenWith(path, o)
	if err != nil || table {
		return d, err
	}
	if d, err = OfPixels(d, t.form); err != nil {
		return nil, diag.Errorf(diag.Pos{File: path}, "%v", err).
			WithNote("miplc data bags --generator patches --side %d makes such a dataset from images", t.form.Side)
	}
	return d, nil
}

// folders reads the bags of a folder or archive.
func (t *Tiles) folders(root string, o bagfile.Reading) (*data.Dataset, error) {
	s, err := FindImages([]string{root}, Limits{})
	if err != nil {
		return nil, err
	}
	t.open = append(t.open, s)
	byFolder := map[string][]Image{}
	for _, m := range s.Images {
		byFolder[path.Dir(m.Name)] = append(byFolder[path.Dir(m.Name)], m)
	}
	var names, classes []string
	for _, folder := range slices.Sorted(maps.Keys(byFolder)) {
		t.add(byFolder[folder], len(t.bags))
		class := ""
		if above := path.Dir(folder); above != "." {
			class = path.Base(above)
		}
		if folder == "." {
			folder = setName(root)
		}
		names, classes = append(names, folder), append(classes, class)
	}
	return t.dataset(root, names, classes, o)
}

// images makes one bag of images.
func (t *Tiles) images(paths []string, o bagfile.Reading) (*data.Dataset, error) {
	s, err := FindImages(paths, Limits{})
	if err != nil {
		return nil, err
	}
	t.add(s.Images, 0)
	name := s.Images[0].Name
	if len(paths) > 1 {
		name = fmt.Sprintf("%d images", len(paths))
	}
	return t.dataset(paths[0], []string{name}, []string{""}, o)
}

// dataset returns the dataset of bags with names and classes, which are empty if they are unknown.
func (t *Tiles) dataset(root string, names, classes []string, o bagfile.Reading) (*data.Dataset, error) {
	d := &data.Dataset{Name: setName(root), BagNames: names}
	if err := t.label(d, root, classes, o.Columns.ModelClasses); err != nil {
		return nil, err
	}
	if err := t.Attach(d); err != nil {
		return nil, err
	}
	return d, o.Validate(d, root)
}

func setName(root string) string {
	return strings.TrimSuffix(filepath.Base(filepath.Clean(root)), ".zip")
}

// label gives bags the labels and candidates of their classes.
func (t *Tiles) label(d *data.Dataset, root string, classOf, known []string) error {
	names := slices.Clone(known)
	for i, class := range classOf {
		if (class == "") != (classOf[0] == "") {
			return diag.Errorf(diag.Pos{File: root}, "the bags %s and %s are not at the same depth, so that one has no class",
				d.BagNames[0], d.BagNames[i]).
				WithNote("the folder of a bag lies in the folder of its class, for example cat/bag-1/image.png")
		}
		if class != "" && !slices.Contains(names, class) {
			names = append(names, class)
		}
	}
	if len(names) == 0 {
		return diag.Errorf(diag.Pos{File: root}, "the bags have no labels").
			WithNote("put the folder of each bag into the folder of its class, for example cat/bag-1/image.png, or name the " +
				"folders in a table with the columns bag, label, candidates and file")
	}
	slices.Sort(names)
	d.Classes, d.ClassNames = len(names), names
	d.Candidates, d.Labels = make([]uint8, len(classOf)*len(names)), make([]int, len(classOf))
	for i, class := range classOf {
		d.Labels[i] = slices.Index(names, class)
		for c := range names {
			if d.Labels[i] < 0 || d.Labels[i] == c {
				d.CandidateMask(i)[c] = 1
			}
		}
	}
	return nil
}

// add appends images to a bag.
func (t *Tiles) add(images []Image, bag int) {
	for len(t.bags) <= bag { // also without the bags before, whose files could not be opened
		t.bags = append(t.bags, nil)
	}
	for _, m := range images {
		t.bags[bag] = append(t.bags[bag], tile{image: m})
	}
}

// Open implements bagfile.Files: a file of a bag is a folder, an archive or one image.
func (t *Tiles) Open(path string, bag int) error {
	if IsImage(path) { // FindImages would refuse names with spaces around them
		f, _, err := fileio.Open(path)
		if err != nil {
			return rawfile.FileError(path, err)
		}
		t.add([]Image{{Name: filepath.Base(path), path: path, open: opener(path)}}, bag)
		return f.Close()
	}
	s, err := FindImages([]string{path}, Limits{})
	if err != nil {
		return err
	}
	t.open = append(t.open, s)
	t.add(s.Images, bag)
	return nil
}

// Attach implements bagfile.Files.
func (t *Tiles) Attach(d *data.Dataset) error {
	if t.arrays == nil {
		if err := t.hash(); err != nil {
			return err
		}
	}
	if d.Shape, d.Store, d.Offsets = t.form.shape(), t, []int{0}; t.arrays == nil {
		d.Generator = WholeImages
	}
	sum := sha256.New()
	for i, bag := range t.bags {
		d.Offsets = append(d.Offsets, d.Offsets[i]+len(bag))
		for _, m := range bag {
			sum.Write(m.sum[:])
		}
	}
	d.Source = fmt.Sprintf("encoder %s, images %x", t.form.Encoder, sum.Sum(nil))
	return nil
}

// hash hashes all files.
func (t *Tiles) hash() error {
	var all []*tile
	for _, bag := range t.bags {
		for i := range bag {
			all = append(all, &bag[i])
		}
	}
	if most := (Limits{}).images(); len(all) > most {
		return fmt.Errorf("%d images are more than the limit of %d", len(all), most)
	}
	faults := make([]error, len(all))
	resources.Each(len(all), 0, func(i int) {
		content, err := all[i].image.bytes(Limits{})
		if faults[i] = err; err == nil {
			all[i].sum = sha256.Sum256(content)
		}
	})
	images := make([]Image, len(all))
	for i, m := range all {
		images[i] = m.image
	}
	return report(images, faults)
}

// OfPixels converts a dataset of pixels to the form of a dataset of image files.
func OfPixels(d *data.Dataset, form TileForm) (*data.Dataset, error) {
	t := &Tiles{form: form, arrays: d}
	if want := form.shape(); !slices.Equal(d.Shape, want) {
		return nil, fmt.Errorf("the instances have the shape %v; the encoder needs images %v", d.Shape, want)
	}
	x := make([]float32, d.Dim())
	for i := range d.Bags() {
		bag := make([]tile, d.Size(i))
		for j := range bag {
			if err := d.ReadRange(x, i, j); err != nil {
				return nil, err
			}
			bag[j].sum = sha256.Sum256(ndarray.AppendBytes(nil, x))
		}
		t.bags = append(t.bags, bag)
	}
	out := *d
	out.Instances = nil
	return &out, t.Attach(&out)
}

// Sum returns the SHA-256 of an image.
func (t *Tiles) Sum(bag, i int) [sha256.Size]byte { return t.bags[bag][i].sum }

// ReadInstances implements data.Store.
func (t *Tiles) ReadInstances(to []float32, bag int, instances []int) error {
	if t.arrays != nil {
		return t.arrays.ReadSelected(to, bag, instances)
	}
	dim := 3 * t.form.Side * t.form.Side
	for i, instance := range instances {
		m := &t.bags[bag][instance]
		content, err := m.image.bytes(Limits{})
		if err == nil && sha256.Sum256(content) != m.sum {
			err = errors.New("the file has changed since the dataset was opened; start again")
		}
		if err == nil {
			err = decodeSquare(to[i*dim:(i+1)*dim], content, t.form.Side, Limits{}, m.image.budget)
		}
		if err != nil {
			return diag.Errorf(diag.Pos{File: m.image.path}, "%v", err)
		}
	}
	return nil
}

// Decode decodes an image file, brings it to side x side pixels and returns it as [3, side, side]
// like an instance of Tiles.
func Decode(content []byte, side int, limits Limits) ([]float32, error) {
	x := make([]float32, 3*side*side)
	return x, decodeSquare(x, content, side, limits, nil)
}

func decodeSquare(to []float32, content []byte, side int, limits Limits, budget *pixelBudget) error {
	picture, err := decode(content, Size{side, side}, limits, budget)
	if err == nil {
		planes(to, picture, 0, 0, side)
	}
	return err
}
