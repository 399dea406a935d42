package runs

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/miplc/miplc/data/bagfile"
	"github.com/miplc/miplc/export/contract"
	"github.com/miplc/miplc/internal/onnxpb"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/language/spectest"
	"github.com/miplc/miplc/measure"
	"github.com/miplc/miplc/prepare"
	"github.com/miplc/miplc/runtime"
	"github.com/miplc/miplc/runtime/ortlib/ortest"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/engines"
	"github.com/miplc/miplc/verify"
)

// ofFile counts what a model file gets right, bag by bag.
func ofFile(t *testing.T, dir string, trial *train.Trial, bags []int) float64 {
	t.Helper()
	model, err := runtime.Open(ModelPath(dir))
	if err != nil {
		t.Fatal(err)
	}
	defer model.Close()
	right := 0
	for _, bag := range bags {
		x, err := trial.Data.Bag(bag)
		if err != nil {
			t.Fatal(err)
		}
		p, err := model.Predict(context.Background(), runtime.Bag{Instances: x, N: trial.Data.Size(bag)})
		if err != nil {
			t.Fatal(err)
		}
		if p.Label == trial.Data.Labels[bag] {
			right++
		}
	}
	return float64(right) / float64(len(bags))
}

// The accuracies of a run are those of its file, whatever trained it.
func TestAccuracyIsThatOfTheFile(t *testing.T) {
	t.Parallel()
	library := ortest.Library(t)
	for seed := range uint64(40) {
		spec, err := language.Parse(fmt.Sprintf("random%d.yaml", seed), []byte(spectest.Random(seed)))
		if err != nil {
			t.Fatal(err)
		}
		trials, err := prepare.Trials([]*language.Spec{spec}, bagfile.Folder{})
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		engine := []string{engines.ORT, engines.Gorgonia}[seed%2]
		r, err := Train(context.Background(), trials, Options{Dir: dir, Version: "test", Request: engines.Request{Library: library, Engine: engine}})
		if err != nil {
			t.Fatalf("random%d: %v", seed, err)
		}
		s, trial := r.Runs[0], trials[0]
		for _, part := range []struct {
			name string
			said *float64
			bags []int
		}{{"training", s.TrainAccuracy, trial.Split.Train}, {"test", s.Accuracy, trial.Split.Test}} {
			if want := ofFile(t, dir, trial, part.bags); part.said == nil || *part.said != want {
				t.Errorf("random%d on %s: accuracy on the %s bags %v, the file has %g", seed, engine, part.name, part.said, want)
			}
		}
	}
}

// An engine that is wrong about its accuracy is not believed, with a file and
// without one, and whatever is there to run the model.
func TestAccuraciesOfTheEngineAreReplaced(t *testing.T) {
	spec := load(t, "quickstart", "train.epochs=3")
	trials, err := prepare.Trials([]*language.Spec{spec}, bagfile.Folder{})
	if err != nil {
		t.Fatal(err)
	}
	trial := trials[0]
	trainers := engines.NewTrainers(engines.Request{Engine: engines.Gorgonia})
	defer trainers.Close()
	report, err := train.One(context.Background(), trainers, trial, train.Options{})
	if err != nil {
		t.Fatal(err)
	}
	logLoss := report.Measures.Test()[measure.LogLoss]
	want, confusion := *report.TestAccuracy, fmt.Sprint(report.Detail.Confusion)
	spoil := func() {
		wrong := 2.0
		report.TestAccuracy, report.TrainAccuracy, report.Detail, report.Measures = &wrong, nil, nil, nil
	}
	hold := func(how string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", how, err)
		}
		if *report.TestAccuracy != want || report.TrainAccuracy == nil || fmt.Sprint(report.Detail.Confusion) != confusion {
			t.Errorf("%s: accuracy %g, want %g; confusion %v", how, *report.TestAccuracy, want, report.Detail.Confusion)
		}
		if v := report.Measures.Test()[measure.LogLoss]; math.Abs(v-logLoss) > 1e-4 || v == 0 {
			t.Errorf("%s: log loss %g, want %g", how, v, logLoss)
		}
	}
	spoil()
	dir := t.TempDir()
	_, err = Keep(context.Background(), dir, t.TempDir(), trial, report, train.EngineInfo{}, ortest.Library(t), "test")
	hold("with a file", err)
	spoil()
	by, err := MeasureExported(context.Background(), trial, report, ortest.Library(t))
	hold("in "+by, err)
	m, err := modelOf(context.Background(), trial, report, "", "")
	if err != nil {
		t.Fatal(err)
	}
	for backend, want := range map[string]string{contract.BackendORT: "", contract.BackendONNXGo: contract.BackendONNXGo, "another": "interpreter"} {
		content, interpreter := writtenFor(t, m, backend)
		if want != "" {
			spoil()
			by, err = verify.Measure(context.Background(), trial, report, content, "", interpreter)
			hold("in "+by, err)
			if by != want {
				t.Errorf("a file for %s is measured with %s", backend, by)
			}
		}
		if backend != contract.BackendORT {
			continue
		}
		if by, err := verify.Measure(context.Background(), trial, report, content, t.TempDir(), interpreter); err == nil {
			t.Errorf("a named library that does not exist: measured with %s", by)
		}
		if by, err := verify.Measure(context.Background(), trial, report, damaged(t, content), "", interpreter); err == nil {
			t.Errorf("a file that onnxruntime refuses: measured with %s", by)
		}
	}
}

// writtenFor returns the file of a model that names one back end.
func writtenFor(t *testing.T, m *model, backend string) ([]byte, verify.PredictFunc) {
	t.Helper()
	content, interpreter, err := m.alone()
	if err != nil {
		t.Fatal(err)
	}
	return changed(t, content, func(pb *onnxpb.ModelProto) {
		meta, err := contract.Get(pb)
		if err != nil {
			t.Fatal(err)
		}
		meta.Backends = []string{backend}
		if err := meta.Put(pb); err != nil {
			t.Fatal(err)
		}
	}), interpreter
}

// damaged returns a model file with an op that no back end has.
func damaged(t *testing.T, content []byte) []byte {
	t.Helper()
	return changed(t, content, func(pb *onnxpb.ModelProto) { pb.Graph.Node[0].OpType = "NoSuchOp" })
}

func changed(t *testing.T, content []byte, change func(*onnxpb.ModelProto)) []byte {
	t.Helper()
	pb, err := onnxpb.ReadBytes(content)
	if err != nil {
		t.Fatal(err)
	}
	change(pb)
	content, err = onnxpb.Marshal(pb)
	if err != nil {
		t.Fatal(err)
	}
	return content
}
