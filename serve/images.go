package serve

import (
	"encoding/json"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/miplc/miplc/data/imagebags"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/runtime"
)

// maxImagePixels limits image files in requests.
const maxImagePixels = 4 << 20

// readImages reads a bag of image files: a list of texts in base64.
func (s *Server) readImages(req *request, list []byte, info *runtime.Info) (bag runtime.Bag, err error) {
	if info.Encoder == nil {
		return bag, status.Error(codes.InvalidArgument, `the model has no encoder: send "instances" and not "images"`)
	}
	n, d := 0, ndarray.Size(info.InputShape)
	r := newJSONReader(list)
	if array, err := r.elements(func(int) error { n++; return r.SkipValue() }); err != nil || !array {
		return bag, status.Error(codes.InvalidArgument, `"images" must be a list of image files in base64`)
	}
	if err := s.checkSize(n); err != nil {
		return bag, err
	}
	if err := req.reserveDecoded(n*d, n*scores(info)); err != nil {
		return bag, err
	}
	limits := imagebags.Limits{Pixels: maxImagePixels, Reserve: func(bytes int64) error { return req.reserveDecoded(n*d+int(bytes/4), n*scores(info)) }}
	bag.Instances = make([]float32, 0, n*d)
	r = newJSONReader(list)
	_, err = r.elements(func(i int) error {
		if err := req.ctx.Err(); err != nil {
			return decodeError(err, "")
		}
		text, err := r.value()
		if err != nil {
			return err
		}
		var content []byte
		if err := json.Unmarshal(text, &content); err != nil {
			return status.Errorf(codes.InvalidArgument, "images[%d]: this must be an image file in base64", i)
		}
		x, err := imagebags.Decode(content, info.Encoder.Size, limits)
		if code := status.Code(err); code == codes.ResourceExhausted || code == codes.Unavailable {
			return err // of the reservation
		}
		if err != nil {
			return status.Errorf(codes.InvalidArgument, "images[%d]: %v", i, err)
		}
		bag.Instances = append(bag.Instances, x...)
		bag.N++
		return nil
	})
	return bag, err
}
