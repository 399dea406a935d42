// The memory of a prediction, estimated from the graph, so that a run that needs too much is refused beforehand.

package runtime

import (
	"fmt"
	"math"

	"github.com/miplc/miplc/internal/resources"
)

const (
	// smallRun is the memory below which runs are not limited individually.
	smallRun = 4 << 20

	// briefWork is the number of multiplications of a run that takes about a millisecond. Shorter
	// runs do not watch their context.
	briefWork = 1 << 21

	// largeRun is the memory of a run above which the free memory of the machine is checked.
	largeRun = 1 << 30
)

// runBytes returns the memory of a run on bags, 0 if the run is too small to count (see smallRun).
func (f *openFile) runBytes(bags []Bag) int64 {
	n := 0
	for _, b := range bags {
		n += b.N
	}
	if n <= f.small {
		return 0
	}
	if len(bags) == 1 && f.inChunks(n) {
		return f.chunked.bytes(n)
	}
	bytes, _, err := f.estimate.Run(n, len(bags))
	if err != nil { // Open has followed the shapes for one instance
		return math.MaxInt64
	}
	return bytes
}

// checkMemory rejects a prediction that needs more memory than allowed.
func (o *options) checkMemory(bytes int64) error {
	budget := resources.Budget{Bytes: float64(o.maxMemory), Bound: "the limit of a run"}
	if o.maxMemory == 0 {
		if bytes <= largeRun {
			return nil
		}
		budget = resources.Memory()
	}
	if err := budget.Check("the prediction", float64(bytes), "use a smaller bag or model"); err != nil {
		return fmt.Errorf("%w: %w", ErrTooLarge, err)
	}
	return nil
}

// RunBytes returns an upper bound of the memory in bytes for predicting bags, from the shapes in
// the graph: the memory of the largest run. It is 0 for small runs.
func (m *Model) RunBytes(bags []Bag) (bytes int64) {
	f, err := m.acquire()
	if err != nil {
		return 0
	}
	defer f.using.RUnlock()
	for len(bags) > 0 {
		n := f.bagsOfNextRun(bags)
		bytes, bags = max(bytes, f.runBytes(bags[:n])), bags[n:]
	}
	return bytes
}
