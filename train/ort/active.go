//go:build cgo

// Which runs of a group are active, and batches of a group.

package ort

import (
	"errors"
	"maps"
	"slices"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/train"
)

// active has the tensors of the runs that are computed: all runs, or those that are behind the
// others.
type active struct {
	runs     []*train.Run // by their index in the tensors
	copies   [2]values    // state vectors [runs, 1, P]: a step reads one copy and writes the other
	current  int          // index of the copy with the newest values
	settings values       // of the epoch, [runs, 1, 1], and statistics [runs, 1, d], in the process
	batches  map[*runsSession]*batch
}

// batch has the values of one session.
type batch struct {
	values
	on   *runsSession
	runs int
	io   [2]*binding // by the copy of the state that is read
}

// part returns the values of an input or output for the run with index j in the tensors, nil if the
// session has no such value.
func (b *batch) part(name string, j int) []float32 {
	if b.values[name] == nil {
		return nil
	}
	all := b.floats(name)
	size := len(all) / b.runs
	return all[j*size : (j+1)*size]
}

// save copies the states of the active runs to vectors.
func (g *group) save() {
	if g.active == nil {
		return
	}
	size, now := g.FlatSize(), g.active.copies[g.active.current]
	for j, r := range g.active.runs {
		for name, v := range g.vectors[r.Index] {
			copy(v, now.floats(name)[j*size:])
		}
	}
}

// deactivate frees the tensors of the active runs.
func (g *group) deactivate() error {
	if g.active == nil {
		return nil
	}
	err := g.active.Destroy()
	g.active = nil
	return err
}

// activate makes runs the active runs.
func (g *group) activate(runs []*train.Run) error {
	if g.active != nil && slices.Equal(g.active.runs, runs) {
		return nil
	}
	g.save()
	if err := g.deactivate(); err != nil {
		return err
	}
	s, size, n := &active{runs: slices.Clone(runs), settings: values{}, batches: map[*runsSession]*batch{}}, g.FlatSize(),
		len(runs)
	g.active = s
	for i := range s.copies {
		s.copies[i] = values{}
		for _, name := range g.StateVectors() {
			if err := s.copies[i].add(name, n, 1, size); err != nil {
				return err
			}
		}
	}
	names := slices.Collect(maps.Keys((&train.Batch{}).Scalars(g.Program)))
	for _, term := range g.Terms {
		names = append(names, compile.TermWeightPrefix+term)
	}
	for _, name := range names {
		if err := s.settings.add(name, n, 1, 1); err != nil {
			return err
		}
	}
	for _, name := range g.NormalizationParams() {
		if err := s.settings.add(name, n, 1, g.runs[0].Data.Dim()); err != nil {
			return err
		}
	}
	for j, r := range runs {
		for name, v := range g.vectors[r.Index] {
			copy(s.copies[0].floats(name)[j*size:], v)
		}
		for name, v := range g.statistics[r.Index] {
			copy(s.settings.floats(name)[j*len(v):], v)
		}
		for name, weight := range train.TermWeights(r.Program.Spec) {
			s.settings.floats(compile.TermWeightPrefix + name)[j] = float32(weight)
		}
	}
	return nil
}

// Destroy releases the bindings before the tensors that they point to.
func (s *active) Destroy() error {
	var errs []error
	for _, b := range s.batches {
		errs = append(errs, destroy(b.io[:]...), b.Destroy())
	}
	return errors.Join(append(errs, s.copies[0].Destroy(), s.copies[1].Destroy(), s.settings.Destroy())...)
}

// batch returns the tensors of batches of the given number of bags for the active runs.
func (g *group) batch(predict bool, bags int) (*batch, error) {
	s := g.active
	on, err := g.session(predict, bags)
	if err != nil {
		return nil, err
	}
	if b := s.batches[on]; b != nil {
		return b, nil
	}
	b := &batch{values: values{}, on: on, runs: len(s.runs)}
	s.batches[on] = b
	next := updatedVectors(g.Program, s.copies[0])
	for _, name := range slices.Concat(on.in, on.out) {
		if s.copies[0][name] != nil || s.settings[name] != nil || next[name] != nil {
			continue
		}
		if err := b.add(name, append([]int{b.runs}, on.dims[name]...)...); err != nil {
			return nil, err
		}
	}
	return b, nil
}
