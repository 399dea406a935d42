// Sources of images: folders, archives, lists.

package imagebags

import (
	"archive/zip"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"unicode"
	"unicode/utf8"

	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/fileio"
)

// Image is one image file of a source.
type Image struct {
	// Name is the path inside the source, with slashes. If there are several sources, the name of
	// the source precedes it.
	Name string
	// Class is the name of the folder that contains the image, or empty if it is not in a folder of
	// its source.
	Class  string
	path   string // for messages; the path of a file that is not in an archive
	open   func() (io.ReadCloser, error)
	budget *pixelBudget // of the archive that contains it, or nil
}

// Photographs have one to twenty pixels per byte, solid colours in an archive a thousand. Below
// freePixels the time does not matter.
const (
	maxPixelsPerByte = 100
	freePixels       = 1_000_000_000
)

// pixelBudget is the number of pixels that the images of an archive may still have in total.
type pixelBudget struct {
	all  int64
	left atomic.Int64
}

func newPixelBudget(size int64) *pixelBudget {
	a := &pixelBudget{all: max(freePixels, maxPixelsPerByte*min(size, 1<<50))}
	a.left.Store(a.all)
	return a
}

func (a *pixelBudget) spend(pixels int) error {
	if a != nil && a.left.Add(-int64(pixels)) < 0 {
		return fmt.Errorf("the images of the archive have more than %d pixels, the limit for its size; unpack it if it "+
			"can be trusted", a.all)
	}
	return nil
}

// Sources lists the images of folders and zip archives, and keeps the archives open.
type Sources struct {
	Images  []Image // by class, then by name
	archive []io.Closer
	files   []string // the archives
}

// Files returns the files that are read: images and archives.
func (s *Sources) Files() []string {
	list := slices.Clone(s.files)
	for _, m := range s.Images {
		list = append(list, m.path)
	}
	return list
}

// ForgetClasses removes the classes of all images, whose folders then mean nothing.
func (s *Sources) ForgetClasses() {
	for i := range s.Images {
		s.Images[i].Class = ""
	}
}

// Close closes the archives. Their images cannot be read afterwards.
func (s *Sources) Close() error {
	var err error
	for _, a := range s.archive {
		err = errors.Join(err, a.Close())
	}
	return err
}

// FindImages lists the images (JPEG, PNG, TIFF, by the extension of the name) in folders and zip
// archives, and single images, which have no class. The folder that contains an image is its class, so one sub-folder
// per class works, and so do train/CLASS and test/CLASS, or one archive per class with the folder inside. Hidden files
// and folders, and other files, are ignored. An image of another format is an error, because it would be missing
// silently, and so is a folder without images, because it is probably a class whose images are missing.
func FindImages(paths []string, limits Limits) (*Sources, error) {
	s := &Sources{}
	var faults diag.List
	for _, p := range paths {
		images, err := s.scan(p)
		if err != nil {
			faults.AddError(diag.Pos{File: p}, err)
			continue
		}
		if len(paths) > 1 && !IsImage(p) {
			for i := range images {
				images[i].Name = path.Join(setName(p), images[i].Name)
			}
		}
		s.Images = append(s.Images, images...)
	}
	slices.SortFunc(s.Images, func(a, b Image) int {
		return cmp.Or(strings.Compare(a.Class, b.Class), strings.Compare(a.Name, b.Name), strings.Compare(a.path, b.path))
	})
	s.check(&faults, limits)
	if err := faults.Err(); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Sources) scan(p string) ([]Image, error) {
	f := &imageScan{path: p, folders: map[string]bool{}}
	info, err := os.Stat(p)
	switch {
	case err != nil && os.IsNotExist(err):
		return nil, diag.Errorf(diag.Pos{File: p}, "there is no such folder or file")
	case err != nil:
		return nil, err
	case info.IsDir():
		err = f.walk(p, "", nil)
	case isOtherImage(p):
		return nil, diag.Errorf(diag.Pos{File: p}, "images of this format are not supported; convert it to PNG, JPEG or TIFF")
	case IsImage(p):
		return []Image{{Name: filepath.ToSlash(filepath.Clean(p)), path: p, open: opener(p)}}, nil
	default:
		err = s.scanZip(f)
	}
	if err != nil {
		return nil, err
	}
	return f.result()
}

// check checks all images together.
func (s *Sources) check(faults *diag.List, limits Limits) {
	if len(s.Images) > limits.images() {
		faults.Add(diag.Errorf(diag.Pos{}, "%d images are more than the limit of %d", len(s.Images), limits.images()))
		return
	}
	for i, m := range s.Images {
		if !utf8.ValidString(m.Name) || strings.ContainsFunc(m.Name, unicode.IsControl) ||
			strings.TrimSpace(m.Name) != m.Name {
			faults.Add(diag.Errorf(diag.Pos{File: fmt.Sprintf("%q", m.path)}, "the name is not plain text (UTF-8), or has "+
				"spaces around it; rename the file"))
		}
		if i > 0 && s.Images[i-1].Name == m.Name {
			faults.Add(diag.Errorf(diag.Pos{File: m.path}, "another image has the same name %q: %s", m.Name, s.Images[i-1].path))
		}
	}
}

// IsImage reports whether the name has the extension of a supported format.
func IsImage(name string) bool {
	return slices.Contains([]string{".jpg", ".jpeg", ".png", ".tif", ".tiff"}, strings.ToLower(path.Ext(name)))
}

