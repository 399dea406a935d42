// Does work fit into memory? The estimates are made before anything is allocated.

package runs

import (
	"slices"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/internal/memory"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/runs/parity"
)

// All estimates are lower bounds, so that no work is rejected that fits. With 52 million parameters, a run that
// trains, exports and checks its model has 25 copies of them in memory with engine ort and 26 with gorgonia, a build
// 20. Four engines that predict bags of features had 4.9 to 5.6 values per feature, and 10.7 peaks of a prediction.
const (
	floatBytes       = 4
	parameterCopies  = 14 // besides those of peaks
	peaksPerStep     = 2  // the values and their gradients
	peaksPerEngine   = 2
	valuesPerFeature = 4
)

// checkMemory returns an error if work with the parameters of a program and with other values needs more memory than
// is available. p is nil if the program is unknown.
func checkMemory(work string, p *compile.Program, values float64, advice string) error {
	if p != nil {
		values += parameterCopies * float64(p.FlatSize())
	}
	return memory.Available().Check(work, floatBytes*values, advice)
}

// checkStep returns an error if training steps of a size need more memory than is available.
func checkStep(work string, p *compile.Program, at stepSize) error {
	return checkMemory(work+" "+p.Spec.Name.V, p, peaksPerStep*p.Train.Peak(at.instances, at.bags),
		"use a smaller model or smaller batches")
}

// checkComparison returns an error if bags are too large for engines that predict in parallel. p is nil
// if only the model file is known.
func checkComparison(engines int, o parity.Comparison, p *compile.Program) error {
	n := slices.Max(o.Sizes)
	values := valuesPerFeature * float64(n) * float64(ndarray.Size(o.Instance))
	if p != nil {
		values = max(values, peaksPerEngine*p.Infer.Peak(n, 1))
	}
	return checkMemory("comparing the engines", p, float64(engines)*values, "use smaller bags (--sizes)")
}

// stepSize is the size of a training step.
type stepSize struct{ instances, bags int }

// stepOf returns the size of a training step on bags of mean size: the batch of the spec, but at
// most the number of bags, and one bag for images. set is nil if the bags are unknown.
func stepOf(p *compile.Program, set *data.Dataset) stepSize {
	if set == nil {
		return stepSize{1, 1}
	}
	at := max(1, min(p.Spec.Train.Batch.V, set.Bags()))
	if len(p.Signature.Instance) > 1 {
		at = 1
	}
	mean := float64(set.Offsets[set.Bags()]) / float64(max(1, set.Bags()))
	largest := set.MaxInstances(set.AllBags(), 1)
	if n := p.Spec.Data.Sample.V; n > 0 {
		mean, largest = min(mean, float64(n)), min(largest, n)
	}
	return stepSize{max(1, largest+int(mean*float64(at-1))), at}
}
