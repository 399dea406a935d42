package prepare

import (
	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/internal/memory"
)

// FloatBytes is the size of a number in the engines.
const FloatBytes = 4

// Batch is the size of a training step.
type Batch struct{ Instances, Bags int }

// batchOf returns a usual batch of so many bags: as many as the spec says, of mean size.
// Images go through bag by bag.
func batchOf(p *compile.Program, bags int, meanSize float64) Batch {
	at := max(1, min(p.Spec.Train.Batch.V, bags))
	if len(p.Signature.Instance) > 1 {
		at = 1
	}
	return Batch{max(1, int(meanSize*float64(at))), at}
}

// Copies is how often the parameters are in memory while a run trains, exports and
// checks its model in all back ends: with 52 million of them 25 times with engine
// ort and 26 times with gorgonia, a build 20 times. This leaves room for fewer.
const Copies = 16

// CheckMemory returns an error if work needs more memory than is available: copies of
// the parameters, the values of the forward pass and their gradients.
func CheckMemory(work string, p *compile.Program, b Batch) error {
	values := 2*p.Train.Peak(b.Instances, b.Bags) + (Copies-2)*float64(p.FlatSize())
	return memory.Check(work+" "+p.Spec.Name.V, FloatBytes*values)
}
