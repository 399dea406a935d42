package serve

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/miplc/miplc/export/contract"
	"github.com/miplc/miplc/runtime"
)

// A bag of image files becomes instances; others are errors of the client.
func TestImages(t *testing.T) {
	s := start(t, func(o *Options) { o.MaxInstances, o.RequestMemory = 3, 256<<20 })
	file := func(side int) string {
		m := image.NewRGBA(image.Rect(0, 0, side, side))
		for i := range side * side {
			m.SetRGBA(i%side, i/side, color.RGBA{255, 0, 51, 255})
		}
		var b bytes.Buffer
		if err := png.Encode(&b, m); err != nil {
			t.Fatal(err)
		}
		return `"` + base64.StdEncoding.EncodeToString(b.Bytes()) + `"`
	}
	images := func(list ...string) string { return fmt.Sprintf(`{"images": [%s]}`, strings.Join(list, ", ")) }
	info := &runtime.Info{InputShape: []int{3, 2, 2}, Encoder: &contract.Encoder{EncoderInput: contract.EncoderInput{Size: 2}}}
	for _, c := range []struct {
		body string
		info *runtime.Info
		want string
	}{
		{images(file(2), file(8)), info, ""},
		{images(file(2040), file(8)), info, ""}, // a small file that needs more than the memory for small requests
		{images(file(2)), &runtime.Info{InputShape: []int{3}}, "has no encoder"},
		{images(`"***"`), info, "images[0]: this must be an image file in base64"},
		{images(file(2), `"aGVsbG8="`), info, "images[1]: not a JPEG, PNG or TIFF image$"},
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
			if status.Code(err) != codes.InvalidArgument && status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error()+"$", c.want) {
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
