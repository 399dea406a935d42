// Bags: the input of a prediction, and the reasons for which one is refused.

package runtime

import (
	"errors"
	"fmt"

	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/ndarray"
)

// Reasons why a bag cannot be predicted; test with errors.Is.
var (
	ErrEmptyBag  = errors.New("the bag has no instances")
	ErrBagShape  = errors.New("the bag does not have the shape that the model needs")
	ErrNotFinite = errors.New("not a finite number")
	ErrTooLarge  = errors.New("the bag is too large")
)

// Bag is one sample: n instances of equal shape.
type Bag struct {
	Instances []float32 // [n, ...] row-major raw features: d values per instance, n*d in total
	N         int       // instances
}

// NewBag copies instances into a bag. All must have the same length.
func NewBag(instances [][]float32) (Bag, error) {
	if len(instances) == 0 {
		return Bag{}, ErrEmptyBag
	}
	d := len(instances[0])
	flat := make([]float32, 0, d*len(instances))
	for i, x := range instances {
		if len(x) != d {
			return Bag{}, fmt.Errorf("%w: instance %d of %d has %d values, the first has %d", ErrBagShape, i+1, len(instances),
				len(x), d)
		}
		flat = append(flat, x...)
	}
	return Bag{Instances: flat, N: len(instances)}, nil
}

// check reports why the file cannot predict a bag. Back ends get only bags that pass it.
func (f *openFile) check(b Bag) error {
	shape := f.info.InputShape
	d := ndarray.Size(shape)
	switch {
	case b.N == 0 && len(b.Instances) > 0:
		return fmt.Errorf("%w: it has %d values but N is 0; set N to the number of instances", ErrBagShape, len(b.Instances))
	case b.N > 0 && len(b.Instances) > 0 && len(b.Instances)%b.N == 0 && len(b.Instances)/b.N != d:
		return fmt.Errorf("%w: its instances have %s, the model needs %d (shape %v)",
			ErrBagShape, diag.Count(len(b.Instances)/b.N, "value"), d, shape)
	case b.N > 0 && (len(b.Instances)%b.N != 0 || len(b.Instances)/b.N != d):
		return fmt.Errorf("%w: %s for %s, the model needs %d per instance (shape %v)",
			ErrBagShape, diag.Count(len(b.Instances), "value"), diag.Count(b.N, "instance"), d, shape)
	}
	if err := f.checkCount(b.N); err != nil {
		return err
	}
	return notFinite(b.Instances, d, 0)
}

// notFinite reports NaN and infinities in x, instances of d values, of which the first has number
// from.
func notFinite(x []float32, d, from int) error {
	if i := ndarray.FirstNotFinite(x); i >= 0 {
		return fmt.Errorf("feature %d of instance %d is %v: %w", i%d+1, from+i/d+1, x[i], ErrNotFinite)
	}
	return nil
}
