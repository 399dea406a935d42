// The figures of a run are well-formed and reproducible, also for one epoch, diverged losses and unusual class names.

package plot

import (
	"bytes"
	"flag"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/miplc/miplc/data/measure"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/testkit/testsupport"
	"github.com/miplc/miplc/train"
)

var keep = flag.String("keep", "", "directory that gets the figures of the tests, to look at")

func share(v float64) *float64 { return &v }

// run returns the records of a made-up run that learns, over the given number of epochs.
func run(epochs int) (metrics []train.Metrics, snapshots []train.AttentionSnapshot, bags []train.Trajectory) {
	r := ndarray.NewStream(1, "figure")
	for e := 1; e <= epochs; e++ {
		at := float64(e) / float64(epochs)
		m := train.Metrics{Epoch: e, Loss: 1.6*math.Exp(-4*at) + 0.05*r.Float64(),
			Measures: train.Measures{
				"train": {"accuracy": 1 - 0.75*math.Exp(-6*at)}, "test": {"accuracy": 0.95 - 0.7*math.Exp(-5*at) +
					0.02*r.Float64()}},
			Disambiguation: share(1 - 0.5*math.Exp(-3*at))}
		metrics = append(metrics, m)
	}
	for i, epoch := range []int{1, (epochs + 1) / 2, epochs} {
		s := train.AttentionSnapshot{Epoch: epoch}
		for range 4000 {
			s.Test.Negative = append(s.Test.Negative, float32(1/(1+math.Exp(float64(i)*2.5+(1-0.5*float64(i))*r.NormFloat64()))))
		}
		for range 400 {
			s.Test.Positive = append(s.Test.Positive, float32(1/(1+math.Exp(-float64(i)*2+0.8*r.NormFloat64()))))
		}
		snapshots = append(snapshots, s)
	}
	for i := range 6 {
		bag := train.Trajectory{Bag: 3 + 17*i, Label: i % 5, Candidates: []int{i % 5, (i + 1) % 5, (i + 3) % 5}}
		if i == 5 {
			bag.Label = -1
		}
		for e := range epochs + 1 {
			true1 := 1 - 2.0/3*math.Exp(-float64(e)/float64(epochs)*(2+float64(i)))
			row := make([]float32, 5)
			row[i%5], row[(i+1)%5], row[(i+3)%5] = float32(true1), float32((1-true1)*0.7), float32((1-true1)*0.3)
			bag.Weights = append(bag.Weights, row)
		}
		bags = append(bags, bag)
	}
	return metrics, snapshots, bags
}

func figures(epochs int) map[string]func() []byte {
	metrics, snapshots, bags := run(epochs)
	digits := []string{"0", "2", "4", "6", "8"}
	matrix := [][]int{{28, 1, 0, 0, 1}, {0, 25, 3, 0, 2}, {0, 0, 31, 0, 0}, {1, 0, 0, 29, 0}, {4, 0, 12, 0, 13}}
	birds := []string{"Brown Creeper", "Winter Wren", "Pacific-slope Flycatcher", "Red-breasted Nuthatch",
		"Dark-eyed Junco",
		"Olive-sided Flycatcher", "Hermit Thrush", "Chestnut-backed Chickadee", "Varied Thrush", "Hermit Warbler",
		"Swainson's Thrush", "Hammond's Flycatcher", "Western Tanager"}
	wide := make([][]int, len(birds))
	for i := range wide {
		wide[i] = make([]int, len(birds))
		wide[i][i], wide[i][(i*5+3)%13] = 20+i, wide[i][(i*5+3)%13]+i
	}
	var many [][]int
	var numbers []string
	for i := range 25 {
		numbers = append(numbers, strconv.Itoa(i))
		row := make([]int, 25)
		row[i], row[(i+7)%25] = 15, 3
		many = append(many, row)
	}
	var judged measure.Predictions
	r := ndarray.NewStream(1, "reliability")
	for range 200 {
		p := float32(0.5 + 0.5*r.Float64())
		judged.Add([]float32{p, 1 - p}, [][]uint8{{1, 0}, {0, 1}}[int(r.Float64()*1.4)], nil)
	}
	bins := judged.Detail([]string{"a", "b"}).Reliability
	unlabeled := []train.AttentionSnapshot{{Epoch: 1, Train: train.Scores{Unknown: snapshots[0].Test.Positive}}}
	return map[string]func() []byte{
		"loss": func() []byte { return LossAccuracy("DEMIPL on MNIST-MIPL, r = 1", metrics) },
		"loss-only": func() []byte {
			return LossAccuracy("Without labels", []train.Metrics{{Epoch: 1, Loss: 2}, {Epoch: 2, Loss: 1}})
		},
		"attention": func() []byte {
			return AttentionSnapshots("Attention scores of the test bags",
				snapshots)
		},
		"attention-1": func() []byte { return AttentionSnapshots("Attention scores", unlabeled) },
		"trajectories": func() []byte {
			return WeightTrajectories("Label weights of six training bags", bags, digits)
		},
		"trajectory":   func() []byte { return WeightTrajectories("Label weights", bags[:1], digits) },
		"confusion":    func() []byte { return Confusion("Confusion of the test bags", matrix, digits) },
		"confusion-13": func() []byte { return Confusion("Confusion of the test bags", wide, birds) },
		"reliability":  func() []byte { return Reliability("Calibration of the test bags", bins) },
		"confusion-25": func() []byte { return Confusion("Confusion of the test bags", many, numbers) },
	}
}

