// SIFT against OpenCV.

package imagebags

import (
	"encoding/csv"
	"image"
	"image/color"
	"math"
	"os"
	"strconv"
	"testing"
)

// The descriptors agree with those that OpenCV computes of the same patches
// (testdata/opencv_sift.py). OpenCV computes in float32, approximates directions within 0.3 degrees
// and rounds to multiples of 1/512.
func TestSIFTAgreesWithOpenCV(t *testing.T) {
	m, err := fileImage("testdata/sift.png").Read(Size{}, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := SIFT{Patch: 64, Step: 28, Sigma: 1.6}.Bag(m)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open("testdata/sift.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != len(rows)*128 {
		t.Fatalf("%d numbers, OpenCV has %d patches", len(got), len(rows))
	}
	worst := 0.0
	for i, row := range rows {
		for j, text := range row[2:] {
			v, err := strconv.Atoi(text)
			if err != nil {
				t.Fatal(err)
			}
			worst = max(worst, math.Abs(float64(got[i*128+j])-float64(v)/512))
		}
	}
	if t.Logf("largest difference %.5f", worst); worst > 0.75/512 {
		t.Errorf("a number differs from OpenCV's by %.4f", worst)
	}
}

// The histograms show the direction of an edge. Brightness that increases to the right is direction
// 0, upwards 2, to the left 4, downwards 6.
func TestSIFTDirections(t *testing.T) {
	for want, ramp := range map[int]func(x, y int) int{
		0: func(x, _ int) int { return 3 * x },
		2: func(_, y int) int { return 200 - 3*y },
		4: func(x, _ int) int { return 200 - 3*x },
		6: func(_, y int) int { return 3 * y },
	} {
		bag, err := SIFT{Patch: 16, Step: 100, Sigma: 0.5}.Bag(painted(40, 40, func(x, y int) color.RGBA {
			v := uint8(ramp(x, y))
			return color.RGBA{v, v, v, 255}
		}))
		if err != nil {
			t.Fatal(err)
		}
		length := 0.0
		for i, v := range bag {
			length += float64(v) * float64(v)
			if v > 1e-6 && i%8 != want {
				t.Errorf("direction %d: number %d is %v", want, i, v)
			}
		}
		if math.Abs(length-1) > 1e-5 {
			t.Errorf("direction %d: the length is %v", want, math.Sqrt(length))
		}
	}
}

func TestSIFTOfNothing(t *testing.T) {
	bag, err := DefaultSIFT.Bag(painted(64, 64, func(int, int) color.RGBA { return color.RGBA{9, 9, 9, 255} }))
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range bag {
		if math.Abs(float64(v)) > 0 {
			t.Fatalf("an image without gradients gives %v", v)
		}
	}
}

// painted returns an image whose pixels are computed by a function.
func painted(w, h int, at func(x, y int) color.RGBA) *image.RGBA {
	m := image.NewRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			m.SetRGBA(x, y, at(x, y))
		}
	}
	return m
}
