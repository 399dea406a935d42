// Does the training fit into memory? The estimate is made before anything is allocated.

package runs

import (
	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/internal/memory"
)

// floatBytes is the size of a number in the engines, in bytes.
const floatBytes = 4

// StepSize is the size of a training step.
type StepSize struct{ Instances, Bags int }

// batchOf returns the size of a training step on bags of mean size: the batch of the spec, but at
// most the number of bags, and one bag for images.
func batchOf(p *compile.Program, bags int, size bagSize) StepSize {
	at := max(1, min(p.Spec.Train.Batch.V, bags))
	if len(p.Signature.Instance) > 1 {
		at = 1
	}
	if n := p.Spec.Data.Sample.V; n > 0 {
		size = bagSize{min(size.mean, float64(n)), min(size.largest, n)}
	}
	return StepSize{max(1, size.largest+int(size.mean*float64(at-1))), at}
}

// bagSize is the number of instances of the bags of a dataset.
type bagSize struct {
	mean    float64
	largest int
}

func sizeOf(set *data.Dataset) bagSize {
	return bagSize{float64(set.Offsets[set.Bags()]) / float64(max(1, set.Bags())), set.MaxInstances(set.AllBags(), 1)}
}

// parameterCopies is how often the parameters are in memory while a run trains, exports and
// checks its model in all back ends: with 52 million of them 25 times with engine
// ort and 26 times with gorgonia, a build 20 times. This leaves room for fewer.
const parameterCopies = 16

// CheckMemory returns an error if work needs more memory than is available: copies of
// the parameters, the values of the forward pass and their gradients.
func CheckMemory(work string, p *compile.Program, b StepSize) error {
	values := 2*p.Train.Peak(b.Instances, b.Bags) + (parameterCopies-2)*float64(p.FlatSize())
	return memory.Available().Check(work+" "+p.Spec.Name.V, floatBytes*values, "use a smaller model or smaller batches")
}
