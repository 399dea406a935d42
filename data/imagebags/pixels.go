// Pixels in the colour spaces of the generators.

package imagebags

import (
	"image"
	"math"

	"golang.org/x/image/draw"
)

// smoothing is the kernel for reducing an image: a Gaussian with a deviation of half a pixel of the
// small image. Smoothing and sampling is how Maron and Ratan (1998) reduce an image to 8x8 pixels;
// the deviation is our choice.
var smoothing = draw.Kernel{Support: 1.5, At: func(t float64) float64 { return math.Exp(-2 * t * t) }}

// pixel is one colour: a level from 0 to 1 for each channel.
type pixel [3]float64

func (a pixel) minus(b pixel) pixel { return pixel{a[0] - b[0], a[1] - b[1], a[2] - b[2]} }

// meanOf returns the mean of colours.
func meanOf(colors ...pixel) pixel {
	var sum pixel
	for _, c := range colors {
		for k := range sum {
			sum[k] += c[k]
		}
	}
	for k := range sum {
		sum[k] /= float64(len(colors))
	}
	return sum
}

// smallImage is the image smoothed and reduced to size x size pixels.
type smallImage struct {
	size   int
	colors []pixel // [size, size], row by row
}

func reduce(m *image.RGBA, size int) smallImage {
	small := image.NewRGBA64(image.Rect(0, 0, size, size)) // 16 bits, to avoid rounding to 8 bits after the mean
	smoothing.Scale(small, small.Bounds(), m, m.Bounds(), draw.Src, nil)
	out := smallImage{size, make([]pixel, size*size)}
	for i := range out.colors {
		c := small.RGBA64At(i%size, i/size)
		out.colors[i] = pixel{float64(c.R) / 0xffff, float64(c.G) / 0xffff, float64(c.B) / 0xffff}
	}
	return out
}

func (r smallImage) at(x, y int) pixel { return r.colors[y*r.size+x] }

// colorAt returns the colour of a pixel of the image.
func colorAt(m *image.RGBA, x, y int) pixel {
	p := m.Pix[y*m.Stride+4*x:]
	return pixel{float64(p[0]) / 255, float64(p[1]) / 255, float64(p[2]) / 255}
}

// luma returns Y of ITU-R BT.601.
func luma(c pixel) float64 { return 0.299*c[0] + 0.587*c[1] + 0.114*c[2] }

// ycbcr converts a colour to ITU-R BT.601: Y from 0 to 1, Cb and Cr around 0.5, like JPEG.
func ycbcr(c pixel) pixel {
	y := luma(c)
	return pixel{y, 0.5 + (c[2]-y)/1.772, 0.5 + (c[0]-y)/1.402}
}

// luv converts a colour from sRGB to CIE 1976 L*u*v* (white D65), each divided by 100.
func luv(c pixel) pixel {
	var lin pixel
	for k, v := range c {
		if v <= 0.04045 {
			lin[k] = v / 12.92
		} else {
			lin[k] = math.Pow((v+0.055)/1.055, 2.4)
		}
	}
	x := 0.4124*lin[0] + 0.3576*lin[1] + 0.1805*lin[2]
	y := 0.2126*lin[0] + 0.7152*lin[1] + 0.0722*lin[2]
	z := 0.0193*lin[0] + 0.1192*lin[1] + 0.9505*lin[2]
	l := 903.3 * y
	if y > 0.008856 {
		l = 116*math.Cbrt(y) - 16
	}
	whole := x + 15*y + 3*z
	if whole == 0 {
		return pixel{}
	}
	const whiteU, whiteV = 0.19784, 0.46834
	return pixel{l / 100, 13 * l * (4*x/whole - whiteU) / 100, 13 * l * (9*y/whole - whiteV) / 100}
}

// flat appends the channels of colours as features.
func flat(to []float32, colors ...pixel) []float32 {
	for _, c := range colors {
		to = append(to, float32(c[0]), float32(c[1]), float32(c[2]))
	}
	return to
}
