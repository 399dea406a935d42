// The regression of the baseline has converged, equals scikit-learn's, and does not depend on the scale of the
// features.

package judge

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/generate"
	"github.com/miplc/miplc/data/imagebags"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/testkit/testsupport"
	"github.com/miplc/miplc/train"
)

var allData = flag.Bool("all", false, "compare the baseline with scikit-learn on all generated datasets (minutes)")

// regressed fits the regression of a trial, and returns it with the z-scores and scores of training and test bags.
func regressed(t *testing.T, trial *train.Trial) (r *regression, x, scores *mat.Dense) {
	t.Helper()
	s := newSample(trial, baselineValues)
	if err := s.pool(context.Background()); err != nil {
		t.Fatal(err)
	}
	r = newRegression(trial.Data, trial.Split.Train)
	scores, err := r.fit(context.Background(), s.coordinates)
	if err != nil {
		t.Fatal(err)
	}
	return r, s.coordinates, scores
}

// labelWeights returns the predictions of the candidates, [bags, classes of the regression].
func (r *regression) labelWeights(scores *mat.Dense) [][]float64 {
	n, k := r.scores.Dims()
	list := make([][]float64, n)
	for i := range list {
		list[i] = floats.AddTo(make([]float64, k), scores.RawRowView(i), r.allowed[i*k:(i+1)*k])
		all := floats.LogSumExp(list[i])
		for j, v := range list[i] {
			list[i][j] = math.Exp(v - all)
		}
	}
	return list
}

// testBags returns bags of 1 to 4 instances, whose first feature is three times the class plus noise. Each second bag
// has a false candidate.
func testBags(bags, features, classes int, scale float64) *train.Trial {
	r := ndarray.NewStream(1, "baseline")
	d := &data.Dataset{Shape: []int{features}, Classes: classes, Offsets: []int{0}}
	for bag := range bags {
		class := bag % classes
		for range 1 + r.IntN(4) {
			for j := range features {
				v := r.NormFloat64()
				if j == 0 {
					v += float64(3 * class)
				}
				d.Instances = append(d.Instances, float32(scale*v))
			}
		}
		d.Offsets, d.Labels = append(d.Offsets, len(d.Instances)/features), append(d.Labels, class)
		mask := make([]uint8, classes)
		mask[class] = 1
		if bag/classes%2 == 1 {
			mask[(class+1+r.IntN(classes-1))%classes] = 1
		}
		d.Candidates = append(d.Candidates, mask...)
	}
	all := d.AllBags()
	return &train.Trial{Data: d, Split: &data.Split{Train: all[:2*bags/3], Test: all[2*bags/3:]}}
}

// The gradient of the documented loss is zero, also with more features than bags, where other coordinates are used.
func TestRegressionHasConverged(t *testing.T) {
	for _, features := range []int{2, 40} {
		for _, classes := range []int{2, 3} {
			trial := testBags(90, features, classes, 1)
			n := len(trial.Split.Train)
			r, x, scores := regressed(t, trial)
			// At the minimum, penalty W = X' (label weights - probabilities), and the intercepts take the mean.
			residual := mat.NewDense(n, classes, nil)
			for i, weights := range r.labelWeights(scores) {
				all := floats.LogSumExp(scores.RawRowView(i))
				for j := range weights {
					residual.Set(i, j, weights[j]-math.Exp(scores.At(i, j)-all))
				}
			}
			var w, want mat.Dense
			w.Mul(x.Slice(0, n, 0, 3*features).T(), residual)
			w.Scale(1/r.penalty, &w)
			want.Mul(x, &w)
			for j := range classes {
				if sum := floats.Sum(mat.Col(nil, j, residual)); math.Abs(sum) > 1e-3 {
					t.Errorf("%d features, %d classes: the mean residual of class %d is %g", features, classes, j, sum)
				}
				intercept := scores.At(0, j) - want.At(0, j)
				for i := range trial.Data.Bags() {
					if math.Abs(scores.At(i, j)-want.At(i, j)-intercept) > 0.05 {
						t.Fatalf("%d features, %d classes, bag %d: score %g, want %g", features, classes, i, scores.At(i, j),
							want.At(i, j)+intercept)
					}
				}
			}
		}
	}
}

func TestBaselineOfTinyFeatures(t *testing.T) {
	for _, scale := range []float64{1, 1e-14, 1e-36, 1e30} {
		b, err := NewBaselines().of(context.Background(), testBags(180, 3, 3, scale))
		if err != nil || b.baseline.TestAccuracy < 0.9 {
			t.Errorf("features times %g: %+v, %v", scale, b.baseline, err)
		}
	}
}

// compared is a dataset with the results of both programs, for the Python program.
type compared struct {
	Features     int         `json:"features"`
	Offsets      []int       `json:"offsets"`
	Labels       []int       `json:"labels"`
	Candidates   [][]int     `json:"candidates"`
	Train        []int       `json:"train"`
	Test         []int       `json:"test"`
	Classes      []int       `json:"classes"` // of the columns of LabelWeights
	LabelWeights [][]float64 `json:"label_weights"`
	Instances    string      `json:"instances"` // path of float32 values
}

