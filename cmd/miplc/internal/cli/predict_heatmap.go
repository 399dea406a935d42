// Heatmaps of miplc predict: where in an image or a slide the attention of a bag lies.

package cli

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/miplc/miplc/cmd/miplc/internal/console"
	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/imagebags"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/fileio"
	"github.com/miplc/miplc/runs/plot"
	"github.com/miplc/miplc/runtime"
)

// heatmaps are the settings of the figures of attention over coordinates.
type heatmaps struct {
	Dir        string  // of the figures; empty: none
	Class      string  // whose attention is drawn, if the model has an attention of each class; empty: the predicted one
	Thumbnails string  // folder of images named after the bags; empty: none
	Scale      float64 // units of the coordinates per pixel of a thumbnail; 0: it covers all instances
	Max        float64 // attention that has the last colour, in multiples of the mean; 0: a scale for each bag

	resize imagebags.Size // of each thumbnail
}

// topInstance is one of the instances with the highest attention.
type topInstance struct {
	Instance  int      `json:"instance"`       // from 1
	File      string   `json:"file,omitempty"` // if the bag has several
	Attention float32  `json:"attention"`
	X         *float32 `json:"x,omitempty"`
	Y         *float32 `json:"y,omitempty"`
}

// classTop is the list of a class in models with an attention of each class.
type classTop struct {
	Class string        `json:"class"`
	Top   []topInstance `json:"top"`
}

// topOf returns the n instances with the highest attention, the first of equals first. files are those of
// the bag.
func topOf(attention []float32, files []data.File, n int) []topInstance {
	order := make([]int, len(attention))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(attention[j], attention[i]) })
	var list []topInstance
	for _, i := range order[:min(n, len(order))] {
		top := topInstance{Instance: i + 1, Attention: attention[i]}
		at := i // in its file
		for _, f := range files {
			if at >= f.Instances {
				at -= f.Instances
				continue
			}
			if len(files) > 1 {
				top.File = f.Name
			}
			if f.Coords != nil {
				top.X, top.Y = &f.Coords[2*at], &f.Coords[2*at+1]
			}
			break
		}
		list = append(list, top)
	}
	return list
}

// String is the text of a table.
func (t topInstance) String() string {
	at := ""
	if t.File != "" {
		at = " in " + t.File
	}
	if t.X != nil {
		at += fmt.Sprintf(" at %s,%s", bagNumber(*t.X), bagNumber(*t.Y))
	}
	format := "%.3f"
	if t.Attention < 0.001 { // as most scores of a large bag
		format = "%.2g"
	}
	return fmt.Sprintf("instance %d%s ("+format+")", t.Instance, at, t.Attention)
}

// checkClass reports a class that the model does not have.
func (h *heatmaps) checkClass(info runtime.Info) error {
	switch {
	case h.Class == "":
		return nil
	case !info.ClassAttention:
		return console.Usagef("--heatmap-class: the model has no attention of each class, only one for all classes")
	case slices.Contains(info.Classes, h.Class):
		return nil
	}
	for _, class := range info.Classes {
		if diag.Canonical(class) == diag.Canonical(h.Class) {
			h.Class = class
			return nil
		}
	}
	return console.Usagef("--heatmap-class: the model has no class %q; its classes are %s", h.Class,
		diag.Words(info.Classes))
}

// check reports settings without an effect.
func (h *heatmaps) check() error {
	switch {
	case h.Dir == "" && h.Class != "":
		return console.Usagef("--heatmap-class has no effect without --heatmap")
	case h.Dir == "" && h.Max != 0:
		return console.Usagef("--heatmap-max has no effect without --heatmap")
	case h.Dir == "" && h.Thumbnails != "":
		return console.Usagef("--thumbnails has no effect without --heatmap")
	case h.Thumbnails == "" && h.Scale != 0:
		return console.Usagef("--thumbnail-scale has no effect without --thumbnails")
	}
	return nil
}

