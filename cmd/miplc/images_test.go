// Commands of test scripts that make images, archives and an encoder.

package main

import (
	"archive/zip"
	"bytes"
	"hash/crc32"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"os"
	"path/filepath"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/image/tiff"

	"github.com/miplc/miplc/internal/onnxpb"
	"github.com/miplc/miplc/internal/testkit/enginetest"
)

// images FILE... writes a small image to each file, in the format of its extension. The name
// determines the contents.
func images(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: images FILE...")
	}
	for _, name := range args {
		var b bytes.Buffer
		var err error
		switch m := picture(crc32.ChecksumIEEE([]byte(name))); filepath.Ext(name) {
		case ".jpg":
			err = jpeg.Encode(&b, m, nil)
		case ".tif":
			err = tiff.Encode(&b, m, nil)
		default:
			err = png.Encode(&b, m)
		}
		ts.Check(err)
		path := ts.MkAbs(name)
		ts.Check(os.MkdirAll(filepath.Dir(path), 0o755))
		ts.Check(os.WriteFile(path, b.Bytes(), 0o644))
	}
}

// picture draws an image of 72x64 pixels with stripes and a disc in colours that depend on the seed.
func picture(seed uint32) image.Image {
	m := image.NewRGBA(image.Rect(0, 0, 72, 64))
	a := color.RGBA{uint8(seed), uint8(seed >> 8), uint8(seed >> 16), 255}
	b := color.RGBA{^a.R, uint8(seed >> 24), a.B / 2, 255}
	for y := range 64 {
		for x := range 72 {
			c := a
			if (x-30)*(x-30)+(y-int(seed%50))*(y-int(seed%50)) < 400 || (x+y)/8%3 == 0 {
				c = b
			}
			m.SetRGBA(x, y, c)
		}
	}
	return m
}

// pack FOLDER FILE writes a zip archive with the contents of the folder.
func pack(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: pack FOLDER FILE")
	}
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	ts.Check(z.AddFS(os.DirFS(ts.MkAbs(args[0]))))
	ts.Check(z.Close())
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), b.Bytes(), 0o644))
}

// encoderFile FILE writes an encoder of small images.
func encoderFile(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: encoder FILE")
	}
	content, err := onnxpb.Marshal(enginetest.EncoderModel(8))
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), content, 0o644))
}
