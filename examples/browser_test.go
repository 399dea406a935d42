// The page of examples/browser in Chromium, whose predictions must be those of miplc.

package examples_test

import (
	"context"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/miplc/miplc/internal/contract"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/testkit/enginetest"
	"github.com/miplc/miplc/internal/testkit/testsupport"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/runs"
	"github.com/miplc/miplc/runs/build"
	"github.com/miplc/miplc/runtime"
)

// want is a bag for the page, as features or as the names of image files, and its prediction by the
// Go runtime.
type want struct {
	Instances     [][]float32 `json:"instances,omitempty"`
	Images        []string    `json:"images,omitempty"`
	Probabilities []float32   `json:"probabilities"`
	Attention     []float32   `json:"attention"`
}

// The page predicts bags of features as the Go runtime does, and shows the result.
func TestPagePredictsTheSame(t *testing.T) {
	spec, err := language.Load("quickstart")
	if err != nil {
		t.Fatal(err)
	}
	dir := testsupport.PageFolder(t)
	enginetest.Library(t)
	_, err = build.Run(context.Background(), build.Task{Spec: spec, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	random, sizes := rand.New(rand.NewPCG(1, 1)), []int{1, 2, 40, 1000}
	var bags []want
	for _, n := range sizes {
		var b want
		for range n {
			instance := make([]float32, 20)
			for i := range instance {
				instance[i] = float32(random.NormFloat64())
			}
			b.Instances = append(b.Instances, instance)
		}
		bags = append(bags, b)
	}
	comparePage(t, dir, bags, sizes)
}

// The page predicts images with a model that starts with an encoder.
func TestPagePredictsImages(t *testing.T) {
	const side = 12
	dir := testsupport.PageFolder(t)
	model, err := os.ReadFile("../runtime/testdata/images-3x4.onnx")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(runs.ModelPath(dir), model, 0o644); err != nil {
		t.Fatal(err)
	}
	random, sizes := rand.New(rand.NewPCG(1, 2)), []int{1, 3}
	var bags []want
	for _, n := range sizes {
		var b want
		for i := range n {
			picture, instance := image.NewRGBA(image.Rect(0, 0, side, side)), make([]float32, 3*side*side)
			for at := range side * side {
				rgb := [3]uint8{uint8(random.Uint32()), uint8(random.Uint32()), uint8(random.Uint32())}
				picture.SetRGBA(at%side, at/side, color.RGBA{rgb[0], rgb[1], rgb[2], 255})
				for c, v := range rgb {
					instance[c*side*side+at] = float32(v) / 255
				}
			}
			name := fmt.Sprintf("%d-%d.png", n, i)
			f, err := os.Create(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if err := png.Encode(f, picture); err != nil {
				t.Fatal(err)
			}
			b.Images, b.Instances = append(b.Images, name), append(b.Instances, instance)
		}
		bags = append(bags, b)
	}
	comparePage(t, dir, bags, sizes)
}

// The page predicts with model files of earlier versions what these versions predicted.
func TestPageOpensPromisedModels(t *testing.T) {
	for _, path := range testsupport.GoldenModels(t) {
		model, err := runtime.Open(path, runtime.WithLibrary(enginetest.Library(t)))
		if err != nil {
			t.Fatal(err)
		}
		info := model.Info()
		if err := model.Close(); err != nil {
			t.Error(err)
		}
		if info.Contract != contract.ContractBag { // the page sends one bag
			continue
		}
		dir := testsupport.PageFolder(t)
		if err := os.CopyFS(dir, os.DirFS(filepath.Dir(path))); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, filepath.Base(path)), runs.ModelPath(dir)); err != nil {
			t.Fatal(err)
		}
		var bags []want
		var sizes []int
		for _, p := range testsupport.GoldenPredictions(t, path) {
			bags = append(bags, want{Instances: testsupport.GoldenBag(p.N, ndarray.Size(info.InputShape)),
				Probabilities: p.Probabilities, Attention: p.Attention})
			sizes = append(sizes, p.N)
		}
		showPage(t, dir, bags, sizes)
	}
}

// comparePage predicts bags with the Go runtime and with the page.
func comparePage(t *testing.T, dir string, bags []want, sizes []int) {
	t.Helper()
	model, err := runtime.Open(runs.ModelPath(dir), runtime.WithLibrary(enginetest.Library(t)))
	if err != nil {
		t.Fatal(err)
	}
	defer model.Close()
	for i := range bags {
		b := &bags[i]
		var x []float32
		for _, instance := range b.Instances {
			x = append(x, instance...)
		}
		p, err := model.Predict(context.Background(), runtime.Bag{Instances: x, N: len(b.Instances)})
		if err != nil {
			t.Fatal(err)
		}
		b.Probabilities, b.Attention = p.Probabilities, p.Attention
		if b.Images != nil {
			b.Instances = nil
		}
	}
	showPage(t, dir, bags, sizes)
}

// showPage opens the page and compares its predictions with those of the bags.
func showPage(t *testing.T, dir string, bags []want, sizes []int) {
	t.Helper()
	content, err := json.Marshal(bags)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "bags.json"), content, 0o644); err != nil {
		t.Fatal(err)
	}
	out := testsupport.Page(t, "browser/index.html?report&build=../"+dir)
	lines := regexp.MustCompile(`(?m)^bag \d+ of (\d+) differs (\S+)\npage Class \d+ (\d+) $`).FindAllSubmatch(out, -1)
	if len(lines) != len(sizes) {
		t.Fatalf("%d bags are compared and shown, want %d:\n%s", len(lines), len(sizes), out)
	}
	for i, line := range lines {
		differs, err := strconv.ParseFloat(string(line[2]), 64)
		if err != nil || string(line[1]) != fmt.Sprint(sizes[i]) || string(line[3]) != fmt.Sprint(sizes[i]) ||
			!(differs < 1e-5) {
			t.Errorf("bag of %d: %s: %v", sizes[i], line[0], err)
		}
	}
}
