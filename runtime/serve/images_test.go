// Image files become the instances on which the model was trained, and unreadable ones are errors of the client.

package serve

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/miplc/miplc/internal/contract"
	"github.com/miplc/miplc/runtime"
)

// A bag of image files becomes instances; others are errors of the client.
func TestImages(t *testing.T) {
	s := start(t, func(o *Config) { o.MaxInstances, o.RequestMemory = 3, 256<<20 })
	file := func(side int) string {
		red, bounds := color.RGBA{255, 0, 51, 255}, image.Rect(0, 0, side, side)
		var m image.Image
		if side > 2048 { // too large for the server, which reads only its size
			m = image.NewPaletted(bounds, color.Palette{red})
		} else {
			rgba := image.NewRGBA(bounds)
			draw.Draw(rgba, bounds, image.NewUniform(red), image.Point{}, draw.Src)
			m = rgba
		}
		var b bytes.Buffer
		if err := png.Encode(&b, m); err != nil {
			t.Fatal(err)
		}
		return `"` + base64.StdEncoding.EncodeToString(b.Bytes()) + `"`
	}
	images := func(list ...string) string { return fmt.Sprintf(`{"images": [%s]}`, strings.Join(list, ", ")) }
	info := &runtime.Info{Metadata: contract.Metadata{InputShape: []int{3, 2, 2}, Encoder: &contract.Encoder{
		EncoderInput: contract.EncoderInput{Size: 2}}}}
	for _, c := range []struct {
		body string
		info *runtime.Info
		want string
	}{
		{images(file(2), file(8)), info, ""},
		{images(file(2040), file(8)), info, ""}, // a small file that needs more than the memory for small requests
		{images(file(2)), &runtime.Info{Metadata: contract.Metadata{InputShape: []int{3}}}, "has no encoder"},
		{images(`"***"`), info, "images[0]: this must be an image file in base64"},
		{images(file(2), `"aGVsbG8="`), info, "images[1]: not a JPEG, PNG or TIFF image$"},
		{images(file(2), file(2)), &runtime.Info{Metadata: contract.Metadata{InputShape: []int{3, 2, 2},
			Generator: "patches side=2"}}, `"images" has 2 images; the model cuts one`},
		{images(file(1)), &runtime.Info{Metadata: contract.Metadata{InputShape: []int{3, 2, 2}, Generator: "patches side=2"}},
			"images[0]: the image has 1x1 pixels, but a patch needs 2x2"},
		{images(file(8)), &runtime.Info{Metadata: contract.Metadata{InputShape: []int{3, 2, 2}, Generator: "patches side=2"}},
			"at most 3"},
		{images(file(2)), &runtime.Info{Metadata: contract.Metadata{InputShape: []int{3, 2, 2}, Generator: "slices"}},
			`the generator "slices" is not known`},
		{`{"images": [], "images": []}`, info, `"images" is given twice`},
		{images(`7`), info, "images[0]: this must be"},
		{`{"images": {}}`, info, "must be a list"},
		{`{"images": [], "instances": []}`, info, "not both"},
		{images(file(2), file(2), file(2), file(2)), info, "at most 3"},
		{images(file(4000)), info, "more than the limit of 4194304"},
	} {
		req := s.request([]byte(c.body))
		bag, err := s.readBag(req, c.info)
		req.memory.release()
		if c.want != "" {
			if status.Code(err) != codes.InvalidArgument && status.Code(err) != codes.ResourceExhausted ||
				!strings.Contains(err.Error()+"$", c.want) {
				t.Errorf("%.80s: %v, want %q", c.body, err, c.want)
			}
			continue
		}
		if err != nil || bag.N != 2 || len(bag.Instances) != 24 {
			t.Fatalf("%d images, %v", bag.N, err)
		}
		for i, v := range bag.Instances {
			if want := []float32{1, 0, 0.2}[i/4%3]; v < want-1e-6 || v > want+1e-6 {
				t.Errorf("value %d is %v, want %v", i, v, want)
			}
		}
	}
}

// A model that was trained on pieces of images cuts an image into the instances of a bag.
func TestCutImage(t *testing.T) {
	s := start(t, func(o *Config) { o.MaxInstances, o.RequestMemory = 9, 256<<20 })
	m := image.NewGray(image.Rect(0, 0, 4, 2))
	for i := range m.Pix {
		m.Pix[i] = uint8(51 * (i % 4))
	}
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	req := s.request([]byte(`{"images": ["` + base64.StdEncoding.EncodeToString(b.Bytes()) + `"]}`))
	defer req.memory.release()
	bag, err := s.readBag(req, &runtime.Info{Metadata: contract.Metadata{InputShape: []int{1, 2, 2},
		Generator: "patches gray=true side=2"}})
	if err != nil {
		t.Fatal(err)
	}
	if want := []float32{0, 0.2, 0, 0.2, 0.4, 0.6, 0.4, 0.6}; bag.N != 2 ||
		!slices.EqualFunc(bag.Instances, want, func(a, b float32) bool { return a-b < 1e-6 && b-a < 1e-6 }) {
		t.Errorf("%d instances %v, want %v", bag.N, bag.Instances, want)
	}
}
