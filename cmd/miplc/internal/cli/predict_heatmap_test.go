// What predict says of instances: thumbnails of heatmaps and lists of the highest attention.

package cli

import (
	"image"
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"github.com/miplc/miplc/data/imagebags"
)

// A bag gets the image of the same name as its thumbnail, a bag without a name the image of its
// number. If two images have the name, neither is used.
func TestThumbnails(t *testing.T) {
	dir := t.TempDir()
	for i, name := range []string{"cat/1.png", "dog/1.png", "dog/7.png"} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		f, err := os.Create(path)
		if err == nil {
			err = png.Encode(f, image.NewGray(image.Rect(0, 0, i+1, 1)))
			f.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		bag   bagResult
		width int // 0: no thumbnail
	}{{bagResult{Number: 5, Name: "cat/1.png"}, 1}, {bagResult{Number: 5, Name: "dog/1"}, 2}, {bagResult{Number: 1}, 0},
		{bagResult{Number: 7}, 3}, {bagResult{Number: 2, Name: "7"}, 3}, {bagResult{Number: 7, Name: "2"}, 0},
		{bagResult{Number: 2, Name: "1"}, 0}} {
		list := []picture{{bag: &c.bag}}
		if _, err := (&heatmaps{}).findThumbnails(list, []string{dir}); err != nil {
			t.Fatal(err)
		}
		width := 0
		if list[0].thumbnail != nil {
			m, err := list[0].thumbnail.Read(imagebags.Size{}, imagebags.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			width = m.Bounds().Dx()
		}
		if width != c.width {
			t.Errorf("%+v: %d pixels wide, want %d", c.bag, width, c.width)
		}
	}
}

// Scores of large bags are small, and their digits must not vanish.
func TestTopInstanceText(t *testing.T) {
	for score, want := range map[float32]string{0.7654: "instance 3 (0.765)", 0.0151: "instance 3 (0.015)",
		0.0000244: "instance 3 (2.4e-05)"} {
		if text := (topInstance{Instance: 3, Attention: score}).String(); text != want {
			t.Errorf("%g: %q, not %q", score, text, want)
		}
	}
}
