// The best epoch, early stopping and training again, also after an interruption.

package train_test

import (
	"context"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/miplc/miplc/data/measure"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/train"
)

// validated is a toy run of 12 epochs with 7 validation bags.
func validated(t *testing.T, edit func(*language.Train)) toy {
	t.Helper()
	o := toyOptions(t, func(s *language.Spec) {
		s.Train.Epochs.V, s.Train.LR.V, s.Train.Schedule.V = 12, 0.9, "constant"
		if edit != nil {
			edit(&s.Train)
		}
	})
	o.Split.Validation, o.Split.Train = o.Split.Train[:7], o.Split.Train[7:]
	return o
}

// severalLabels makes the candidates of toy bags their true labels.
func severalLabels(t *testing.T, o toy) toy {
	t.Helper()
	set, spec, p := *o.Data, *o.Program.Spec, *o.Program
	set.Multi, set.Labels = true, nil
	spec.Data.Labels.V, spec.Model.Threshold.V = language.MultiLabels, 0.3
	p.Spec = &spec
	o.Data, o.Program = &set, &p
	return o
}

// runRefit trains a single trial, twice if its spec has train.refit.
func runRefit(ctx context.Context, o toy) (*train.Report, error) {
	if o.Dir != "" {
		o.Log = filepath.Join(o.Dir, train.MetricsFile)
	}
	by := &train.StepTrainer{EngineInfo: train.EngineInfo{Engine: o.Engine}, New: o.NewEngine}
	var out train.Outcome
	train.WithRefit(ctx, by, []*train.Trial{&o.Trial}, train.Options{EveryCheckpoint: true, Resume: o.Resume,
		Observer: o.Observer}, func(_ int, of train.Outcome) { out = of })
	return out.Report, out.Err
}

// The model is that of the epoch with the best measure of the validation bags and, among equal ones, the lowest loss of
// these bags; the test bags are evaluated once.
func TestBest(t *testing.T) {
	for _, name := range language.BestMeasures {
		lower := name == train.MeasureLoss
		if i := slices.IndexFunc(measure.Table, func(m measure.Measure) bool { return m.Name == name }); i >= 0 {
			lower = measure.Table[i].Lower
		} else if !lower {
			t.Errorf("train.best accepts %s, which is not a measure", name)
		}
		options := func(edit func(*language.Train)) toy {
			if m := measure.Find(name); m != nil && !m.Fits(false) {
				return severalLabels(t, validated(t, edit))
			}
			return validated(t, edit)
		}
		r, err := run(context.Background(), options(func(s *language.Train) { s.Best.V = name }))
		if err != nil {
			t.Fatal(err)
		}
		want := r.Metrics[0]
		for _, m := range r.Metrics {
			now, before := m.Measures.Validation(), want.Measures.Validation()
			if a, b := now[name], before[name]; a < b && lower || a > b && !lower ||
				a == b && now[train.MeasureLoss] < before[train.MeasureLoss] {
				want = m
			}
			if m.Measures.Accuracy("test") != nil {
				t.Errorf("epoch %d measures the test bags", m.Epoch)
			}
		}
		if r.Best == nil || *r.Best != (train.Best{Measure: name, Value: want.Measures.Validation()[name], Epoch: want.Epoch,
			Trained: 12}) {
			t.Errorf("%s: %+v, want epoch %d with %v", name, r.Best, want.Epoch, want.Measures.Validation()[name])
		}
		if r.Measures.Accuracy("test") == nil || r.Measures.Accuracy("validation") == nil ||
			*r.Measures.Accuracy("validation") != want.Measures.Validation()[measure.Accuracy] ||
			*r.Measures.Accuracy("train") != *want.Measures.Accuracy("train") || r.Loss != want.Loss {
			t.Errorf("%s: the report is not that of epoch %d", name, want.Epoch)
		}
		until := options(nil)
		until.Until = want.Epoch
		alone, err := run(context.Background(), until)
		if err != nil || alone.Epochs != want.Epoch || !reflect.DeepEqual(alone.State.Params, r.State.Params) ||
			!reflect.DeepEqual(alone.Detail.Confusion, r.Detail.Confusion) {
			t.Errorf("%s: training for %d epochs gives a different model, %v", name, want.Epoch, err)
		}
	}
}

// The loss of validation bags is the mean of -ln of the probability of the candidate set.
func TestLossOfValidationBags(t *testing.T) {
	o := validated(t, nil)
	o.Data.Labels = nil
	r, err := run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range r.Metrics {
		inside := m.Measures.Validation()[measure.InsideCandidates]
		if loss := m.Measures.Validation()[train.MeasureLoss]; !(loss > 0) ||
			m.Measures.Validation().Get(measure.Accuracy) != nil || inside < 0 {
			t.Errorf("epoch %d: %v", m.Epoch, m.Measures.Validation())
		}
	}
	o = validated(t, nil)
	for bag, label := range o.Data.Labels { // known labels: the cross-entropy
		clear(o.Data.CandidateMask(bag))
		o.Data.CandidateMask(bag)[label] = 1
	}
	if r, err = run(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	for _, m := range r.Metrics {
		if loss, want := m.Measures.Validation()[train.MeasureLoss],
			m.Measures.Validation()[measure.LogLoss]; loss < want-1e-9 || loss > want+1e-9 {
			t.Errorf("epoch %d: loss %v of bags with one candidate, log loss %v", m.Epoch, loss, want)
		}
	}
}

// The epochs of a training with early stopping equal the first ones of the whole training.
func TestEarlyStopping(t *testing.T) {
	whole, err := run(context.Background(), validated(t, func(s *language.Train) { s.Best.V = "loss" }))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ patience, least int }{{1, 0}, {2, 0}, {3, 0}, {4, 0}, {1, 9}, {2, 12}} {
		patience, best := c.patience, 0
		for i, m := range whole.Metrics {
			if m.Measures.Validation()["loss"] < whole.Metrics[best].Measures.Validation()["loss"] {
				best = i
			}
			if i-best >= patience && i+1 >= c.least {
				break
			}
		}
		trained := min(max(best+patience+1, c.least), 12)
		r, err := run(context.Background(), validated(t, func(s *language.Train) {
			s.Best.V, s.Patience.V, s.MinEpochs.V = "loss", patience, c.least
		}))
		if err != nil {
			t.Fatal(err)
		}
		if r.Best.Epoch != best+1 || r.Best.Trained != trained || len(r.Metrics) != trained || r.Epochs != trained {
			t.Errorf("patience %d: %+v, want epoch %d of %d", patience, r.Best, best+1, trained)
		}
		for i, m := range r.Metrics {
			m.Seconds = whole.Metrics[i].Seconds
			if !reflect.DeepEqual(m, whole.Metrics[i]) {
				t.Errorf("patience %d: epoch %d differs", patience, i+1)
			}
		}
		t.Logf("patience %d: epoch %d of %d", patience, r.Best.Epoch, r.Best.Trained)
	}
}

