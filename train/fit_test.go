// Trainings learn, resume to the same bits, and stop with errors that help.

package train_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/train"
)

func TestRunLearns(t *testing.T) {
	o := toyOptions(t, func(s *language.Spec) { s.Train.Epochs.V = 30; s.Train.LR.V = 0.2 })
	watch := &spy{}
	o.Observer = watch
	r, err := run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	if *r.Measures.Accuracy("train") < 0.9 || *r.Measures.Accuracy("test") < 0.8 || *r.Disambiguation < 0.9 {
		t.Errorf("accuracies %v %v %v: the toy problem is easy", *r.Measures.Accuracy("train"), *r.Measures.Accuracy("test"),
			*r.Disambiguation)
	}
	if first := r.Metrics[0].Loss; r.Loss >= first {
		t.Errorf("loss went from %v to %v", first, r.Loss)
	}
	total := 0
	for _, row := range r.Detail.Confusion {
		for _, n := range row {
			total += n
		}
	}
	if total != len(o.Split.Test) || r.DetailOf != "test" {
		t.Errorf("confusion matrix of %s counts %d bags, want %d test bags", r.DetailOf, total, len(o.Split.Test))
	}
	if got := watch.plan; got.Steps != 6 || got.TrainBags != 21 || got.TestBags != 9 || got.Parameters != 15 ||
		got.Epochs != 30 {
		t.Errorf("plan %+v", got)
	}
	if len(watch.done) != 30 || watch.done[29].Epoch != 30 {
		t.Errorf("%d epochs observed", len(watch.done))
	}
	var epochs []int
	for _, a := range r.Attention {
		epochs = append(epochs, a.Epoch)
		if n := len(a.Test.Positive); n != 9 {
			t.Errorf("%d positive test instances, one a bag expected", n)
		}
		if len(a.Train.Unknown) != 0 {
			t.Error("labelled instances counted as unknown")
		}
	}
	if !slices.Equal(epochs, []int{1, 15, 30}) {
		t.Errorf("attention kept at epochs %v", epochs)
	}
	for _, tr := range r.Trajectories {
		if len(tr.Weights) != 31 || tr.Weights[0][tr.Label] != 0.5 {
			t.Errorf("trajectory of bag %d: %d rows from %v", tr.Bag, len(tr.Weights), tr.Weights[0])
		}
	}
	if len(r.Trajectories) != 6 {
		t.Errorf("%d trajectories", len(r.Trajectories))
	}
}

