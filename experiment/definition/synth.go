package definition

import (
	"github.com/miplc/miplc/data/generate"
)

// Options returns the settings in the file.
func (s *Synth) Options() generate.Options {
	return generate.Options{
		Bags: s.Bags, Positives: s.Positives, MinSize: s.MinSize, MaxSize: s.MaxSize, Classes: s.Classes,
		ClassCount: s.ClassCount, Features: s.Features, Noise: s.Noise, Pools: s.Pools, Seed: uint64(s.Seed),
	}
}
