// A resumed run continues on the engine, device and number of threads with which it began.

package runs

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/train"
	"github.com/miplc/miplc/train/engines"
	"github.com/miplc/miplc/train/ort"
)

// engineRequest returns the request for engines. A resumed run continues on the engine, device and
// number of threads of its checkpoint, because others round differently and would change the result.
// A run that was begun with another spec or split is an error, before its files are changed.
func (b *trainCall) engineRequest() (engines.Request, error) {
	r := b.Request
	if !b.Resume {
		return r, nil
	}
	for _, i := range b.left {
		t := b.trials[i]
		begun, _, err := train.LoadCheckpoint(t.Dir)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return r, err
		}
		if r, err = continueOn(r, t, begun.Identity, t.Dir); err != nil {
			return r, err
		}
		if err := t.CheckBegun(begun.Identity); err != nil {
			return r, err
		}
		r.Reason = "the run was started with it"
	}
	return r, nil
}

// continueOn adds the engine, device and number of threads of a checkpoint to a request. It returns
// an error if the request, or train.engine of the spec, names others.
func continueOn(r engines.Request, t *train.Trial, begun train.Identity, dir string) (engines.Request, error) {
	device := cmp.Or(begun.Device, engines.CPU)
	differs := func(what, asked, was string) error {
		return fmt.Errorf("the run in %s was started with %s and cannot continue with %s, which would change the results: "+
			"omit it, or start again with --force",
			dir, strings.TrimSpace(what+" "+was), asked)
	}
	asked := r.Device
	engine := cmp.Or(r.Engine, t.Program.Spec.Train.Engine.V, engines.Auto)
	switch {
	case engine != engines.Auto && engine != begun.Engine:
		return r, differs("engine", engine, begun.Engine)
	case asked == engines.CPU && device == engines.Go: // no plugin was available at the start
	case asked != "" && asked != device:
		return r, differs("device", asked, device)
	}
	if r.Threads > 0 && begun.Engine == engines.ORT {
		asked, was := ort.Threads(t.LargeSteps(), r.Threads), ort.Threads(t.LargeSteps(), begun.Threads)
		if asked != was {
			return r, differs("", diag.Count(asked, "thread"), diag.Count(was, "thread"))
		}
	}
	r.Auto = begun.Engine
	if begun.Engine == engines.ORT {
		r.Threads = begun.Threads
	}
	r.Device = device
	return r, nil
}
