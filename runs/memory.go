package runs

import (
	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/internal/memory"
)

// floatBytes are those of a number in the engines.
const floatBytes = 4

// batch is how much goes through a training step at once.
type batch struct{ instances, bags int }

// batchOf is a usual batch of so many bags: as many as the spec says, of mean size.
// Images go through bag by bag.
func batchOf(p *compile.Program, bags int, meanSize float64) batch {
	at := max(1, min(p.Spec.Train.Batch.V, bags))
	if len(p.Signature.Instance) > 1 {
		at = 1
	}
	return batch{max(1, int(meanSize*float64(at))), at}
}

// copies is how often the parameters are in memory while a run trains, exports and
// checks its model in all back ends: with 52 million of them 25 times with engine
// ort and 26 times with gorgonia, a build 20 times. This leaves room for fewer.
const copies = 16

// runFits refuses work that takes more memory than there is: copies of the
// parameters, the values of the forward pass and their gradients.
func runFits(work string, p *compile.Program, b batch) error {
	values := 2*p.Train.Peak(b.instances, b.bags) + (copies-2)*float64(p.FlatSize())
	return memory.Check(work+" "+p.Spec.Name.V, floatBytes*values)
}

// kept is how often an engine that is compared has the peak of a prediction in
// memory: most keep every value until the end. All four together have it 10.7 times,
// as measured on bags of features; this leaves room for fewer.
const kept = 2

// comparisonFits refuses bags too large for engines that predict side by side.
func comparisonFits(p *compile.Program, sizes []int, engines int) error {
	for _, n := range sizes {
		values := kept*float64(engines)*p.Infer.Peak(n, 1) + copies*float64(p.FlatSize())
		if err := memory.Check("comparing the engines", floatBytes*values); err != nil {
			return err
		}
	}
	return nil
}