// checkCoords reports the first of the bags whose instances have no coordinates.
func (h *heatmaps) checkCoords(set *data.Dataset, bags []int, path string) error {
	at := slices.IndexFunc(bags, func(i int) bool {
		return slices.ContainsFunc(set.Files(i), func(f data.File) bool { return f.Coords == nil })
	})
	switch {
	case h.Dir == "" || at < 0:
		return nil
	case set.OnDisk():
		return diag.Errorf(diag.Pos{File: path}, "bag %d: the instances have no coordinates to draw a heatmap over",
			bags[at]+1).
			WithNote("add the array coords, [instances, 2], to each file of the bag (.h5, .npz), next to its features; --bag " +
				"draws one of the other bags")
	}
	return diag.Errorf(diag.Pos{File: path}, "the instances have no coordinates to draw a heatmap over").
		WithNote("a CSV file has them in the columns x and y, or in those of --coordinate-columns; an .npz file in the " +
			"array coords, [instances, 2]")
}

// picture is a heatmap of one file of a bag.
type picture struct {
	bag   *bagResult
	file  data.File
	first int    // bagNumber of its first instance in the bag, from 0
	name  string // of the figure, without its ending

	several   bool             // the bag has several files
	thumbnail *imagebags.Image // nil: none
}

// picturesOf lists the pictures of the bags. They are named after their bags, or bag-NUMBER if these have no names, and
// after the file as well if a bag has several.
func (r *predictResult) picturesOf(set *data.Dataset) (list []picture) {
	taken := map[string]bool{}
	for i := range r.Bags {
		b, first := &r.Bags[i], 0
		files := set.Files(b.Number - 1)
		for _, f := range files {
			p := picture{bag: b, file: f, first: first, name: cmp.Or(figureName(b.Name), "bag-"+strconv.Itoa(b.Number)),
				several: len(files) > 1}
			if p.several {
				file := path.Base(filepath.ToSlash(f.Name))
				p.name += "-" + figureName(strings.TrimSuffix(file, path.Ext(file)))
			}
			for plain := p.name; taken[diag.Fold(p.name)]; { // some file systems ignore case
				p.name = plain + "-bag-" + strconv.Itoa(b.Number)
				plain = p.name
			}
			taken[diag.Fold(p.name)] = true
			list, first = append(list, p), first+f.Instances
		}
	}
	return list
}

// maxFigureName is the maximum length in bytes of the name of a bag or a file in the name of a figure.
const maxFigureName = 100

var notInFigureNames = regexp.MustCompile(`[^\p{L}\p{Nd}\p{M}_.+=@-]`)

// figureName returns the name of a bag or a file without the ending of an image, as every file system accepts it.
func figureName(name string) string {
	if ending := path.Ext(name); imagebags.IsImage(name) {
		name = strings.TrimSuffix(name, ending)
	}
	name = notInFigureNames.ReplaceAllString(name, "_")
	name = strings.ToValidUTF8(name[:min(len(name), maxFigureName)], "")
	return strings.TrimLeft(name, ".")
}

// write draws the bags as NAME.svg and NAME.png, or each file of a bag that has several. The thumbnails are the images
// at paths that the model cut, unless the user gave other ones.
func (h *heatmaps) write(r *predictResult, set *data.Dataset, paths, inputs []string) error {
	list := r.picturesOf(set)
	var sources []string
	if h.Thumbnails != "" {
		sources = []string{h.Thumbnails}
	} else if recipe, err := imagebags.ParseRecipe(set.Generator); err == nil && imagebags.AreImages(paths) {
		sources, h.Scale, h.resize = paths, 1, recipe.Resize
	}
	var err error
	if r.noThumbnail, err = h.findThumbnails(list, sources); err != nil {
		return err
	}
	var files []string
	for _, p := range list {
		files = append(files, p.name+".svg", p.name+".png")
	}
	folder, err := fileio.ClaimFolder(h.Dir, func(f *fileio.Folder) error {
		if err := f.Mark.CheckKind(h.Dir, fileio.HeatmapFolder); err != nil {
			return err
		}
		return f.Restart(fileio.HeatmapFolder, files, inputs)
	})
	if err != nil {
		return err
	}
	defer folder.Close()
	for _, p := range list {
		m, err := h.heatmap(r, p)
		if err != nil {
			return err
		}
		if p.thumbnail != nil {
			if m.Thumbnail, err = p.thumbnail.Read(h.resize, imagebags.Limits{}); err != nil {
				return diag.Errorf(diag.Pos{File: p.thumbnail.Name}, "%v", err)
			}
		}
		for ending, draw := range map[string]func(io.Writer) error{
			".svg": func(w io.Writer) error { _, err := w.Write(m.SVG()); return err },
			".png": m.WritePNG,
		} {
			var figure bytes.Buffer
			if err := draw(&figure); err != nil {
				return err
			}
			if err := fileio.Replace(filepath.Join(h.Dir, p.name+ending), figure.Bytes()); err != nil {
				return err
			}
		}
	}
	r.Heatmaps = h.Dir
	return nil
}

