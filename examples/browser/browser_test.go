// Package browser_test opens the page in Chromium and compares its predictions.
package browser_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/miplc/miplc/build"
	"github.com/miplc/miplc/internal/testsupport"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/runs"
	"github.com/miplc/miplc/runtime"
	"github.com/miplc/miplc/runtime/ortlib/ortest"
)

// sizes of the bags that are compared.
var sizes = []int{1, 2, 40, 1000}

// The page predicts what the Go runtime predicts, and shows it.
func TestPagePredictsTheSame(t *testing.T) {
	python := testsupport.Python(t)
	browser, err := exec.LookPath(cmp.Or(os.Getenv("MIPLC_BROWSER"), "chromium"))
	if err != nil {
		t.Skipf("install Chromium, or name another browser by MIPLC_BROWSER: %v", err)
	}
	if _, err := os.Stat("../node_modules/onnxruntime-web"); err != nil {
		t.Skip("there is no onnxruntime-web: npm ci in the folder examples")
	}
	build, err := os.MkdirTemp(".", "build-") // the page loads it from below the folder that is served
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(build) })
	leave(t, build)
	out, err := exec.Command(python, "../serve.py", browser, "browser/index.html?build="+filepath.Base(build)+"&report").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	lines := regexp.MustCompile(`(?m)^bag \d+ of (\d+) differs (\S+)$`).FindAllSubmatch(out, -1)
	if len(lines) != len(sizes) {
		t.Fatalf("%d bags are compared, want %d:\n%s", len(lines), len(sizes), out)
	}
	for i, line := range lines {
		differs, err := strconv.ParseFloat(string(line[2]), 64)
		if err != nil || string(line[1]) != fmt.Sprint(sizes[i]) || !(differs < 1e-5) {
			t.Errorf("%s: %v", line[0], err)
		}
	}
	if !regexp.MustCompile(`(?m)^page Class \d 1 $`).Match(out) {
		t.Errorf("the page does not show the first bag:\n%s", out)
	}
}

// leave writes a model and bags with the predictions of the Go runtime.
func leave(t *testing.T, dir string) {
	spec, err := language.Load("quickstart")
	if err != nil {
		t.Fatal(err)
	}
	library := ortest.Library(t)
	if _, err := build.Build(build.Options{Spec: spec, Dir: dir, Library: library}); err != nil {
		t.Fatal(err)
	}
	model, err := runtime.Open(runs.ModelPath(dir), runtime.WithLibrary(library))
	if err != nil {
		t.Fatal(err)
	}
	defer model.Close()
	type tensor struct {
		Shape []int     `json:"shape"`
		Data  []float32 `json:"data"`
	}
	random := rand.New(rand.NewPCG(1, 1))
	var bags []map[string]tensor
	for _, n := range sizes {
		x := make([]float32, 20*n)
		for i := range x {
			x[i] = float32(random.NormFloat64())
		}
		p, err := model.Predict(context.Background(), runtime.Bag{Instances: x, N: n})
		if err != nil {
			t.Fatal(err)
		}
		bags = append(bags, map[string]tensor{
			"instances":     {[]int{n, 20}, x},
			"probabilities": {[]int{1, len(p.Probabilities)}, p.Probabilities},
			"attention":     {[]int{1, n}, p.Attention},
		})
	}
	content, err := json.Marshal(bags)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "bags.json"), content, 0o644); err != nil {
		t.Fatal(err)
	}
}
