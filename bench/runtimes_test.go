// Models of miplc in runtimes that miplc does not use.

package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/testkit/enginetest"
	"github.com/miplc/miplc/internal/testkit/testsupport"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/runs"
	"github.com/miplc/miplc/runs/build"
	"github.com/miplc/miplc/runtime"
)

// keep is used by run.sh, which prints a table of the results of all runtimes.
var keep = flag.String("keep", "", "folder in which the models, bags and report are kept")

// tolerance is the largest accepted difference from the predictions and losses of miplc. Other
// runtimes compute in float32 with other kernels.
const tolerance = 2e-5

// generated changes a shipped spec that reads a file to use generated bags.
func generated(spec, instance string, features int) string {
	return fmt.Sprintf(`name: %[1]s
extends: %[1]s
data:
  set: generated:prototypes
  generated: {bags: 20, classes: 3, features: %[3]d, min_size: 3, max_size: 6}
  shape: %[2]s
  classes: 3
`, spec, instance, features)
}

// models are shipped specs, or the text of specs: every block, every form of attention and pooling,
// images, and overlapping windows.
var models = map[string]string{
	"quickstart":       "",
	"demipl-equations": generated("demipl-equations", "[9]", 9),
	"proden-maxmin":    generated("proden-maxmin", "[9]", 9),
	"rc-mean-mlp":      generated("rc-mean-mlp", "[9]", 9),
	"elimipl":          generated("elimipl", "[9]", 9),
	"miplma":           generated("miplma", "[9]", 9),
	"demipl-image":     generated("demipl-image", "[1, 28, 28]", 784),
	"overlap": generated("demipl-image", "[1, 12, 12]", 144) + `model:
  blocks:
    - conv2d: {channels: 3, kernel: 3}
    - maxpool2d: {kernel: 3, stride: 2}
    - flatten
    - attention: disambiguation
    - pool: attention
    - classifier: softmax
`,
}

// value is a tensor in bags.json.
type value struct {
	Shape []int     `json:"shape"`
	Data  []float32 `json:"data"`
}

// answer is the result of one runtime for a file.
type answer struct {
	Difference float64 `json:"difference"`
	Error      string  `json:"error"`
}

type report map[string]struct {
	Version   string            `json:"version"`
	Missing   string            `json:"missing"`
	Model     map[string]answer `json:"model"`
	TrainStep map[string]answer `json:"train_step"`
}

// All runtimes compute the same from the files of miplc.
func TestForeignRuntimes(t *testing.T) {
	python := testsupport.Python(t, "numpy", "onnx")
	dir := *keep
	if dir == "" {
		dir = t.TempDir()
	}
	file := filepath.Join(dir, "report.json")
	args := []string{"runtimes/foreign.py", file}
	for name, text := range models {
		build := filepath.Join(dir, name)
		leave(t, build, name, text)
		args = append(args, build)
	}
	slices.Sort(args[2:])
	if out, err := exec.Command(python, args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all report
	if err := json.Unmarshal(content, &all); err != nil {
		t.Fatalf("%v\n%s", err, content)
	}
	agree(t, all)
}

// limits are errors of runtimes on training steps that docs/runtimes.md states: tract convolves only with kernels whose
// size is known, and the gradient of a convolution has one for each instance.
var limits = map[string]string{"tract": "Expect concrete shape for kernel"}

// agree fails the test for each installed runtime with different results.
func agree(t *testing.T, all report) {
	for name, r := range all {
		t.Run(name, func(t *testing.T) {
			if r.Missing != "" {
				t.Skipf("%s: pip install -r bench/runtimes/requirements.txt", r.Missing)
			}
			for file, answers := range map[string]map[string]answer{runs.ModelFile: r.Model, build.TrainStepFile: r.TrainStep} {
				for model, a := range answers {
					if known := limits[name]; known != "" && file == build.TrainStepFile && strings.Contains(a.Error, known) {
						continue
					}
					if a.Error != "" || a.Difference > tolerance {
						t.Errorf("%s of %s: %s differs by %.1e: %s", file, model, r.Version, a.Difference, a.Error)
					}
				}
			}
		})
	}
}

// leave builds a model and writes predictions for some bags.
func leave(t *testing.T, dir, name, text string) {
	t.Helper()
	if text != "" {
		file := filepath.Join(t.TempDir(), name+".yaml")
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		name = file
	}
	spec, err := language.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	library := enginetest.Library(t)
	_, err = build.Run(context.Background(), build.Task{Spec: spec, Dir: dir, SampleSteps: 2})
	if err != nil {
		t.Fatal(err)
	}
	model, err := runtime.Open(filepath.Join(dir, runs.ModelFile), runtime.WithLibrary(library))
	if err != nil {
		t.Fatal(err)
	}
	defer model.Close()
	content, err := json.Marshal(predicted(t, model))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "bags.json"), content, 0o644); err != nil {
		t.Fatal(err)
	}
}

func predicted(t *testing.T, model *runtime.Model) []map[string]value {
	shape := model.Info().InputShape
	random := rand.New(rand.NewPCG(1, 2))
	var bags []map[string]value
	for _, n := range []int{1, 2, 40} {
		instances := make([][]float32, n)
		x := value{Shape: append([]int{n}, shape...)}
		for i := range instances {
			instances[i] = make([]float32, ndarray.Size(shape))
			for j := range instances[i] {
				instances[i][j] = float32(random.NormFloat64())
			}
			x.Data = append(x.Data, instances[i]...)
		}
		bag, err := runtime.NewBag(instances)
		if err != nil {
			t.Fatal(err)
		}
		p, err := model.Predict(context.Background(), bag)
		if err != nil {
			t.Fatal(err)
		}
		bags = append(bags, map[string]value{"instances": x,
			"probabilities": {[]int{1, len(p.Probabilities)}, p.Probabilities},
			"attention":     {[]int{1, n}, p.Attention},
		})
	}
	return bags
}

// foreign.py supports exactly the pinned packages, and .ci/run pins the same versions.
func TestRequirements(t *testing.T) {
	var texts []string
	for _, file := range []string{"runtimes/requirements.txt", "runtimes/foreign.py", "../.ci/python/requirements.txt"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	pins, script, checked := texts[0], texts[1], "\n"+texts[2]
	for _, line := range strings.Fields(pins) {
		name, _, pinned := strings.Cut(line, "==")
		if !pinned || name != "numpy" && !strings.Contains(script, `"`+name+`"`) {
			t.Errorf("%s is not pinned or not used", line)
		}
		if strings.Contains(checked, "\n"+name+"==") && !strings.Contains(checked, "\n"+line+" ") {
			t.Errorf(".ci/run has another version than %s", line)
		}
	}
}
