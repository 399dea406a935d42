package runs

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"

	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/engines"
)

// engineRequest is what the options ask of the engine. Runs that go on ask for
// what their checkpoints were made with: another engine rounds otherwise, and the
// promise of the same bits would be broken.
func (b *bunch) engineRequest() (engines.Request, error) {
	r := b.Request
	if !b.Resume {
		return r, nil
	}
	for _, i := range b.left {
		t := b.trials[i]
		identity, err := train.LoadIdentity(t.Dir)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return r, err
		}
		r.Engine = cmp.Or(r.Engine, t.Program.Spec.Train.Engine.V)
		r.Reason = "the run was begun with it"
		return continued(r, identity, t.Dir)
	}
	return r, nil
}

// continued fills a request up with the engine and device of a checkpoint, or
// says how they differ.
func continued(r engines.Request, begun train.Identity, dir string) (engines.Request, error) {
	device := cmp.Or(begun.Device, engines.CPU)
	differs := func(what, asked, was string) error {
		return fmt.Errorf("the run in %s was begun with the %s %s and cannot continue with %s, which would change the results: leave that out, or start again with --force",
			dir, what, was, asked)
	}
	asked := r.Device
	if r.Provider != "" {
		asked = r.Provider
	}
	switch {
	case r.Engine != "" && r.Engine != engines.Auto && r.Engine != begun.Engine:
		return r, differs("engine", r.Engine, begun.Engine)
	case asked == engines.CPU && device == engines.Go: // which stood in for it, and goes on where a plugin came since
	case asked != "" && asked != device:
		return r, differs("device", asked, device)
	}
	r.Engine = begun.Engine
	switch {
	case begun.Engine == engines.ORT && device != engines.CPU:
		r.Provider = device
	case r.Provider == "":
		r.Device = device
	}
	return r, nil
}