// The figures are well-formed and reproducible and contain the expected words.
func TestFigures(t *testing.T) {
	words := map[string][]string{
		"loss":         {"DEMIPL on MNIST-MIPL, r = 1", ">epoch<", ">loss<", ">accuracy<", ">of test bags<", ">100<"},
		"attention":    {">positive instances<", ">negative instances<", ">epoch 50<", ">0.01 %<", ">attention score<"},
		"attention-1":  {">instances, kind unknown<"},
		"trajectories": {">bag 3, true: 0<", ">true label<", ">candidate, truth unknown<", ">label weight<"},
		"confusion":    {">predicted class<", ">true class<", ">31<"},
		"reliability":  {">probability of the predicted class<", ">perfect calibration<", ">share of bags<"},
		"confusion-13": {">Pacific-slope Flycatcher<"},
	}
	checkFigures(t, func() map[string]func() []byte { return figures(100) }, words, "NaN", "Inf")
}

// checkFigures draws the figures twice. It checks that they are well-formed, contain the expected
// words and none of the wrong ones, and are reproducible.
func checkFigures(t *testing.T, figures func() map[string]func() []byte, words map[string][]string,
	wrong ...string) {
	t.Helper()
	second := figures()
	for name, draw := range figures() {
		svg := draw()
		if !bytes.Equal(svg, second[name]()) {
			t.Errorf("%s differs from itself", name)
		}
		if err := testsupport.CheckSVG(svg); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, word := range append(words[name], "<svg") {
			if !strings.Contains(string(svg), word) {
				t.Errorf("%s lacks %q", name, word)
			}
		}
		for _, word := range wrong {
			if strings.Contains(string(svg), word) {
				t.Errorf("%s has %q", name, word)
			}
		}
		if *keep != "" {
			if err := os.WriteFile(filepath.Join(*keep, name+".svg"), svg, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// One epoch, equal values and names with special characters of XML give valid figures.
func TestEdges(t *testing.T) {
	for name, draw := range figures(1) {
		if err := testsupport.CheckSVG(draw()); err != nil {
			t.Errorf("%s of one epoch: %v", name, err)
		}
	}
	svg := Confusion("a < b & \"c\"", [][]int{{0, 0}, {0, 0}}, []string{"<x>", "&y"})
	if err := testsupport.CheckSVG(svg); err != nil {
		t.Error(err)
	}
}

// Losses that diverged, are equal or nearly equal have an axis.
func TestHugeLosses(t *testing.T) {
	for _, losses := range [][]float64{{2.894e26}, {2.894e26, 2.894e26}, {1e300, -1e300},
		{1e16, math.Nextafter(1e16, 2e16)}, {-1e30}, {1e-300, 2e-300}, {0}} {
		var metrics []train.Metrics
		for i, loss := range losses {
			metrics = append(metrics, train.Metrics{Epoch: i + 1, Loss: loss})
		}
		svg := string(LossAccuracy("", metrics))
		if err := testsupport.CheckSVG([]byte(svg)); err != nil {
			t.Errorf("%v: %v", losses, err)
		}
		if strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") {
			t.Errorf("%v: the figure contains NaN or Inf", losses)
		}
		ticks := 0 // numbers at the vertical axis, left of its line
		for _, text := range svgText.FindAllStringSubmatch(svg, -1) {
			x, _ := strconv.ParseFloat(text[1], 64)
			if tick, err := strconv.ParseFloat(text[2], 64); err == nil && x < 50 && !math.IsInf(tick, 0) {
				ticks++
			}
		}
		if ticks == 0 {
			t.Errorf("%v: the axis of the losses has no number", losses)
		}
	}
}

// svgText matches a text of a figure: its horizontal position and its characters.
var svgText = regexp.MustCompile(`(?s)<text[^>]* x="([^"]*)"[^>]*>([^<]*)</text>`)

// The scores of a test bag may not be finite after an epoch. The figure is drawn anyway.
func TestScoresThatAreNotFinite(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, scores := range [][]float32{{0.5, inf}, {-inf, 0.5}, {nan, 0.5}, {nan}, {inf}, {3e38, -3e38}} {
		svg := string(AttentionSnapshots("scores", []train.AttentionSnapshot{{Epoch: 1,
			Test: train.Scores{Positive: scores}}}))
		if strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") {
			t.Errorf("%v: the figure contains NaN or Inf", scores)
		}
	}
}

// TestLongTitles checks that the titles of adjacent panels do not overlap with long class names.
func TestLongTitles(t *testing.T) {
	name := strings.Repeat("long_class_name_", 5)
	bags := []train.Trajectory{
		{Bag: 1, Label: 0, Candidates: []int{0, 1}, Weights: [][]float32{{0.5, 0.5}, {1, 0}}},
		{Bag: 2, Label: 1, Candidates: []int{0, 1}, Weights: [][]float32{{0.5, 0.5}, {0, 1}}},
	}
	svg := string(WeightTrajectories("run", bags, []string{name, "b"}))
	if strings.Contains(svg, name) || !strings.Contains(svg, ">bag 1, true: long_class") ||
		!strings.Contains(svg, "…<") {
		t.Errorf("the title of bag 1 is not shortened:\n%s", svg)
	}
}
