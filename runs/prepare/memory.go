// Estimates of memory, made before anything is allocated.

package prepare

import (
	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/internal/resources"
)

// All estimates are lower bounds, so that no work is rejected that fits. With 52 million parameters, a run that
// trains, exports and checks its model has 25 copies of them in memory with an engine on the CPU, a build 20.
const (
	floatBytes      = 4
	parameterCopies = 14 // besides those of peaks
	peaksPerStep    = 2  // the values and their gradients
)

// CheckMemory returns an error if work with the parameters of a program and with other values needs more memory than
// is available. p is nil if the program is unknown.
func CheckMemory(work string, p *compile.Program, values float64, advice string) error {
	if p != nil {
		values += parameterCopies * float64(p.FlatSize())
	}
	return resources.Memory().Check(work, floatBytes*values, advice)
}

// CheckStep returns an error if training steps on bags of the mean size of a dataset need more memory than is
// available. set is nil if the bags are unknown.
func CheckStep(work string, p *compile.Program, set *data.Dataset) error {
	at := stepOf(p, set)
	return CheckMemory(work+" "+p.Spec.Name.V, p, peaksPerStep*p.Train.Peak(at.instances, at.bags),
		"use a smaller model or smaller batches")
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
