// Sample steps of images end soon after their context.

package build

import (
	"context"
	"errors"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/internal/onnxpb"
	"github.com/miplc/miplc/internal/testkit/enginetest"
)

// The encoder of the images of a spec takes most of the time, so it has to notice the end of the context.
func TestSampleStepsEnd(t *testing.T) {
	enginetest.Library(t)
	t.Setenv("MIPLC_CACHE", t.TempDir()) // without the features of another test
	t.Chdir(t.TempDir())
	content, err := onnxpb.Marshal(enginetest.EncoderModel(3))
	if err != nil {
		t.Fatal(err)
	}
	write := func(path string, content []byte) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, content, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	write("encoder.onnx", content)
	for i := range 6 {
		path := filepath.Join("tiles", []string{"cat", "dog"}[i%2], fmt.Sprint(i), "a.png")
		write(path, nil)
		file, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		picture := image.NewGray(image.Rect(0, 0, 8, 8))
		picture.Pix[i] = 255
		if err := errors.Join(png.Encode(file, picture), file.Close()); err != nil {
			t.Fatal(err)
		}
	}
	write("spec.yaml", []byte("name: images\nextends: demipl\ndata:\n  set: tiles\n  encoder: {file: encoder.onnx, "+
		"output: "+enginetest.PooledEncoder+", input: {size: 8, mean: [0, 0, 0], std: [1, 1, 1], order: rgb}}\n"))
	o := &Task{Spec: load(t, "spec.yaml"), Dir: t.TempDir(), SampleSteps: 2}
	ended, end := context.WithCancel(t.Context())
	end()
	program, err := compile.Compile(load(t, "quickstart"), compile.Signature{Instance: []int{20}, Classes: 5})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := writeSampleSteps(ended, o, form(t, program)); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of the context", err)
	}
}