// Batches contain every training bag once per epoch, in a different order each time, normalised,
// with masks of the size of the batch.
func TestBatches(t *testing.T) {
	o := toyOptions(t, func(s *language.Spec) { s.Train.Epochs.V = 2 })
	var sizes []int
	var seen [3]map[float32]bool
	var lambdas, rates []float64
	var orders [3][]float32
	for i := range seen {
		seen[i] = map[float32]bool{}
	}
	zeros, masks := 0, 0
	o.NewEngine = func(p *compile.Program) (train.Engine, error) {
		return &toyEngine{p: p, spoil: func(b *train.Batch, _ *train.StepResult) error {
			sizes = append(sizes, b.Bags)
			if len(lambdas) < b.Epoch {
				lambdas, rates = append(lambdas, b.Lambda), append(rates, b.LR)
			}
			for i, bag := range b.BagOf {
				if i == 0 || b.BagOf[i-1] != bag {
					seen[b.Epoch][b.Instances[i*4]] = true
					orders[b.Epoch] = append(orders[b.Epoch], b.Instances[i*4])
				}
				if math.Abs(float64(b.Instances[i*4])) > 10 {
					t.Errorf("instance %v is not normalised", b.Instances[i*4])
				}
			}
			if len(b.Masks["dropout1"]) != len(b.Instances) {
				t.Errorf("mask of %d for %d", len(b.Masks["dropout1"]), len(b.Instances))
			}
			for _, m := range b.Masks["dropout1"] {
				masks++
				if m == 0 {
					zeros++
				} else if m != o.Program.Masks[0].Scale() {
					t.Fatalf("mask value %v", m)
				}
			}
			return nil
		}}, nil
	}
	if _, err := run(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	if want := []int{4, 4, 4, 4, 4, 1, 4, 4, 4, 4, 4, 1}; !slices.Equal(sizes, want) {
		t.Errorf("batch sizes %v, want %v", sizes, want)
	}
	if len(seen[1]) != 21 || len(seen[2]) != 21 {
		t.Errorf("%d and %d different bags seen", len(seen[1]), len(seen[2]))
	}
	if slices.Equal(orders[1], orders[2]) {
		t.Error("both epochs have the same order")
	}
	if share := float64(zeros) / float64(masks); share < 0.05 || share > 0.15 {
		t.Errorf("share of dropped elements %v, want about 0.1", share)
	}
	if !slices.Equal(lambdas, []float64{0.5, 0}) || rates[0] != 0.05 || math.Abs(rates[1]-0.025) > 1e-12 {
		t.Errorf("lambda %v, rates %v", lambdas, rates)
	}
}

func TestUnknownLabels(t *testing.T) {
	o := toyOptions(t, nil)
	o.Data.Labels[0], o.Data.InstLabels = -1, nil
	r, err := run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for _, row := range r.Detail.Confusion {
		for _, n := range row {
			total += n
		}
	}
	if total != 8 {
		t.Errorf("%d bags in the confusion matrix, one of 9 has no label", total)
	}
	if len(r.Attention[0].Test.Unknown) != o.Data.Offsets[9] {
		t.Error("scores of unlabelled instances are not all kept")
	}
	o.Data.Labels = nil
	if r, err = run(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	if r.Measures.Accuracy("train") != nil || r.Measures.Accuracy("test") != nil || r.Disambiguation != nil {
		t.Error("accuracies without any true label")
	}
}

// A run that was stopped after or within any epoch and resumed has the same bits and files as an
// uninterrupted one.
func TestResume(t *testing.T) {
	edit := func(every int) func(*language.Spec) {
		return func(s *language.Spec) { s.Train.Checkpoint.V, s.Train.EvalEvery.V = every, 2 }
	}
	for _, every := range []int{1, 4} {
		o := toyOptions(t, edit(every))
		o.Dir = t.TempDir()
		whole, err := run(context.Background(), o)
		if err != nil {
			t.Fatal(err)
		}
		want, wantFile, wantLines := bits(whole), readFile(t, o.Dir, train.CheckpointFile), linesWithoutSeconds(t, o.Dir)
		for stop := 1; stop <= 6; stop++ {
			for _, mid := range []int{0, 3} {
				o := toyOptions(t, edit(every))
				o.Dir = t.TempDir()
				interrupt(t, o, stop, mid)
				o.Resume = true
				r, err := run(context.Background(), o)
				if err != nil {
					t.Fatal(err)
				}
				if got := bits(r); got != want {
					t.Errorf("checkpoint every %d, stopped in epoch %d, step %d: different result\n%s\nwant\n%s", every, stop, mid,
						got, want)
				}
				if !bytes.Equal(readFile(t, o.Dir, train.CheckpointFile), wantFile) {
					t.Errorf("checkpoint every %d, stopped in epoch %d, step %d: different checkpoint", every, stop, mid)
				}
				if got := linesWithoutSeconds(t, o.Dir); got != wantLines {
					t.Errorf("metrics after resuming:\n%s\nwant\n%s", got, wantLines)
				}
			}
		}
	}
}

// With a CheckpointInterval, the epoch in which the context ends has a checkpoint, from which a
// resumed run continues to the same bits.
func TestEpochOfTheEndIsKept(t *testing.T) {
	o := toyOptions(t, nil)
	whole, err := run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	o.Dir, o.CheckpointInterval = t.TempDir(), time.Hour
	interrupt(t, o, 4, 3)
	if c, _, err := train.LoadCheckpoint(o.Dir); err != nil || c.Epoch != 4 {
		t.Fatalf("epoch %d is kept, %v", c.Epoch, err)
	}
	o.Resume, o.Observer = true, nil
	r, err := run(context.Background(), o)
	if err != nil || r.Resumed != 4 || bits(r) != bits(whole) {
		t.Errorf("resumed after epoch %d: %v\n%s\nwant\n%s", r.Resumed, err, bits(r), bits(whole))
	}
}

// interrupt runs until the end of an epoch (mid 0) or until a step in it.
func interrupt(t *testing.T, o toy, epoch, mid int) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	o.Observer = &spy{
		epoch: func(m train.Metrics) {
			if m.Epoch == epoch {
				cancel()
			}
		},
		step: func(p train.Progress) {
			if mid > 0 && p.Epoch == epoch && p.Step == mid {
				cancel()
			}
		}}
	if _, err := run(ctx, o); epoch < 6 && !errors.Is(err, context.Canceled) {
		t.Fatalf("interrupted run gives %v", err)
	}
}

func TestResumeFromTornFiles(t *testing.T) {
	o := toyOptions(t, nil)
	whole, err := run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name    string
		damage  func(content []byte) []byte
		both    bool
		resumed int
	}{
		{"empty", func([]byte) []byte { return nil }, false, 2},
		{"cut in the header", func(c []byte) []byte { return c[:40] }, false, 2},
		{"cut in the arrays", func(c []byte) []byte { return c[:len(c)-50] }, false, 2},
		{"one byte short", func(c []byte) []byte { return c[:len(c)-1] }, false, 2},
		{"zeros at the end", func(c []byte) []byte { clear(c[len(c)/2:]); return c }, false, 2},
		{"one flipped bit", func(c []byte) []byte { c[len(c)/2] ^= 1; return c }, false, 2},
		{"longer", func(c []byte) []byte { return append(c, 0) }, false, 2},
		{"both", func(c []byte) []byte { return c[:len(c)/2] }, true, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := toyOptions(t, nil)
			o.Dir = t.TempDir()
			interrupt(t, o, 3, 0)
			damageFile(t, o.Dir, train.CheckpointFile, tt.damage)
			if tt.both {
				damageFile(t, o.Dir, train.PreviousFile, tt.damage)
			}
			watch := &spy{}
			o.Resume, o.Observer = true, watch
			r, err := run(context.Background(), o)
			if tt.both {
				for _, name := range []string{train.CheckpointFile, train.PreviousFile} {
					if _, gone := os.Stat(filepath.Join(o.Dir, name)); gone != nil || err == nil ||
						!strings.Contains(err.Error(), name) {
						t.Errorf("%s: error %v, file %v", name, err, gone)
					}
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if r.Resumed != tt.resumed || bits(r) != bits(whole) {
				t.Errorf("resumed after epoch %d, want %d; same bits: %v", r.Resumed, tt.resumed, bits(r) == bits(whole))
			}
			if len(watch.warns) == 0 || !strings.Contains(watch.warns[0], train.CheckpointFile) {
				t.Errorf("warnings %q do not name the file", watch.warns)
			}
		})
	}
}

// A crash between the two renames of a save leaves only the previous file.
func TestResumeBetweenRenames(t *testing.T) {
	o := toyOptions(t, nil)
	whole, err := run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	o.Dir = t.TempDir()
	interrupt(t, o, 3, 0)
	current := filepath.Join(o.Dir, train.CheckpointFile)
	if err := os.Rename(current, filepath.Join(o.Dir, train.PreviousFile)); err != nil {
		t.Fatal(err)
	}
	o.Resume = true
	r, err := run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	if r.Resumed != 3 || bits(r) != bits(whole) {
		t.Errorf("resumed after epoch %d", r.Resumed)
	}
}

func TestResumeRefusesOthers(t *testing.T) {
	dir := t.TempDir()
	o := toyOptions(t, nil)
	o.Dir = dir
	interrupt(t, o, 2, 0)
	before := readFile(t, dir, train.CheckpointFile)
	tests := []struct {
		name string
		edit func(*toy)
	}{
		{"spec", func(o *toy) { o.Program.Spec.Train.LR.V = 0.06 }},
		{"dataset", func(o *toy) { o.Data.Instances[7]++ }},
		{"split", func(o *toy) { o.Split.Train = o.Split.Train[1:] }},
		{"engine", func(o *toy) { o.Engine = "other" }},
	}
	for _, tt := range tests {
		o := toyOptions(t, nil)
		o.Dir, o.Resume = dir, true
		tt.edit(&o)
		_, err := run(context.Background(), o)
		if err == nil || !strings.Contains(err.Error(), "belongs to another "+tt.name+" ") {
			t.Errorf("other %s: %v", tt.name, err)
		}
	}
	if !bytes.Equal(before, readFile(t, dir, train.CheckpointFile)) {
		t.Error("a refused resume changed the checkpoint")
	}
}

func TestNonFinite(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	tests := []struct {
		name  string
		spoil func(*train.Batch, *train.StepResult)
		what  string
		bags  int
	}{
		{"term", func(_ *train.Batch, r *train.StepResult) { r.Terms[1], r.Loss = inf, inf }, "loss term size became +Inf",
			4},
		{"first term of the spec", func(_ *train.Batch, r *train.StepResult) {
			r.Terms[0], r.Terms[1] = nan, nan
		}, "loss term disambiguation became NaN", 4},
		{"loss alone", func(_ *train.Batch, r *train.StepResult) { r.Loss = nan }, "the loss became NaN", 4},
		{"probability of one bag", func(_ *train.Batch, r *train.StepResult) { r.Probabilities[5] = float32(nan) },
			"a probability became NaN", 1},
		{"attention of the last bag", func(_ *train.Batch, r *train.StepResult) {
			r.Attention[len(r.Attention)-1] = float32(inf)
		}, "an attention score became +Inf", 1},
		{"weights of two bags", func(_ *train.Batch, r *train.StepResult) {
			r.LabelWeights[0], r.LabelWeights[4] = float32(nan), float32(nan)
		}, "a label weight became NaN", 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := toyOptions(t, nil)
			o.Dir = t.TempDir()
			calls := 0
			o.NewEngine = func(p *compile.Program) (train.Engine, error) {
				return &toyEngine{p: p, spoil: func(b *train.Batch, r *train.StepResult) error {
					if calls++; calls == 14 { // epoch 3, step 2
						tt.spoil(b, r)
					}
					return nil
				}}, nil
			}
			_, err := run(context.Background(), o)
			var bad *train.NonFiniteError
			if !errors.As(err, &bad) {
				t.Fatalf("no NonFiniteError but %v", err)
			}
			if bad.Epoch != 3 || bad.Step != 2 || len(bad.Bags) != tt.bags {
				t.Errorf("epoch %d, step %d, bags %v", bad.Epoch, bad.Step, bad.Bags)
			}
			for _, b := range bad.Bags {
				if b < 10 || b > 30 {
					t.Errorf("bag %d is not a training bag", b)
				}
			}
			if !strings.Contains(err.Error(), tt.what+" in epoch 3, step 2, bag") {
				t.Errorf("message %q", err)
			}
			if strings.Contains(err.Error(), "masked_softmax") != strings.Contains(tt.what, "label weight") {
				t.Errorf("the advice does not fit: %q", err)
			}
			// The checkpoint before the failure still exists.
			o.Resume = true
			r, err := run(context.Background(), o)
			if err != nil || r.Resumed != 2 {
				t.Errorf("after the failure: %v, %v", r, err)
			}
		})
	}
}