// A run with best checkpoint, early stopping and a second training that is interrupted
// anywhere in either training and resumed ends with the same bits.
func TestResumeOfBest(t *testing.T) {
	for _, refit := range []bool{false, true} {
		settings := func(s *language.Train) {
			s.Best.V, s.Patience.V, s.Refit.V, s.Checkpoint.V = "loss", 3, refit, 2
			s.Schedule.V, s.DecayMeasure.V, s.DecayFactor.V = "plateau", "accuracy", 0.5
		}
		o := validated(t, settings)
		o.Dir = t.TempDir()
		whole, err := runRefit(context.Background(), o)
		if err != nil {
			t.Fatal(err)
		}
		if whole.Best.Refit != refit || refit && whole.Epochs != whole.Best.Epoch {
			t.Errorf("%+v after %d epochs", whole.Best, whole.Epochs)
		}
		if rates := learningRates(whole.Metrics); slices.Max(rates) == slices.Min(rates) {
			t.Errorf("the learning rates %v do not follow the validation bags", rates)
		}
		want, lines := bits(whole), linesWithoutSeconds(t, o.Dir)
		all := whole.Best.Trained
		if refit {
			all += whole.Best.Epoch
		}
		for stop := 1; stop <= all; stop++ {
			o := validated(t, settings)
			o.Dir = t.TempDir()
			ctx, cancel := context.WithCancel(context.Background())
			seen := 0
			o.Observer = &spy{epoch: func(train.Metrics) {
				if seen++; seen == stop {
					cancel()
				}
			}}
			_, _ = runRefit(ctx, o)
			cancel()
			o.Resume, o.Observer = true, nil
			r, err := runRefit(context.Background(), o)
			if err != nil {
				t.Fatal(err)
			}
			if got := bits(r); got != want || *r.Best != *whole.Best || linesWithoutSeconds(t, o.Dir) != lines {
				t.Errorf("refit %v, stopped after epoch %d of both trainings: result %+v\n%s\nwant %+v\n%s", refit, stop, r.Best,
					got, whole.Best, want)
			}
		}
	}
}

func learningRates(metrics []train.Metrics) []float64 {
	rates := make([]float64, len(metrics))
	for i, m := range metrics {
		rates[i] = m.LR
	}
	return rates
}

// The second training uses all bags except the test bags, and their statistics.
func TestRefit(t *testing.T) {
	o := validated(t, func(s *language.Train) { s.Best.V, s.Refit.V = "accuracy", true })
	r, err := runRefit(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	joined := toyOptions(t, func(s *language.Spec) { s.Train = o.Program.Spec.Train })
	joined.Until = r.Best.Epoch
	want, err := run(context.Background(), joined)
	if err != nil || !reflect.DeepEqual(r.State, want.State) ||
		*r.Measures.Accuracy("test") != *want.Measures.Accuracy("test") {
		t.Errorf("training on all bags for %d epochs gives a different model, %v", r.Best.Epoch, err)
	}
}

func TestBestErrors(t *testing.T) {
	o := validated(t, func(s *language.Train) { s.Best.V = "accuracy" })
	o.Data.Labels = nil
	if err := o.CheckValidation(); err == nil || !strings.Contains(err.Error(),
		"train.best is accuracy, which is not defined on the 7 validation bags of toy") {
		t.Error(err)
	}
	if _, err := run(context.Background(), o); err == nil ||
		!strings.Contains(err.Error(), "train.best is accuracy, which is not defined on the 7 validation bags of toy") {
		t.Error(err)
	}
	// A measure that needs two classes, on validation bags of one class.
	o = validated(t, func(s *language.Train) { s.Best.V = "auroc" })
	o.Split.Validation = o.Split.Validation[:1]
	want := "train.best is auroc, which is not defined on the 1 validation bag of toy"
	if err := o.CheckValidation(); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
	// A measure without true labels.
	o = validated(t, func(s *language.Train) { s.Best.V = "inside_candidates" })
	o.Data.Labels = nil
	if err := o.CheckValidation(); err != nil {
		t.Error(err)
	}
	o = toyOptions(t, func(s *language.Spec) { s.Train.Best.V = "loss" })
	if err := o.CheckValidation(); err == nil || !strings.Contains(err.Error(), "needs validation bags") {
		t.Error(err)
	}
}
