// Image files in requests, which become the instances of a bag.

package serve

import (
	"encoding/json"

	"google.golang.org/grpc/status"

	"github.com/miplc/miplc/data/imagebags"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/runtime"
)

// maxImagePixels limits image files in requests.
const maxImagePixels = 4 << 20

const notImages = `"images" must be a list of image files in base64`

// readImages reads a bag of image files: a list of texts in base64.
func (s *Server) readImages(req *request, list []byte, info *runtime.Info) (bag runtime.Bag, err error) {
	cut := info.Generator != "" && info.Generator != imagebags.WholeImages
	if !cut && info.Encoder == nil {
		return bag, invalid(`the model has no encoder: send "instances" and not "images"`)
	}
	n, d := 0, ndarray.Size(info.InputShape)
	r := newJSONReader(list)
	if err := r.elements(notImages, func(int) error { n++; return r.SkipValue() }); err != nil {
		return bag, invalid(notImages)
	}
	if err := s.checkSize(n); err != nil {
		return bag, err
	}
	if err := req.reserveDecoded(n*d, n*scores(info)); err != nil {
		return bag, err
	}
	if cut {
		return s.cutImage(req, list, n, info)
	}
	limits := imagebags.Limits{Pixels: maxImagePixels,
		Reserve: func(bytes int64) error { return req.reserveDecoded(n*d+int(bytes/4), n*scores(info)) }}
	bag.Instances = make([]float32, 0, n*d)
	err = eachImage(list, func(content []byte) error {
		if err := req.ctx.Err(); err != nil {
			return decodeError(err, "")
		}
		x, err := imagebags.Decode(content, info.Encoder.Size, limits)
		bag.Instances = append(bag.Instances, x...)
		bag.N++
		return err
	})
	return bag, err
}

// eachImage calls decode with the content of each image of a list.
func eachImage(list []byte, decode func(content []byte) error) error {
	r := newJSONReader(list)
	return r.elements(notImages, func(i int) error {
		text, err := r.value()
		if err != nil {
			return err
		}
		var content []byte
		if err := json.Unmarshal(text, &content); err != nil {
			return invalid("images[%d]: this must be an image file in base64", i)
		}
		err = decode(content)
		if _, ours := status.FromError(err); ours {
			return err // none, or that of the reservation or of a limit
		}
		return invalid("images[%d]: %v", i, err)
	})
}

// cutImage cuts the only image of a list of n into the instances of a bag, as those of the training were
// made.
func (s *Server) cutImage(req *request, list []byte, n int, info *runtime.Info) (bag runtime.Bag, err error) {
	recipe, err := imagebags.ParseRecipe(info.Generator)
	if err != nil {
		return bag, invalid("the model was trained on instances of another version of miplc: %v", err)
	}
	if n != 1 {
		return bag, invalid(`"images" has %d images; the model cuts one image into the instances of a bag`, n)
	}
	d, decoding := recipe.Generator.Dim(), 0
	limits := imagebags.Limits{Pixels: maxImagePixels, Reserve: func(bytes int64) error {
		decoding = int(bytes / 4)
		return req.reserveDecoded(decoding, 0)
	}}
	err = eachImage(list, func(content []byte) (err error) {
		bag.Instances, err = recipe.Decode(content, limits, func(instances int) error {
			if err := s.checkSize(instances); err != nil {
				return err
			}
			return req.reserveDecoded(decoding+2*instances*d, instances*scores(info))
		})
		bag.N = len(bag.Instances) / d
		return err
	})
	return bag, err
}