// heatmap returns the heatmap of a file, without its thumbnail.
func (h *heatmaps) heatmap(r *predictResult, p picture) (*plot.Heatmap, error) {
	b := p.bag
	m := &plot.Heatmap{Title: b.title(), Coords: p.file.Coords, Bag: b.Attention, Scale: h.Scale, Max: h.Max,
		Side: p.file.Side}
	switch {
	case h.resize != imagebags.Size{}, h.Scale == 1 && h.Thumbnails == "":
		m.Unit = "pixels"
	case p.file.Side > 0:
		m.Unit = "pixels of level 0"
	}
	line := fmt.Sprintf("Predicted: %s, probability %s", b.predicted(), b.probabilities("%.3f"))
	if b.labels != nil {
		line += "; true: " + r.truth(*b)
	}
	m.Lines = []string{line}
	if p.file.Name != "" {
		m.Lines = append(m.Lines, "File: "+p.file.Name)
	}
	if b.ClassAttention != nil {
		class := cmp.Or(h.Class, b.Class)
		m.Bag = b.ClassAttention[slices.Index(r.Classes, class)]
		m.Lines = append(m.Lines, "Shown: attention of class "+class)
	}
	m.Attention = m.Bag[p.first : p.first+p.file.Instances]
	if h.Max > 0 && !m.Scales() {
		return nil, diag.Errorf(diag.Pos{}, "%s: the mean attention is not positive, so that --heatmap-max has no meaning",
			b.title())
	}
	return m, nil
}

// findThumbnails sets the thumbnails of pictures, which are images at paths. It returns the number of pictures without
// one, and an error if none of the thumbnails that the user asked for exists.
func (h *heatmaps) findThumbnails(list []picture, paths []string) (missing int, err error) {
	if paths == nil {
		return 0, nil
	}
	sources, err := imagebags.FindImages(paths, imagebags.Limits{})
	if err != nil {
		return 0, err
	}
	// By the names that a bag may have, in one Unicode form: the path of the image in its folder, with and without ending,
	// and the last element of it if no other image has the same.
	images := map[string][]imagebags.Image{}
	for _, m := range sources.Images {
		for _, name := range namesOf(diag.Canonical(m.Name)) {
			images[name] = append(images[name], m)
		}
	}
	for i := range list {
		for _, name := range list[i].names() {
			if found := images[diag.Canonical(name)]; len(found) == 1 && list[i].thumbnail == nil {
				list[i].thumbnail = &found[0]
			}
		}
		if list[i].thumbnail == nil {
			missing++
		}
	}
	if h.Thumbnails == "" {
		return 0, nil
	}
	if missing < len(list) {
		return missing, nil
	}
	name := list[0].names()[0]
	return missing, diag.Errorf(diag.Pos{File: h.Thumbnails}, "no image is named after a bag; that of the first bag "+
		"would be %s.png", name).WithSuggestion(diag.Suggest(name, slices.Sorted(maps.Keys(images)))).
		WithNote("an image may have the ending .jpg or .tif as well, and be in a folder")
}

// namesOf lists the path of an image, without its ending, and its last element, each once.
func namesOf(name string) []string {
	plain := strings.TrimSuffix(name, path.Ext(name))
	return slices.Compact([]string{name, plain, path.Base(plain)})
}

// names lists the names that the thumbnail of a bag, or of one of its several files, may have.
func (p picture) names() []string {
	switch {
	case p.several:
		return namesOf(p.file.Name)
	case p.bag.Name == "": // the number of a named bag may be the name of another one
		return []string{strconv.Itoa(p.bag.Number)}
	}
	return namesOf(p.bag.Name)
}
