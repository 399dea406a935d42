// How a model file predicts bags of a dataset, in memory and on disk.

package runs

import (
	"context"
	"fmt"
	"math"
	goruntime "runtime"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/resources"
	"github.com/miplc/miplc/runtime"
)

// PredictBag predicts a bag, counted from 0. Bags on disk are read while the model runs, if the model
// allows it.
func PredictBag(ctx context.Context, model *runtime.Model, set *data.Dataset, bag int) (runtime.Prediction, error) {
	if err := checkShape(set, model.Info().InputShape); err != nil {
		return runtime.Prediction{}, err
	}
	if set.OnDisk() {
		return model.PredictRows(ctx, set.Size(bag), func(to []float32, from int) error {
			return set.ReadRange(to, bag, from)
		})
	}
	x, err := set.Bag(bag)
	if err != nil {
		return runtime.Prediction{}, err
	}
	return model.Predict(ctx, runtime.Bag{Instances: x, N: set.Size(bag)})
}

// checkShape returns an error if the instances of a dataset do not have the shape that a model needs.
// The runtime sees only the number of values of a bag in memory, and of a bag on disk only the number
// of instances.
func checkShape(set *data.Dataset, shape []int) error {
	switch d := ndarray.Size(shape); {
	case set.Dim() != d:
		return fmt.Errorf("%w: its instances have %s, the model needs %d (shape %v)", runtime.ErrBagShape,
			diag.Count(set.Dim(), "value"), d, shape)
	case ndarray.Transposed(set.Shape, shape):
		return fmt.Errorf("%w: its instances have the shape %v, the model needs %v: transpose the array", runtime.ErrBagShape,
			set.Shape, shape)
	}
	return nil
}

// OptionsFor returns how to open a model that predicts bags of the user, one by one if they stay on disk: a prediction
// of a large bag is faster on all cores. The caller calls undo after the last prediction.
func OptionsFor(set *data.Dataset) (options []runtime.Option, undo func()) {
	options = []runtime.Option{runtime.WithMaxInstances(math.MaxInt)}
	if !set.OnDisk() {
		return options, func() {}
	}
	options = append(options, runtime.WithLargeBags(), runtime.WithThreads(goruntime.GOMAXPROCS(0)))
	return options, resources.LimitHeapGrowth()
}
