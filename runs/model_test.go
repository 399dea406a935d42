// Which disagreements of engines leave out a back end, and which make the export fail.

package runs

import (
	"slices"
	"testing"

	"github.com/miplc/miplc/export"
	"github.com/miplc/miplc/internal/contract"
)

// reportOf returns a report in which the given pairs disagree.
func reportOf(far ...[2]string) *export.Agreement {
	r := &export.Agreement{Engines: []string{"interpreter", "gorgonia", "onnxruntime", "onnx-go"}}
	for i, a := range r.Engines {
		for _, b := range r.Engines[i+1:] {
			r.Pairs = append(r.Pairs, export.Pair{A: a, B: b, OK: !slices.Contains(far, [2]string{a, b})})
		}
	}
	return r
}

// A single back end that disagrees is omitted. If all back ends or the references disagree, the
// check fails.
func TestLeaveOut(t *testing.T) {
	for _, c := range []struct {
		name   string
		report *export.Agreement
		kept   []string
		ok     bool
	}{
		{"all agree", reportOf(), []string{"onnxruntime", "onnx-go"}, true},
		{"onnx-go is wrong", reportOf([2]string{"interpreter", "onnx-go"}, [2]string{"gorgonia", "onnx-go"}),
			[]string{"onnxruntime"}, true},
		{"onnxruntime is wrong", reportOf([2]string{"interpreter", "onnxruntime"}), []string{"onnx-go"}, true},
		{"the back ends are apart", reportOf([2]string{"onnxruntime", "onnx-go"}), []string{"onnxruntime"}, true},
		{"both are wrong", reportOf([2]string{"interpreter", "onnxruntime"}, [2]string{"gorgonia", "onnx-go"}),
			[]string{"onnxruntime", "onnx-go"}, false},
		{"the references are apart", reportOf([2]string{"interpreter", "gorgonia"}), []string{"onnxruntime", "onnx-go"},
			false},
	} {
		meta := &contract.Metadata{Backends: []string{"onnxruntime", "onnx-go"}}
		leaveOut(c.report, meta, []string{"interpreter", "gorgonia"})
		if !slices.Equal(meta.Backends, c.kept) || (c.report.Err() == nil) != c.ok {
			t.Errorf("%s: back ends %v, error %v", c.name, meta.Backends, c.report.Err())
		}
	}
	r := reportOf()
	r.Failed = []export.FailedEngine{{Engine: "onnx-go", Error: "does not know the op"}}
	meta := &contract.Metadata{Backends: []string{"onnxruntime", "onnx-go"}}
	if leaveOut(r, meta, []string{"interpreter"}); !slices.Equal(meta.Backends, []string{"onnxruntime"}) ||
		r.Err() != nil {
		t.Errorf("a back end that fails: %v, error %v", meta.Backends, r.Err())
	}
}
