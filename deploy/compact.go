package deploy

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/export/compact"
	"github.com/miplc/miplc/internal/onnxpb"
	"github.com/miplc/miplc/runtime"
)

// Measure is what a model in some precision does with bags whose labels are known.
type Measure struct {
	Precision string  `json:"precision"` // "float32": the model as it was trained
	Path      string  `json:"path,omitempty"`
	Bytes     int     `json:"bytes"`
	Accuracy  float64 `json:"accuracy"`  // share of the bags predicted right
	Agreement float64 `json:"agreement"` // share of the bags predicted as in float32
	Largest   float64 `json:"largest"`   // difference of a probability from float32
	Median    float64 `json:"median_us"` // microseconds of a prediction
}

// CompactOptions are one making of smaller models.
type CompactOptions struct {
	Paths   map[string]string // where each form goes, by its name
	Bags    *data.Dataset     // those with a label are predicted
	MaxLoss float64           // most accuracy that may be lost, a share of the bags
	Library string            // onnxruntime
}

// Compact makes a model smaller and measures what that costs on bags. Where a form loses
// more accuracy than it may, there is none of them: the error has the figures.
// The first measure is that of the model itself. Latencies are of this machine, one
// thread, one bag at a time.
func (m *Model) Compact(ctx context.Context, o CompactOptions) ([]Measure, []File, error) {
	original, err := onnxpb.Marshal(m.proto)
	if err != nil {
		return nil, nil, err
	}
	whole, want, err := measured(ctx, "float32", original, nil, o)
	if err != nil {
		return nil, nil, err
	}
	list, files := []Measure{whole}, []File{}
	for _, form := range compact.Forms {
		path := o.Paths[form.Name]
		if path == "" {
			continue
		}
		small, err := form.Of(m.proto)
		if err != nil {
			return nil, nil, err
		}
		content, err := onnxpb.Marshal(small)
		if err != nil {
			return nil, nil, err
		}
		made, _, err := measured(ctx, form.Name, content, want, o)
		if err != nil {
			return nil, nil, err
		}
		if lost := whole.Accuracy - made.Accuracy; lost > o.MaxLoss {
			return nil, nil, fmt.Errorf("%s: the accuracy on %s falls from %.4f to %.4f, by more than the %.4f that it may: nothing is written",
				form.Name, o.Bags.Name, whole.Accuracy, made.Accuracy, o.MaxLoss)
		}
		made.Path = path
		list, files = append(list, made), append(files, File{path, content, true})
	}
	return list, files, nil
}

// measured predicts all bags whose label is known, and compares with the predictions
// of float32, none at first.
func measured(ctx context.Context, precision string, content []byte, want []runtime.Prediction, o CompactOptions) (Measure, []runtime.Prediction, error) {
	r := Measure{Precision: precision, Bytes: len(content)}
	model, err := runtime.OpenBytes(content, runtime.WithLibrary(o.Library))
	if err != nil {
		return r, nil, fmt.Errorf("the model in %s: %w", precision, err)
	}
	defer model.Close()
	labels, err := o.Bags.LabelsIn(model.Info().Classes)
	if err != nil {
		return r, nil, err
	}
	var made []runtime.Prediction
	var times []time.Duration
	right, same := 0, 0
	for i, label := range labels {
		if label < 0 {
			continue
		}
		bag := runtime.Bag{Instances: o.Bags.Bag(i), N: o.Bags.Size(i)}
		var p runtime.Prediction
		for range 3 { // the first run of a size makes room
			start := time.Now()
			if p, err = model.Predict(ctx, bag); err != nil {
				return r, nil, fmt.Errorf("%s: bag %d: %w", o.Bags.Name, i+1, err)
			}
			times = append(times, time.Since(start))
		}
		if p.Label == label {
			right++
		}
		if want == nil || want[len(made)].Label == p.Label {
			same++
		}
		for c, v := range p.Probabilities {
			if want != nil {
				r.Largest = max(r.Largest, math.Abs(float64(v-want[len(made)].Probabilities[c])))
			}
		}
		made = append(made, p)
	}
	if len(made) == 0 {
		return r, nil, fmt.Errorf("%s has no bag whose label is known: accuracy cannot be measured on it", o.Bags.Name)
	}
	slices.Sort(times)
	r.Accuracy, r.Agreement = float64(right)/float64(len(made)), float64(same)/float64(len(made))
	r.Median = float64(times[len(times)/2].Nanoseconds()) / 1e3
	return r, made, nil
}
