package train

import (
	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/generate"
	"github.com/miplc/miplc/language"
)

// SmallTrial returns a trial with which devices are tested: two epochs of the shipped spec
// quickstart on a few bags.
func SmallTrial() (*Trial, error) {
	o := generate.DefaultPrototypes
	o.Bags = 20
	d, err := generate.Prototypes(o)
	if err != nil {
		return nil, err
	}
	spec, err := language.Load("quickstart", "train.epochs=2")
	if err != nil {
		return nil, err
	}
	p, err := compile.Compile(spec, compile.Signature{Instance: d.Shape, Classes: d.Classes})
	if err != nil {
		return nil, err
	}
	return &Trial{Program: p, Data: d, Split: &data.Split{Train: d.AllBags()}, OnlySnapshots: true, Snapshots: []int{}}, nil
}