// The test accuracy is that of scikit-learn's LogisticRegression on the same bags with the same label weights, and
// reweighting by scikit-learn's predictions changes nothing.
func TestRegressionBesideScikitLearn(t *testing.T) {
	python := testsupport.Python(t, "numpy", "sklearn")
	for _, set := range []struct {
		name    string
		classes []string
		slow    bool
	}{{name: "prototypes"}, {"sival6-mipl", []string{"4", "16"}, false}, {name: "sival6-mipl", slow: true},
		{name: "birdsong-mipl", slow: true}, {name: "mnist-mipl", slow: true}, {name: "fmnist-mipl", slow: true}} {
		for _, r := range []int{0, 1, 3} {
			if set.slow && !*allData || !*allData && r == 3 || set.classes != nil && r > 0 {
				continue
			}
			design := generate.Design{R: &r, Classes: set.classes, Bags: 60 * len(set.classes), Seed: 1}
			if set.name != generate.PrototypeSet {
				design.Source = testsupport.Data(t, ".", "docs/paper-data.md")
			}
			d, err := generate.Synth(set.name, design)
			if err != nil {
				t.Fatal(err)
			}
			t.Run(d.Name, func(t *testing.T) { compareWithScikitLearn(t, python, d, 1) })
		}
	}
	if !*allData {
		return
	}
	for _, r := range []int{0, 1, 3} {
		d := tissue(t, r)
		t.Run(d.Name, func(t *testing.T) { compareWithScikitLearn(t, python, d, 1) })
	}
}

// tissue returns the bags that KMeansSeg makes of 2,750 tiles of five classes.
func tissue(t *testing.T, r int) *data.Dataset {
	t.Helper()
	tiles, err := filepath.Glob(filepath.Join(testsupport.Data(t, "crc/polito-tiles", "docs/studies.md"), "*.zip"))
	if err != nil {
		t.Fatal(err)
	}
	sources, err := imagebags.FindImages(tiles, imagebags.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer sources.Close()
	d, err := imagebags.Bags(t.Context(), sources, imagebags.Cutting{Generator: imagebags.DefaultKMeansSeg})
	if err != nil {
		t.Fatal(err)
	}
	if r > 0 {
		err = imagebags.AddFalseCandidates(d, r, 1)
	}
	if err != nil {
		t.Fatal(err)
	}
	d.Name = fmt.Sprintf("tissue-r%d", r)
	return d
}

// compareWithScikitLearn compares the baseline of a random split with scikit-learn's.
func compareWithScikitLearn(t *testing.T, python string, d *data.Dataset, seed uint64) {
	t.Helper()
	split, err := data.RandomSplit(d.Bags(), d.TrueLists(), data.SplitSettings{Train: 0.7, Seed: seed, Stratify: true})
	if err != nil {
		t.Fatal(err)
	}
	trial := &train.Trial{Data: d, Split: split}
	b, err := NewBaselines().of(context.Background(), trial)
	if err != nil {
		t.Fatal(err)
	}
	r, _, scores := regressed(t, trial)
	folder := t.TempDir()
	c := compared{Features: d.Dim(), Offsets: d.Offsets, Labels: d.Labels, Train: split.Train, Test: split.Test,
		Classes: r.classes, LabelWeights: r.labelWeights(scores), Instances: filepath.Join(folder, "instances")}
	for bag := range d.Bags() {
		c.Candidates = append(c.Candidates, d.CandidateList(bag))
	}
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	values, err := binary.Append(nil, binary.LittleEndian, d.Instances)
	if err != nil {
		t.Fatal(err)
	}
	input := filepath.Join(folder, "bags.json")
	if err := errors.Join(os.WriteFile(input, text, 0o600), os.WriteFile(c.Instances, values, 0o600)); err != nil {
		t.Fatal(err)
	}
	arguments := []string{filepath.Join("testdata", "regression.py"), input}
	if *allData {
		arguments = append(arguments, "all")
	}
	program := exec.Command(python, arguments...)
	// more threads are slower on small bags
	program.Env = append(os.Environ(), "OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1")
	program.Stderr = os.Stderr
	out, err := program.Output()
	if err != nil {
		t.Fatal(err)
	}
	var other struct{ Same, Again, Equal, Five float64 }
	if err := json.Unmarshal(out, &other); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Logf("| %s | %d | %.3f | %.3f | %.3f | %.3f | %.3f |", d.Name, seed, b.baseline.TestAccuracy, other.Same,
		other.Again,
		other.Five, other.Equal)
	if math.Abs(b.baseline.TestAccuracy-other.Same) > 1e-3 || math.Abs(b.baseline.TestAccuracy-other.Again) > 1e-3 {
		t.Errorf("%s, split %d: test accuracy %.4f; scikit-learn's is %.4f with the same label weights, and %.4f after it "+
			"weighted the labels again", d.Name, seed, b.baseline.TestAccuracy, other.Same, other.Again)
	}
}
