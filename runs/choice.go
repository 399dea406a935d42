package runs

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/engines"
)

// engine settles what trains the run.
func (o *Options) engine() (*engines.Choice, error) {
	request, begun, err := o.engineRequest()
	if err != nil {
		return nil, err
	}
	c, err := engines.Choose(request)
	if err == nil && begun {
		c.Reason = "the run was begun with it"
	}
	return c, err
}

// engineRequest is what the options and the spec ask of the engine. A run that
// goes on asks for what its checkpoint was made with: another engine rounds
// otherwise, and the promise of the same bits would be broken.
func (o *Options) engineRequest() (r engines.Request, begun bool, err error) {
	r = engines.Request{
		Engine: o.Engine, Device: o.Device, Library: o.Library, Provider: o.Provider, Threads: o.Threads, Plugin: o.Plugin,
	}
	if r.Engine == "" {
		r.Engine = o.Spec.Train.Engine.V
	}
	if !o.Resume {
		return r, false, nil
	}
	identity, err := train.LoadIdentity(o.Dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return r, false, nil
	case err != nil:
		return r, false, err
	}
	r, err = continued(r, identity, o.Dir)
	return r, true, err
}

// continued fills a request up with the engine and device of a checkpoint, or
// says how they differ.
func continued(r engines.Request, begun train.Identity, dir string) (engines.Request, error) {
	device := begun.Device
	if device == "" {
		device = engines.CPU
	}
	differs := func(what, asked, was string) error {
		return fmt.Errorf("the run in %s was begun with the %s %s and cannot go on with %s, which would give other numbers: leave that out, or start again with --force",
			dir, what, was, asked)
	}
	asked := r.Device
	if r.Provider != "" {
		asked = r.Provider
	}
	switch {
	case r.Engine != "" && r.Engine != engines.Auto && r.Engine != begun.Engine:
		return r, differs("engine", r.Engine, begun.Engine)
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