// An epoch whose last step makes parameters overflow has no checkpoint.
func TestNonFiniteParameter(t *testing.T) {
	o := toyOptions(t, nil)
	o.Dir = t.TempDir()
	calls := 0
	o.NewEngine = func(p *compile.Program) (train.Engine, error) {
		e := &toyEngine{p: p}
		e.spoil = func(*train.Batch, *train.StepResult) error {
			if calls++; calls == 12 {
				e.s.Params["bc"][1] = float32(math.Inf(-1))
			}
			return nil
		}
		return e, nil
	}
	_, err := run(context.Background(), o)
	if err == nil || !strings.Contains(err.Error(), "parameter bc became -Inf in epoch 2") {
		t.Fatalf("error %v", err)
	}
	o.Resume = true
	if r, err := run(context.Background(), o); err != nil || r.Resumed != 1 {
		t.Errorf("resume gives %v, %v", r, err)
	}
}

func TestOptionErrors(t *testing.T) {
	tests := []struct {
		edit func(*toy)
		want string
	}{
		{func(o *toy) { o.Split.Train = nil }, "no bag of toy is left for training"},
		{func(o *toy) { o.Split.Test = []int{40} }, "the split names bag 41; toy has bags 1 to 30"},
		{func(o *toy) { o.Split.Test = []int{12} }, "the split names bag 13 of toy twice"},
		{func(o *toy) { o.Program.Signature.Classes = 4 }, "toy has 3 classes, the program was compiled for 4"},
		{func(o *toy) { o.Program.Signature.Instance = []int{5} }, "have 4 features, the program was compiled for 5"},
		{func(o *toy) {
			o.NewEngine = func(*compile.Program) (train.Engine, error) { return nil, errors.New("no such engine") }
		}, "no such engine"},
	}
	for _, tt := range tests {
		o := toyOptions(t, nil)
		tt.edit(&o)
		if _, err := run(context.Background(), o); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("error %v, want %q", err, tt.want)
		}
	}
}

func TestEngineErrorNamesBags(t *testing.T) {
	o := toyOptions(t, nil)
	full := func(*train.Batch, *train.StepResult) error { return errors.New("out of memory") }
	e := &toyEngine{p: o.Program, spoil: full}
	o.NewEngine = func(*compile.Program) (train.Engine, error) { return e, nil }
	_, err := run(context.Background(), o)
	if err == nil || !strings.Contains(err.Error(), "epoch 1, step 1, bags ") ||
		!strings.Contains(err.Error(), "of toy: out of memory") {
		t.Errorf("error %v", err)
	}
	if !e.closed {
		t.Error("the engine stays open")
	}
}

func readFile(t *testing.T, dir, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func damageFile(t *testing.T, dir, name string, damage func([]byte) []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), damage(readFile(t, dir, name)), 0o644); err != nil {
		t.Fatal(err)
	}
}

func linesWithoutSeconds(t *testing.T, dir string) string {
	t.Helper()
	text := string(readFile(t, dir, train.MetricsFile))
	var lines []string
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		head, _, ok := strings.Cut(line, `,"seconds":`)
		if !ok {
			t.Fatalf("line without seconds: %s", line)
		}
		lines = append(lines, head)
	}
	return strings.Join(lines, "\n")
}
