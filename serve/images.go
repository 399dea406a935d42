package serve

import (
	"encoding/json"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/miplc/miplc/data/imagebags"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/runtime"
)

// Limits of image files in requests. imageValues are reserved while images are decoded, one after
// the other: 12 bytes per pixel, and the rows for resizing.
const (
	maxImagePixels = 4 << 20
	imageValues    = 16 << 20
)

// readImages reads a bag of image files: a list of texts in base64.
func (s *Server) readImages(req *request, list []byte, info *runtime.Info) (bag runtime.Bag, err error) {
	if info.Encoder == nil {
		return bag, status.Error(codes.InvalidArgument, `the model has no encoder: send "instances" and not "images"`)
	}
	n, d := 0, ndarray.Size(info.InputShape)
	c := &cursor{data: list}
	if array, err := c.elements(func(int) error { c.skip(); n++; return nil }); err != nil || !array {
		return bag, status.Error(codes.InvalidArgument, `"images" must be a list of image files in base64`)
	}
	if err := s.checkSize(n); err != nil {
		return bag, err
	}
	if err := req.decoded(n*d+imageValues, n, true); err != nil {
		return bag, err
	}
	bag.Instances = make([]float32, 0, n*d)
	c = &cursor{data: list}
	_, err = c.elements(func(i int) error {
		if err := req.ctx.Err(); err != nil {
			return decodeError(err, "")
		}
		var content []byte
		if err := json.Unmarshal(c.skip(), &content); err != nil {
			return status.Errorf(codes.InvalidArgument, "images[%d]: this must be an image file in base64", i)
		}
		x, err := imagebags.Decode(content, info.Encoder.Size, imagebags.Limits{Pixels: maxImagePixels})
		if err != nil {
			return status.Error(codes.InvalidArgument, fmt.Sprintf("images[%d]: %v", i, err))
		}
		bag.Instances = append(bag.Instances, x...)
		bag.N++
		return nil
	})
	return bag, err
}
