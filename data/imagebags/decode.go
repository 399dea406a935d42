// Decoding of images within limits.

package imagebags

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"io"
	"slices"

	"golang.org/x/image/draw"
	"golang.org/x/image/tiff"

	"github.com/miplc/miplc/internal/resources"
)

// Limits bound the cost of one source. Zero fields mean the defaults: 64 MiB, 25 million pixels, a
// million images. Archives and image formats can expand to a thousand times their size. Each worker
// has one image in memory at a time, with up to about 60 bytes per pixel.
type Limits struct {
	FileBytes int64 // uncompressed bytes of one image file
	Pixels    int   // pixels of one image
	Images    int   // images in total
	// Reserve is called before an image is decoded, with an upper bound of the bytes that this needs.
	// An error ends the decoding. nil: no call.
	Reserve func(bytes int64) error
}

func (l Limits) fileBytes() int64 { return cmp.Or(max(l.FileBytes, 0), 64<<20) }
func (l Limits) pixels() int      { return cmp.Or(max(l.Pixels, 0), 25_000_000) }
func (l Limits) images() int      { return cmp.Or(max(l.Images, 0), 1_000_000) }

// Size is a size in pixels; the zero value means the size of the image.
type Size struct{ Width, Height int }

// maxSource bounds the sides of images; it is the limit of JPEG. Decoders and generators work row
// by row and need many times the memory of a row.
const maxSource = 1<<16 - 1

// maxSide bounds the sides of resized images.
const maxSide = 1 << 14

// Check reports an invalid size.
func (s Size) Check() error {
	if s != (Size{}) && (s.Width < 1 || s.Height < 1 || s.Width > maxSide || s.Height > maxSide) {
		return fmt.Errorf("images cannot be brought to %dx%d pixels; give 1 to %d for each side", s.Width, s.Height, maxSide)
	}
	return nil
}

// Read decodes the image as opaque RGBA with 8 bits per channel, with transparent parts on white,
// and resizes it.
func (m Image) Read(size Size, limits Limits) (*image.RGBA, error) {
	content, err := m.bytes(limits)
	if err != nil {
		return nil, err
	}
	return decode(content, size, limits, m.budget)
}

// decode is Read with the bytes of a file and the budget of its archive, or nil.
func decode(content []byte, size Size, limits Limits, budget *pixelBudget) (out *image.RGBA, err error) {
	defer func() {
		if r := recover(); r != nil { // a decoder that panicked on a damaged file
			err = fmt.Errorf("the image cannot be decoded (%v); the file is broken", r)
		}
	}()
	if int64(len(content)) > limits.fileBytes() {
		return nil, fmt.Errorf("the image has %d bytes, more than the limit of %d", len(content), limits.fileBytes())
	}
	i := slices.IndexFunc(imageFormats, func(f imageFormat) bool { return bytes.HasPrefix(content, []byte(f.start)) })
	switch {
	case len(content) == 0:
		return nil, errors.New("the file is empty")
	case i < 0:
		return nil, errors.New("not a JPEG, PNG or TIFF image")
	}
	coding := imageFormats[i]
	if err := coding.guard(content, limits); err != nil {
		return nil, err
	}
	config, err := coding.config(bytes.NewReader(content))
	if err != nil {
		return nil, decodeError(err)
	}
	if config.Width < 1 || config.Height < 1 {
		return nil, errors.New("the image has no pixels")
	}
	if config.Width > maxSource || config.Height > maxSource {
		return nil, fmt.Errorf("the image claims %dx%d pixels; the limit of a side is %d", config.Width, config.Height,
			maxSource)
	}
	if config.Width > limits.pixels()/config.Height {
		return nil, fmt.Errorf("the image claims %dx%d pixels, more than the limit of %d", config.Width, config.Height,
			limits.pixels())
	}
	if err := budget.spend(config.Width * config.Height); err != nil {
		return nil, err
	}
	if err := resources.Memory().Check("this image", decodedBytes(config, size), "use a smaller image"); err != nil {
		return nil, err
	}
	if limits.Reserve != nil {
		if err := limits.Reserve(int64(decodedBytes(config, size))); err != nil {
			return nil, err
		}
	}
	decoded, err := coding.decode(bytes.NewReader(content))
	if err != nil {
		return nil, decodeError(err)
	}
	return opaque(decoded, size), nil
}

// decodedBytes estimates the memory for decoding an image (8 bytes per pixel for 16 bits per
// channel), resizing it (a row of sums per row of pixels), and its features. A PNG image of 25
// million pixels needed 56 bytes per pixel in total.
func decodedBytes(c image.Config, size Size) float64 {
	pixels := float64(c.Width) * float64(c.Height)
	if size == (Size{}) {
		return 56 * pixels
	}
	return 12*pixels + float64(size.Width)*(4*float64(size.Height)+32*float64(c.Height)) +
		28*float64(size.Width)*float64(size.Height)
}

// bytes reads the file, up to the limit.
func (m Image) bytes(limits Limits) ([]byte, error) {
	r, err := m.open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	content, err := io.ReadAll(io.LimitReader(r, limits.fileBytes()+1))
	if err != nil {
		return nil, fmt.Errorf("cannot be read: %w", err)
	}
	if int64(len(content)) > limits.fileBytes() {
		return nil, fmt.Errorf("the file unpacks to more than the limit of %d bytes", limits.fileBytes())
	}
	return content, nil
}

// imageFormat is one image format.
type imageFormat struct {
	start  string // first bytes of the file; the extension of its name may be wrong
	config func(io.Reader) (image.Config, error)
	decode func(io.Reader) (image.Image, error)
	guard  func(content []byte, limits Limits) error
}

// imageFormats are the supported formats. They are decoded directly, because image.Decode hides that the
// file is in memory, and the TIFF decoder then allocates memory for any offset in the file.
var imageFormats = []imageFormat{
	{"\xff\xd8", jpeg.DecodeConfig, jpeg.Decode, guardJPEG},
	{"\x89PNG\r\n\x1a\n", png.DecodeConfig, png.Decode, func([]byte, Limits) error { return nil }},
	{"II*\x00", tiff.DecodeConfig, tiff.Decode, guardTIFF},
	{"MM\x00*", tiff.DecodeConfig, tiff.Decode, guardTIFF},
}

func decodeError(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return errors.New("the image cannot be decoded: the file is cut short")
	}
	return fmt.Errorf("the image cannot be decoded: %w", err)
}

// opaque draws the image on white at the given size.
func opaque(m image.Image, size Size) *image.RGBA {
	b := m.Bounds()
	if size == (Size{}) {
		size = Size{b.Dx(), b.Dy()}
	}
	out := image.NewRGBA(image.Rect(0, 0, size.Width, size.Height))
	draw.Draw(out, out.Bounds(), image.NewUniform(color.White), image.Point{}, draw.Src)
	if size == (Size{b.Dx(), b.Dy()}) {
		draw.Draw(out, out.Bounds(), m, b.Min, draw.Over)
	} else {
		draw.CatmullRom.Scale(out, out.Bounds(), m, b, draw.Over, nil)
	}
	return out
}
