// Heatmaps of miplc predict: where in an image or a slide the attention of a bag lies.

package cli

import (
	"bytes"
	"cmp"
	"fmt"
	"image"
	"io"
	"path"
	"path/filepath"
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

	sources []string       // of the thumbnails
	resize  imagebags.Size // of each thumbnail
}

// useImages draws the attention over the images that the model cut, unless there are other thumbnails.
func (h *heatmaps) useImages(paths []string, generator string) {
	if h.Thumbnails != "" {
		h.sources = []string{h.Thumbnails}
	} else if r, err := imagebags.ParseRecipe(generator); err == nil && imagebags.AreImages(paths) {
		h.sources, h.Scale, h.resize = paths, 1, r.Resize
	}
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
	case !slices.Contains(info.Classes, h.Class):
		return console.Usagef("--heatmap-class: the model has no class %q; its classes are %s", h.Class,
			diag.Words(info.Classes))
	}
	return nil
}

// check reports settings without an effect.
func (h *heatmaps) check() error {
	switch {
	case h.Dir == "" && h.Class != "":
		return console.Usagef("--heatmap-class has no effect without --heatmap")
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
	name  string // bag-NUMBER, or bag-NUMBER-FILE if the bag has several files

	several bool // the bag has several files
}

// picturesOf lists the pictures of the bags.
func (r *predictResult) picturesOf(set *data.Dataset) (list []picture) {
	for i := range r.Bags {
		b, first := &r.Bags[i], 0
		files := set.Files(b.Number - 1)
		for n, f := range files {
			p := picture{b, f, first, "bag-" + strconv.Itoa(b.Number), len(files) > 1}
			if p.several {
				p.name += "-" + strconv.Itoa(n+1)
			}
			list, first = append(list, p), first+f.Instances
		}
	}
	return list
}

// write draws the bags as bag-NUMBER.svg and bag-NUMBER.png, or each file of a bag that has several.
func (h *heatmaps) write(r *predictResult, set *data.Dataset, o *predictOptions) error {
	list := r.picturesOf(set)
	var files []string
	for _, p := range list {
		files = append(files, p.name+".svg", p.name+".png")
	}
	folder, err := fileio.ClaimFolder(h.Dir, func(f *fileio.Folder) error {
		if err := f.Mark.CheckKind(h.Dir, fileio.HeatmapFolder); err != nil {
			return err
		}
		return f.Restart(fileio.HeatmapFolder, files, append([]string{modelPath(o.Model)}, o.Data...))
	})
	if err != nil {
		return err
	}
	defer folder.Close()
	thumbnails, err := h.open()
	if err != nil {
		return err
	}
	for _, p := range list {
		m := h.heatmap(r, p)
		if m.Thumbnail, err = thumbnails.of(p, h.resize); err != nil {
			return err
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
func (h *heatmaps) heatmap(r *predictResult, p picture) *plot.Heatmap {
	b := p.bag
	m := &plot.Heatmap{Title: b.title(), Coords: p.file.Coords, Bag: b.Attention, Scale: h.Scale}
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
	return m
}

// pictures are images by the names that a bag may have: the path of the image in its folder,
// with and without ending, and the last element of it if no other image has the same.
type pictures map[string][]imagebags.Image

// open lists the thumbnails.
func (h *heatmaps) open() (pictures, error) {
	p := pictures{}
	if h.sources == nil {
		return p, nil
	}
	sources, err := imagebags.FindImages(h.sources, imagebags.Limits{})
	if err != nil {
		return nil, err
	}
	for _, m := range sources.Images {
		for _, name := range namesOf(m.Name) {
			p[name] = append(p[name], m)
		}
	}
	return p, nil
}

// namesOf lists the path of an image, without its ending, and its last element, each once.
func namesOf(name string) []string {
	plain := strings.TrimSuffix(name, path.Ext(name))
	return slices.Compact([]string{name, plain, path.Base(plain)})
}

// of returns the thumbnail of a bag, or of one of its several files; nil if there is none.
func (p pictures) of(of picture, size imagebags.Size) (image.Image, error) {
	names := namesOf(of.bag.Name)
	if of.bag.Name == "" { // the number of a named bag may be the name of another one
		names = []string{strconv.Itoa(of.bag.Number)}
	}
	if of.several {
		names = namesOf(of.file.Name)
	}
	for _, name := range names {
		if found := p[name]; len(found) == 1 {
			m := found[0]
			picture, err := m.Read(size, imagebags.Limits{})
			if err != nil {
				return nil, diag.Errorf(diag.Pos{File: m.Name}, "%v", err)
			}
			return picture, nil
		}
	}
	return nil, nil
}
