// Package generate generates datasets: prototypes, the datasets of the paper from labelled instances, and candidate
// sets from the labels of several annotators.
package generate

import (
	"cmp"
	"math"
	"math/rand/v2"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/ndarray"
)

// PrototypeOptions are the settings of the built-in dataset generated:prototypes.
type PrototypeOptions struct {
	Bags       int     // number of bags, at least one per class
	Classes    int     // classes k
	Features   int     // dimension d of an instance
	Candidates int     // false positive labels r per bag, at most k-1
	Positives  float64 // share of positive instances in a bag; at least one instance is positive
	MinSize    int     // instances of the smallest bag
	MaxSize    int     // instances of the largest bag
	Noise      float64 // standard deviation around the prototypes
	Seed       uint64
	// Multi: a bag has several true labels, 1 to Candidates+1 with equal probability, and no
	// candidates.
	Multi bool
}

// DefaultPrototypes are the defaults of the spec language.
var DefaultPrototypes = PrototypeOptions{
	Bags: 300, Classes: 5, Features: 20, Candidates: 1, Positives: 0.2,
	MinSize: 8, MaxSize: 15, Noise: 0.5, Seed: 1,
}

// Prototypes generates bags around class prototypes. Every class has one prototype on a sphere. The
// positive instances of a bag lie around the prototype of its class. The negative instances lie
// around backgrounds that all classes share. There are more backgrounds than classes, and they are
// farther from the origin, so that the mean of a bag contains little information about its class,
// and a model needs attention to the positive instances.
func Prototypes(o PrototypeOptions) (*data.Dataset, error) {
	if err := cmp.Or(o.check(), o.CheckMemory()); err != nil {
		return nil, err
	}
	centers := ndarray.NewStream(o.Seed, "prototypes")
	classes := randomDirections(centers, o.Classes, o.Features, prototypeRadius)
	backgrounds := randomDirections(centers, backgroundsPerClass*o.Classes, o.Features, backgroundRadius)
	d := newDrawing(PrototypeSet, []int{o.Features}, o.Bags, o.Classes)
	point := make([]float32, o.Features)
	for bag, label := range bagsByClass(o.Bags, o.Classes) {
		r := ndarray.NewStream(o.Seed, "bag", uint64(bag))
		size := o.MinSize + r.IntN(o.MaxSize-o.MinSize+1)
		labels := []int{label}
		if o.Multi {
			labels = o.drawLabels(r, label, size)
		}
		positives := 0
		for _, positive := range drawPositives(r, size, max(o.Positives, float64(len(labels))/float64(size))) {
			class := labels[positives%len(labels)]
			center := classes[class]
			if positive {
				positives++
			} else {
				center = backgrounds[r.IntN(len(backgrounds))]
			}
			for j := range point {
				point[j] = center[j] + float32(o.Noise*r.NormFloat64())
			}
			d.addInstance(point, class, positive)
		}
		if o.Multi {
			d.endLabels(labels)
		} else {
			d.endBag(label, data.DrawCandidates(r, label, o.Classes, o.Candidates))
		}
	}
	return &d.Dataset, d.Validate("generated:prototypes")
}

// drawLabels draws the labels of a bag: label and others, at most one for each of size instances.
func (o PrototypeOptions) drawLabels(r *rand.Rand, label, size int) []int {
	labels := []int{label}
	for _, c := range r.Perm(o.Classes)[:r.IntN(o.Candidates+1)+1] {
		if c != label && len(labels) <= min(o.Candidates, size-1) {
			labels = append(labels, c)
		}
	}
	return labels
}

// CheckMemory returns an error if the dataset needs more memory than is available.
func (o PrototypeOptions) CheckMemory() error {
	centers := 4 * float64(1+backgroundsPerClass) * float64(o.Classes) * float64(o.Features)
	instances := float64(o.Bags) * (float64(o.MinSize) + float64(o.MaxSize)) / 2
	return checkMemory("generated:prototypes", centers, []int{o.Features}, instances, o.Bags, o.Classes)
}

const (
	prototypeRadius     = 2
	backgroundRadius    = 4
	backgroundsPerClass = 3
)

func (o PrototypeOptions) check() error {
	var faults diag.List
	need := needs(&faults, "generated:prototypes")
	need(o.Classes >= 2, "classes is %d; at least 2 are needed", o.Classes)
	need(o.Bags >= o.Classes, "bags is %d; at least one for each class is needed, %d in all", o.Bags, o.Classes)
	need(o.Features >= 1, "features is %d; at least 1 is needed", o.Features)
	need(!math.IsNaN(o.Noise) && !math.IsInf(o.Noise, 0) && o.Noise >= 0, "noise is %v; it must be a number of at least 0",
		o.Noise)
	need(float64(o.Bags)*float64(o.MaxSize)*float64(o.Features) < 1<<31,
		"bags, max_size and features make more than 2^31 numbers")
	checkDraw(&faults, o.Classes, o.Candidates, o.Positives, o.MinSize, o.MaxSize)
	return faults.Err()
}

// needs returns a function that adds an error about a file unless a condition holds.
func needs(faults *diag.List, file string) func(ok bool, format string, args ...any) {
	return func(ok bool, format string, args ...any) {
		if !ok {
			faults.Add(diag.Errorf(diag.Pos{File: file}, format, args...))
		}
	}
}

// checkDraw checks settings that all generated datasets have.
func checkDraw(faults *diag.List, classes, candidates int, positives float64, minSize, maxSize int) {
	need := needs(faults, "")
	need(candidates >= 0 && candidates < classes, "%s per bag; 0 to %d are possible with %s", diag.Count(candidates,
		"false positive label"), classes-1, diag.Count(classes, "class"))
	need(positives > 0 && positives <= 1, "the share of positive instances is %v; it must be above 0 and at most 1",
		positives)
	need(minSize >= 1 && minSize <= maxSize, "bag sizes from %d to %d; the smallest must be at least 1 and at most the "+
		"largest", minSize, maxSize)
}

// randomDirections draws n points on a sphere.
func randomDirections(r *rand.Rand, n, dim int, radius float64) [][]float32 {
	out := make([][]float32, n)
	for i := range out {
		x := make([]float64, dim)
		norm := 0.0
		for norm < 1e-6 {
			norm = 0
			for j := range x {
				x[j] = r.NormFloat64()
				norm += float64(x[j] * x[j]) // the conversion prevents a fused multiply-add
			}
		}
		out[i] = make([]float32, dim)
		for j := range x {
			out[i][j] = float32(x[j] * radius / math.Sqrt(norm))
		}
	}
	return out
}
