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

// Measure describes the predictions of a model in some precision for bags with known labels.
type Measure struct {
	Precision string  `json:"precision"` // "float32": the trained model
	Path      string  `json:"path,omitempty"`
	Bytes     int     `json:"bytes"`
	Accuracy  float64 `json:"accuracy"`  // share of correctly predicted bags
	Agreement float64 `json:"agreement"` // share of bags with the same prediction as in float32
	Largest   float64 `json:"largest"`   // largest difference of a probability from float32
	Median    float64 `json:"median_us"` // microseconds per prediction
}

// CompactOptions are the options of Compact.
type CompactOptions struct {
	Paths   map[string]string // path of each form, by its name
	Bags    *data.Dataset     // the bags with a label are predicted
	MaxLoss float64           // maximum loss of accuracy, as a share of the bags
	Library string            // path of onnxruntime
}

// Compact writes smaller models and measures the effect on bags. If a form loses more accuracy than
// allowed, Compact returns no files and an error with the figures. The first measure is that of the
// original model. Latencies are measured on this machine with one thread and one bag at a time.
func (m *Deployment) Compact(ctx context.Context, o CompactOptions) ([]Measure, []File, error) {
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

// measured predicts all bags with known labels and compares the predictions with those in float32,
// unless want is nil.
func measured(ctx context.Context, precision string, content []byte, want []runtime.Prediction, o CompactOptions) (Measure, []runtime.Prediction, error) {
	r := Measure{Precision: precision, Bytes: len(content)}
	model, err := runtime.OpenBytes(content, runtime.WithLibrary(o.Library))
	if err != nil {
		return r, nil, fmt.Errorf("the model in %s: %w", precision, err)
	}
	defer model.Close()
	labels, err := o.Bags.TrueMasksIn(model.Info().Classes)
	if err != nil {
		return r, nil, err
	}
	var made []runtime.Prediction
	var times []time.Duration
	right, same := 0, 0
	for i, known := range labels {
		if known == nil {
			continue
		}
		x, err := o.Bags.Bag(i)
		if err != nil {
			return r, nil, err
		}
		bag := runtime.Bag{Instances: x, N: o.Bags.Size(i)}
		var p runtime.Prediction
		for range 3 { // the first run of a size allocates memory
			start := time.Now()
			if p, err = model.Predict(ctx, bag); err != nil {
				return r, nil, fmt.Errorf("%s: bag %d: %w", o.Bags.Name, i+1, err)
			}
			times = append(times, time.Since(start))
		}
		predicted := p.Predicted()
		if slices.Equal(predicted, indices(known)) {
			right++
		}
		if want == nil || slices.Equal(want[len(made)].Predicted(), predicted) {
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

// indices returns the classes of a vector of labels in ascending order.
func indices(labels []uint8) []int {
	list := []int{}
	for c, in := range labels {
		if in == 1 {
			list = append(list, c)
		}
	}
	return list
}
