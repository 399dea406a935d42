// Accuracies come from the exported model, and instances are never read in another shape than that of the model.

package runs

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/bagfile"
	"github.com/miplc/miplc/data/measure"
	"github.com/miplc/miplc/internal/contract"
	"github.com/miplc/miplc/internal/onnxpb"
	"github.com/miplc/miplc/internal/testkit/enginetest"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/runs/prepare"
	"github.com/miplc/miplc/runtime"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/engines"
)

// Accuracies and measures are those of the exported model, not those that the engine computed. They
// are the same with each back end, and with and without a file.
func TestAccuraciesAreThoseOfTheFile(t *testing.T) {
	spec, err := language.Load("quickstart", "train.epochs=3")
	if err != nil {
		t.Fatal(err)
	}
	trials, err := prepare.Trials([]*language.Spec{spec}, bagfile.Folder{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	trial := trials[0]
	trainers := engines.NewTrainers(engines.Place{Engine: engines.Gorgonia})
	defer trainers.Close()
	report, err := train.TrainOne(context.Background(), trainers, trial, train.Options{})
	if err != nil {
		t.Fatal(err)
	}
	logLoss := report.Measures.Test()[measure.LogLoss]
	want, confusion := *report.Measures.Accuracy("test"), fmt.Sprint(report.Detail.Confusion)
	report.Evaluation = train.Evaluation{} // nothing may come from there
	hold := func(how, by string, found *fileEvaluation, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", how, err)
		}
		if *found.Measures.Accuracy("test") != want || found.Measures.Accuracy("train") == nil ||
			fmt.Sprint(found.Detail.Confusion) != confusion {
			t.Errorf("%s: accuracy %g, want %g; confusion %v", how, *found.Measures.Accuracy("test"), want,
				found.Detail.Confusion)
		}
		if v := found.Measures.Test()[measure.LogLoss]; math.Abs(v-logLoss) > 1e-4 || v == 0 {
			t.Errorf("%s: log loss %g, want %g", how, v, logLoss)
		}
		if found.By != by {
			t.Errorf("%s: measured with %s, want %s", how, found.By, by)
		}
		if report.Measures != nil {
			t.Errorf("%s: the report of the training has changed", how)
		}
	}
	enginetest.Library(t)
	ctx := context.Background()
	m, err := newTrainedModel(ctx, trial, report)
	if err != nil {
		t.Fatal(err)
	}
	_, found, err := m.export(ctx, filepath.Join(t.TempDir(), "model.onnx"))
	hold("with a file", contract.BackendORT, found, err)
	found, err = m.measure(ctx)
	hold("without a file", contract.BackendORT, found, err)
	for backend, by := range map[string]string{contract.BackendORT: contract.BackendORT,
		contract.BackendONNXGo: contract.BackendONNXGo, "another": "interpreter"} {
		content := writtenFor(t, m, backend)
		found, err := m.measureFile(ctx, content)
		hold("a file for "+backend, by, found, err)
		if backend != contract.BackendORT {
			continue
		}
		if found, err := m.measureFile(ctx, damaged(t, content)); err == nil {
			t.Errorf("a file that onnxruntime refuses: measured with %s", found.By)
		}
	}
}

// Instances must not be read in another shape: two of the dataset as one of the model, or channels
// last as channels first.
func TestCheckShape(t *testing.T) {
	for _, c := range []struct {
		stored, model []int
		want          string
	}{
		{[]int{6}, []int{3}, "its instances have 6 values, the model needs 3"},
		{[]int{28, 28, 3}, []int{3, 28, 28}, "its instances have the shape [28 28 3], the model needs [3 28 28]"},
		{[]int{28, 28}, []int{1, 28, 28}, ""},
		{[]int{784}, []int{1, 28, 28}, ""},
	} {
		err := checkShape(&data.Dataset{Shape: c.stored}, c.model)
		if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, runtime.ErrBagShape) ||
			!strings.Contains(err.Error(), c.want)) {
			t.Errorf("%v for %v: %v, want %q", c.stored, c.model, err, c.want)
		}
	}
}

// writtenFor returns the file of a model that names one back end.
func writtenFor(t *testing.T, m *trainedModel, backend string) []byte {
	t.Helper()
	content, err := m.singleBagFile()
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
	})
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
