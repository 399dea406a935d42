// An example of a generator.

package imagebags_test

import (
	"bytes"
	"fmt"
	"image"
	"image/draw"
	_ "image/png"
	"log"
	"os"
	"slices"

	"github.com/miplc/miplc/data/imagebags"
)

// This example makes the bag of an image in a service, as miplc data bags does. The tutorial links
// to it.
func Example() {
	content, err := os.ReadFile("testdata/sift.png")
	if err != nil {
		log.Fatal(err)
	}
	picture, _, err := image.Decode(bytes.NewReader(content))
	if err != nil {
		log.Fatal(err)
	}
	size := picture.Bounds()
	canvas := image.NewRGBA(image.Rect(0, 0, size.Dx(), size.Dy()))
	draw.Draw(canvas, canvas.Bounds(), image.White, image.Point{}, draw.Src)
	draw.Draw(canvas, canvas.Bounds(), picture, size.Min, draw.Over)

	generator := imagebags.DefaultSIFT
	features, err := generator.Bag(canvas)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(features)/generator.Dim(), "instances of", generator.Dim(), "features")

	images, err := imagebags.FindImages([]string{"testdata"}, imagebags.Limits{})
	if err != nil {
		log.Fatal(err)
	}
	read, err := images.Images[0].Read(imagebags.Size{}, imagebags.Limits{})
	if err != nil {
		log.Fatal(err)
	}
	same, err := generator.Bag(read)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("as miplc data bags:", slices.Equal(features, same))
	// Output:
	// 4 instances of 128 features
	// as miplc data bags: true
}