// AreImages reports whether all paths are images, folders or zip archives.
func AreImages(paths []string) bool {
	return !slices.ContainsFunc(paths, func(p string) bool {
		info, err := os.Stat(p)
		folder := err == nil && info.IsDir()
		return !folder && !IsImage(p) && !isOtherImage(p) && !strings.EqualFold(filepath.Ext(p), ".zip")
	})
}

// isOtherImage reports whether the name has the extension of an image format that is not supported.
func isOtherImage(name string) bool {
	return slices.Contains([]string{".avif", ".bmp", ".gif", ".heic", ".jfif", ".jp2", ".pgm", ".ppm", ".webp"},
		strings.ToLower(path.Ext(name)))
}

// hidden reports whether systems create a file of that name.
func hidden(name string) bool { return strings.HasPrefix(name, ".") || name == "__MACOSX" }

// imageScan collects the images of one source and the folders without images.
type imageScan struct {
	path    string
	images  []Image
	others  []string        // images of other formats
	folders map[string]bool // folder -> it contains an image, directly or below
	budget  *pixelBudget    // of an archive, or nil
}

func (f *imageScan) image(name string, open func() (io.ReadCloser, error)) {
	m := Image{Name: name, path: filepath.Join(f.path, filepath.FromSlash(name)), open: open, budget: f.budget}
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		f.folders[dir] = true
	}
	if dir := path.Dir(name); dir != "." {
		m.Class = path.Base(dir)
	}
	f.images = append(f.images, m)
}

// result reports images of other formats, a source without images and folders without images.
func (f *imageScan) result() ([]Image, error) {
	if len(f.images) == 0 && len(f.others) == 0 {
		return nil, diag.Errorf(diag.Pos{File: f.path}, "no image in it (.jpg, .jpeg, .png, .tif, .tiff)").
			WithNote("one sub-folder a class is needed, with the images of the class in it")
	}
	var faults diag.List
	for _, name := range f.others {
		faults.Add(diag.Errorf(diag.Pos{File: filepath.Join(f.path, filepath.FromSlash(name))},
			"images of this format are not supported; convert it to PNG, JPEG or TIFF, or remove it"))
	}
	for name, filled := range f.folders {
		if !filled {
			faults.Add(diag.Errorf(diag.Pos{File: filepath.Join(f.path, filepath.FromSlash(name))},
				"the folder of a class contains no image (.jpg, .jpeg, .png, .tif, .tiff); fill it or remove it"))
		}
	}
	return f.images, faults.Err() // sorted by path
}

// walk collects the images of a folder and of the folders in it. Symbolic links are followed,
// because a class that is a link must not be skipped without a message. name is the path inside the source,
// empty for the source; above are the folders that contain this one.
func (f *imageScan) walk(dir, name string, above []fs.FileInfo) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(above, func(a fs.FileInfo) bool { return os.SameFile(a, info) }) {
		return diag.Errorf(diag.Pos{File: dir}, "a symbolic link to a folder that contains it; remove the link")
	}
	if name != "" && !f.folders[name] {
		f.folders[name] = false
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		p, name := filepath.Join(dir, entry.Name()), path.Join(name, entry.Name())
		isFolder := entry.IsDir()
		if entry.Type()&fs.ModeSymlink != 0 && !hidden(entry.Name()) {
			target, err := os.Stat(p)
			if err != nil {
				return diag.Errorf(diag.Pos{File: p}, "a symbolic link that leads nowhere; repair or remove it")
			}
			isFolder = target.IsDir()
		}
		switch {
		case hidden(entry.Name()):
		case isFolder:
			if err := f.walk(p, name, append(slices.Clip(above), info)); err != nil {
				return err
			}
		case IsImage(name):
			f.image(name, opener(p))
		case isOtherImage(name):
			f.others = append(f.others, name)
		}
	}
	return nil
}

// opener returns a function that opens a file.
func opener(path string) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) { f, _, err := fileio.Open(path); return f, err }
}

func (s *Sources) scanZip(f *imageScan) error {
	file, info, err := fileio.Open(f.path)
	if err != nil {
		return err
	}
	z, err := zip.NewReader(file, info.Size())
	if err != nil {
		file.Close()
		return diag.Errorf(diag.Pos{File: f.path}, "neither a folder nor a readable zip archive (%v)", err)
	}
	s.archive, s.files, f.budget = append(s.archive, file), append(s.files, f.path), newPixelBudget(info.Size())
	for _, e := range z.File {
		name := strings.TrimPrefix(path.Clean("/"+strings.ReplaceAll(e.Name, `\`, "/")), "/")
		if name == "" || slices.ContainsFunc(strings.Split(name, "/"), hidden) {
			continue
		}
		switch {
		case strings.HasSuffix(e.Name, "/"):
			if !f.folders[name] {
				f.folders[name] = false
			}
		case IsImage(name) && e.Flags&1 != 0:
			return diag.Errorf(diag.Pos{File: filepath.Join(f.path, filepath.FromSlash(name))},
				"the archive is encrypted; unpack it first")
		case IsImage(name):
			f.image(name, e.Open)
		case isOtherImage(name):
			f.others = append(f.others, name)
		}
	}
	return nil
}
