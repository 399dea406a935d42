// Bags from folders and archives of images, and images that are refused.

package imagebags

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"golang.org/x/image/tiff"

	"github.com/miplc/miplc/internal/testkit/testsupport"
)

// encoded encodes an image in the format of the file extension.
func encoded(t testing.TB, name string, m image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	var err error
	switch filepath.Ext(name) {
	case ".jpg", ".jpeg", ".JPG":
		err = jpeg.Encode(&b, m, &jpeg.Options{Quality: 95})
	case ".png":
		err = png.Encode(&b, m)
	case ".tif", ".tiff":
		err = tiff.Encode(&b, m, &tiff.Options{Compression: tiff.Deflate})
	default:
		b.WriteString("text")
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// tree writes files to a new folder. Files with nil content are images.
func tree(t testing.TB, files map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "/") {
			if err := os.MkdirAll(path, 0o755); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if content == nil {
			content = encoded(t, name, tissue(70, 66, len(name)))
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

var good = map[string][]byte{
	"b/1.png": nil, "b/22.jpg": nil, "a/1.tif": nil, "a/x.JPG": nil, "a/notes.txt": []byte("text"),
	".hidden/1.png": []byte("none"), "b/.DS_Store": []byte("none"), "README": []byte("none"),
}

func zipped(t testing.TB, dir string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tiles.zip")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z := zip.NewWriter(f)
	if err := z.AddFS(os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// A folder and its archive give the same bags, for any number of workers and any file format.
func TestBags(t *testing.T) {
	dir := tree(t, good)
	var first string
	for _, path := range []string{dir, zipped(t, dir)} {
		for _, workers := range []int{1, 5} {
			s, err := FindImages([]string{path}, Limits{})
			if err != nil {
				t.Fatal(err)
			}
			calls := 0
			d, err := Bags(context.Background(), s, Cutting{
				Generator: SIFT{Patch: 32, Step: 16, Sigma: 1}, Workers: workers,
				Progress: func(done, total int) {
					if calls++; done != calls || total != 4 {
						t.Errorf("progress %d of %d at call %d", done, total, calls)
					}
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := d.Validate("bags"); err != nil {
				t.Fatal(err)
			}
			if want := []string{"a/1.tif", "a/x.JPG", "b/1.png", "b/22.jpg"}; !reflect.DeepEqual(d.BagNames, want) {
				t.Errorf("bags %q, want %q", d.BagNames, want)
			}
			if !reflect.DeepEqual(d.Labels, []int{0, 0, 1, 1}) || !reflect.DeepEqual(d.ClassNames, []string{"a", "b"}) {
				t.Errorf("labels %v of %q", d.Labels, d.ClassNames)
			}
			if d.Bags() != 4 || d.Size(0) != 9 || d.Dim() != 128 || calls != 4 {
				t.Errorf("%d bags of %d x %d, %d calls", d.Bags(), d.Size(0), d.Dim(), calls)
			}
			if first == "" {
				first = d.Hash()
			} else if d.Hash() != first {
				t.Errorf("%s with %d workers gives different bags", path, workers)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// With several sources, bag names start with the source, and the class is the parent folder.
func TestSeveralSources(t *testing.T) {
	one, two := tree(t, map[string][]byte{"train/a/1.png": nil}), tree(t, map[string][]byte{"train/b/1.png": nil,
		"train/a/1.png": nil})
	s, err := FindImages([]string{one, zipped(t, two)}, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var got []string
	for _, m := range s.Images {
		got = append(got, m.Class+":"+strings.TrimPrefix(m.Name, filepath.Base(one)))
	}
	if want := []string{"a:/train/a/1.png", "a:tiles/train/a/1.png", "b:tiles/train/b/1.png"}; !reflect.DeepEqual(got,
		want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Symbolic links to folders are read like folders, unless they lead back.
func TestLinkedFolders(t *testing.T) {
	dir := tree(t, map[string][]byte{"set/a/1.png": nil, "elsewhere/1.png": nil, "images/2.png": nil})
	link := func(to, name string) {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Skip(err) // Windows requires a privilege
		}
	}
	link("set", "link")
	link(filepath.Join("..", "elsewhere"), "set/b")
	link(filepath.Join("..", "..", "images", "2.png"), "set/a/2.png")
	link("nowhere", "set/.hidden")
	names := func() ([]string, error) {
		s, err := FindImages([]string{filepath.Join(dir, "link")}, Limits{})
		if err != nil {
			return nil, err
		}
		var names []string
		for _, m := range s.Images {
			names = append(names, m.Class+":"+m.Name)
		}
		return names, nil
	}
	if got, err := names(); err != nil || !reflect.DeepEqual(got, []string{"a:a/1.png", "a:a/2.png", "b:b/1.png"}) {
		t.Errorf("%v, %v", got, err)
	}
	link(filepath.Join("..", "..", "set"), "set/a/back")
	if _, err := names(); err == nil || !strings.Contains(err.Error(), filepath.Join("a", "back")+
		": a symbolic link to a folder that contains it") {
		t.Errorf("a link that leads back: %v", err)
	}
	link("nowhere", "set/0")
	if _, err := names(); err == nil || !strings.Contains(err.Error(), "0: a symbolic link that leads nowhere") {
		t.Errorf("a link that leads nowhere: %v", err)
	}
}

func TestBadSources(t *testing.T) {
	for _, c := range []struct {
		name  string
		files map[string][]byte
		want  []string
	}{
		{"no images", map[string][]byte{"a/readme.txt": {}}, []string{"no image in it"}},
		{"empty", map[string][]byte{"a/": nil, "b/": nil}, []string{"no image in it"}},
		{"class without images", map[string][]byte{"a/1.png": nil, "b/": nil, "c/d/x.bmp": {}},
			[]string{"b: the folder of a class contains no image", filepath.Join("c", "d") + ": the folder"}},
		{"other formats", map[string][]byte{"a/1.png": nil, "a/2.webp": {}, "b/1.png": nil, "b/3.BMP": {}, "b/4.svg": {}},
			[]string{filepath.Join("a", "2.webp") + ": images of this format are not supported", filepath.Join("b", "3.BMP") +
				": images"}},
		{"only other formats", map[string][]byte{"a/1.gif": nil, "b/1.gif": {}}, []string{filepath.Join("a", "1.gif") +
			": images of this format"}},
		{"one class", map[string][]byte{"a/1.png": nil, "a/2.png": nil}, []string{`all images are of the class "a"`}},
		{"image outside", map[string][]byte{"a/1.png": nil, "2.png": nil}, []string{"2.png: the image lies in no folder"}},
		{"broken images", map[string][]byte{"a/1.png": nil, "b/1.png": []byte("nothing"), "b/2.jpg": {}, "b/3.png": encoded(t,
			".png", tissue(30, 30, 0))[:200],
			"b/4.jpg": encoded(t, ".jpg", tissue(30, 30, 0))[:700], "b/5.tif": encoded(t, ".tif", tissue(30, 30, 0))[:300]},
			[]string{"1.png: not a JPEG, PNG or TIFF image", "2.jpg: the file is empty",
				"3.png: the image cannot be decoded: png: invalid format", "4.jpg: the image cannot be decoded",
				"5.tif: the image cannot be decoded: the file is cut short"}},
		{"small image", map[string][]byte{"a/1.png": nil, "b/1.png": encoded(t, ".png", tissue(30, 80, 0))},
			[]string{"the image has 30x80 pixels", "--resize"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := tree(t, c.files)
			s, err := FindImages([]string{dir}, Limits{})
			if err == nil {
				defer s.Close()
				_, err = Bags(context.Background(), s, Cutting{Generator: DefaultSIFT})
			}
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %s\nwant %s", err, want)
				}
			}
		})
	}
	for path, want := range map[string]string{
		filepath.Join(t.TempDir(), "none"): "there is no such folder or file",
		"bags_test.go":                     "neither a folder nor a readable zip archive",
	} {
		if _, err := FindImages([]string{path}, Limits{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
	dir := tree(t, good)
	if _, err := FindImages([]string{dir, dir}, Limits{}); err == nil ||
		!strings.Contains(err.Error(), "another image has the same name") {
		t.Errorf("the same source twice: %v", err)
	}
	if _, err := FindImages([]string{dir}, Limits{Images: 3}); err == nil ||
		!strings.Contains(err.Error(), "4 images are more than the limit of 3") {
		t.Errorf("too many images: %v", err)
	}
}

// hugePNG returns a small file that claims many pixels.
func hugePNG(side uint32) []byte {
	chunk := func(kind string, content []byte) []byte {
		b := binary.BigEndian.AppendUint32(nil, uint32(len(content)))
		b = append(append(b, kind...), content...)
		return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[4:]))
	}
	size := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, side), side)
	head := chunk("IHDR", append(size, 8, 2, 0, 0, 0))
	return append([]byte("\x89PNG\r\n\x1a\n"), append(head, chunk("IDAT", []byte{1})...)...)
}

// Small files that expand to gigabytes are rejected without allocating memory, as images and as
// archives of zeros.
func TestBombs(t *testing.T) {
	dir := tree(t, map[string][]byte{"a/1.png": nil, "b/1.png": hugePNG(60000)})
	s, err := FindImages([]string{dir}, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := Bags(context.Background(), s, Cutting{Generator: DefaultRow}); err == nil ||
		!strings.Contains(err.Error(), "claims 60000x60000 pixels, more than the limit of 25000000") {
		t.Errorf("a huge picture: %v", err)
	}
	packed := zipped(t, tree(t, map[string][]byte{"a/1.png": nil, "b/1.png": make([]byte, 8<<20)}))
	if info, _ := os.Stat(packed); info.Size() > 1<<18 {
		t.Fatalf("the archive has %d bytes", info.Size())
	}
	z, err := FindImages([]string{packed}, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	if _, err := Bags(context.Background(), z, Cutting{Generator: DefaultRow,
		Limits: Limits{FileBytes: 1 << 20}}); err == nil ||
		!strings.Contains(err.Error(), "unpacks to more than the limit of 1048576 bytes") {
		t.Errorf("a file of zeros: %v", err)
	}
}

func TestInterrupted(t *testing.T) {
	s, err := FindImages([]string{tree(t, good)}, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, cancel := context.WithCancel(context.Background())
	_, err = Bags(ctx, s, Cutting{Generator: DefaultRow, Workers: 1, Progress: func(int, int) { cancel() }})
	if err != context.Canceled {
		t.Errorf("got %v", err)
	}
}

// Read resizes images, handles transparency and supports all pixel formats.
func TestRead(t *testing.T) {
	clear := image.NewNRGBA(image.Rect(0, 0, 4, 4)) // all transparent
	gray := image.NewGray16(image.Rect(0, 0, 4, 4))
	for i := range gray.Pix {
		gray.Pix[i] = 0x80
	}
	dir := tree(t, map[string][]byte{"a/clear.png": encoded(t, ".png", clear), "a/grey.tif": encoded(t, ".tif", gray)})
	for name, want := range map[string]color.RGBA{"clear.png": {255, 255, 255, 255}, "grey.tif": {0x80, 0x80, 0x80, 255}} {
		m, err := fileImage(filepath.Join(dir, "a", name)).Read(Size{7, 5}, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if m.Bounds() != image.Rect(0, 0, 7, 5) || m.RGBAAt(6, 4) != want || !m.Opaque() {
			t.Errorf("%s: %v, %v", name, m.Bounds(), m.RGBAAt(6, 4))
		}
	}
	for _, s := range []Size{{-1, 3}, {0, 3}, {1 << 15, 3}} {
		if s.Check() == nil {
			t.Errorf("the size %v gives no error", s)
		}
	}
}

func TestFalseCandidates(t *testing.T) {
	s, err := FindImages([]string{tree(t, map[string][]byte{"a/1.png": nil, "b/1.png": nil, "c/1.png": nil,
		"d/1.png": nil})}, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	draw := func(g Generator, r int, seed uint64) []uint8 {
		d, err := Bags(context.Background(), s, Cutting{Generator: g})
		if err != nil {
			t.Fatal(err)
		}
		if err := AddFalseCandidates(d, r, seed); err != nil {
			t.Fatal(err)
		}
		if err := d.Validate("bags"); err != nil {
			t.Fatal(err)
		}
		for i := range d.Bags() {
			n := 0
			for _, c := range d.CandidateMask(i) {
				n += int(c)
			}
			if n != r+1 {
				t.Errorf("r = %d: %d candidates", r, n)
			}
		}
		return d.Candidates
	}
	if !reflect.DeepEqual(draw(DefaultRow, 2, 7), draw(DefaultSBN, 2, 7)) {
		t.Error("the candidates depend on the generator")
	}
	if reflect.DeepEqual(draw(DefaultRow, 2, 7), draw(DefaultRow, 2, 9)) {
		t.Error("the candidates do not depend on the seed")
	}
	draw(DefaultRow, 0, 1)
	d, err := Bags(context.Background(), s, Cutting{Generator: DefaultRow})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []int{-1, 4} {
		if err := AddFalseCandidates(d, r, 1); err == nil || !strings.Contains(err.Error(), "give 0 to 3") {
			t.Errorf("r = %d: %v", r, err)
		}
	}
}

// The counts on real tiles of the paper's source are those of Table 1 of the paper.
func TestRealTiles(t *testing.T) {
	path := testsupport.Data(t, "crc/nct-crc-sample.zip", "it has ten tiles of the dataset NCT-CRC-HE-100K")
	s, err := FindImages([]string{path}, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	counts := map[string][2]float64{"row": {8, 9}, "sbn": {9, 15}, "kmeansseg": {4.3, 6}, "sift": {25, 128}}
	for _, g := range defaults {
		name, want := g.Name(), counts[g.Name()]
		d, err := Bags(context.Background(), s, Cutting{Generator: g})
		if err != nil {
			t.Fatal(err)
		}
		instances, bags := 0.0, 0.0
		for i, label := range d.Labels {
			if c := d.ClassNames[label]; c != "ADI" && c != "BACK" { // the paper leaves these out
				instances += float64(d.Size(i))
				bags++
			}
		}
		if mean := instances / bags; mean < want[0]-0.3 || mean > want[0]+0.3 || float64(d.Dim()) != want[1] {
			t.Errorf("%s: %.2f instances of %d features, want %v", name, mean, d.Dim(), want)
		}
	}
}

// Reading any file gives an image within the limits or an error, and every generator accepts the
// image.
func FuzzRead(f *testing.F) {
	for _, name := range []string{"1.png", "1.jpg", "1.tif"} {
		f.Add(encoded(f, name, tissue(20, 12, 0)))
	}
	f.Add(hugePNG(1 << 20))
	f.Fuzz(func(t *testing.T, content []byte) {
		limits := Limits{Pixels: 1 << 12, FileBytes: 1 << 20}
		m, err := Image{open: func() (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(content)),
				nil
		}}.Read(Size{}, limits)
		if err != nil {
			return
		}
		if b := m.Bounds(); b.Min != (image.Point{}) || b.Dx()*b.Dy() > limits.Pixels || b.Empty() || !m.Opaque() {
			t.Fatalf("an image of %v", b)
		}
		for _, g := range defaults {
			bag, err := g.Bag(m)
			if err == nil && (len(bag) == 0 || len(bag)%g.Dim() != 0) {
				t.Fatalf("%s: a bag of %d numbers", g.Name(), len(bag))
			}
		}
	})
}
