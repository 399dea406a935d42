// A resumed run continues on the engine and device with which it began.

package runs

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"

	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/engines"
)

// place returns where to train. A resumed run continues on the engine and device of its checkpoint, because others
// round differently and would change the result. A run that was begun with another spec or split is an error, before
// its files are changed.
func (b *trainCall) place() (engines.Place, error) {
	p := b.Place
	if !b.Resume {
		return p, nil
	}
	for _, i := range b.left {
		t := b.trials[i]
		begun, _, err := train.LoadCheckpoint(t.Dir)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return p, err
		}
		if p, err = continueOn(p, t, begun.Identity, t.Dir); err != nil {
			return p, err
		}
		if err := t.CheckBegun(begun.Identity); err != nil {
			return p, err
		}
		p.Reason = "the run was started with it"
	}
	return p, nil
}

// continueOn returns a place with the engine and device of a checkpoint. It returns an error if the given place, or
// train.engine of the spec, names others, or if this version does not have the engine.
func continueOn(p engines.Place, t *train.Trial, begun train.Identity, dir string) (engines.Place, error) {
	device := cmp.Or(begun.Device, engines.CPU)
	differs := func(what, asked, was string) error {
		return fmt.Errorf("the run in %s was started with %s and cannot continue with %s, which would change the results: "+
			"omit it, or start again with --force",
			dir, what+" "+was, asked)
	}
	asked := p.Device
	engine := cmp.Or(p.Engine, t.Program.Spec.Train.Engine.V, engines.Auto)
	switch {
	case engine != engines.Auto && engine != begun.Engine:
		return p, differs("engine", engine, begun.Engine)
	case asked == engines.CPU && device == engines.Go: // no plugin was available at the start
	case asked != "" && asked != device:
		return p, differs("device", asked, device)
	}
	p.Auto, p.Device = begun.Engine, device
	return p, nil
}
