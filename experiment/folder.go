package experiment

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"

	"github.com/miplc/miplc/runs"
)

// Names inside the folder of an experiment.
const (
	SpecFile     = "experiment.yaml" // the text of the file
	PlanFile     = "plan.json"       // the cells and data sets, see Plan
	ResultsFile  = "results.jsonl"   // one Result per line
	DataFolder   = "data"            // sets that were drawn
	ModelsFolder = "models"          // one run folder per cell, with keep: models
	lockFile     = ".lock"
)

// claim makes the folder the experiment's, or says why it must be left alone.
// The lock that it returns keeps a second process out until it is closed.
func claim(dir string, e *Experiment) (*flock.Flock, error) {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return nil, fmt.Errorf("%s is a file; an experiment needs a folder", dir)
	}
	if err := owner(dir, e.Name.V); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(dir, DataFolder), 0o755); err != nil {
		return nil, err
	}
	lock := flock.New(filepath.Join(dir, lockFile))
	switch free, err := lock.TryLock(); {
	case err != nil:
		return nil, fmt.Errorf("%s cannot be locked: %w", dir, err)
	case !free:
		return nil, fmt.Errorf("another process runs the experiment in %s", dir)
	}
	return lock, errors.Join(sweep(dir, SpecFile, PlanFile), sweep(filepath.Join(dir, DataFolder), ""))
}

// abandon removes a folder that no plan was written to, but for data sets that
// were drawn and files that are not ours.
func abandon(dir string) {
	if _, err := os.Stat(filepath.Join(dir, PlanFile)); err == nil {
		return
	}
	if os.Remove(filepath.Join(dir, DataFolder)) == nil {
		_ = os.Remove(filepath.Join(dir, lockFile))
		_ = os.Remove(dir) // fails, rightly, where other files are
	}
}

// owner reports a folder that holds something else.
func owner(dir, name string) error {
	if state, err := runs.StateOf(dir); err != nil || state != runs.Absent {
		return errors.Join(err, fmt.Errorf("%s holds a run of miplc train: choose another folder", dir))
	}
	src, err := os.ReadFile(filepath.Join(dir, SpecFile))
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(filepath.Join(dir, ResultsFile)); err == nil {
			return fmt.Errorf("%s holds results, but no %s that says of what: choose another folder", dir, SpecFile)
		}
		return nil
	}
	if err != nil {
		return err
	}
	have, err := Parse(filepath.Join(dir, SpecFile), src)
	if err != nil {
		return err
	}
	if have.Name.V != name {
		return fmt.Errorf("%s holds the results of the experiment %q, not of %q: choose another folder", dir, have.Name.V, name)
	}
	return nil
}

// sweep removes what a killed process was still writing aside.
func sweep(dir string, names ...string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, f := range entries {
		for _, name := range names {
			if strings.HasPrefix(f.Name(), "."+name) && f.Name() != lockFile {
				if err := os.Remove(filepath.Join(dir, f.Name())); err != nil {
					return err
				}
				break
			}
		}
	}
	return nil
}

// write puts the file of the experiment and the plan into the folder.
func (p *Plan) write(dir string) error {
	text, err := json.MarshalIndent(p, "", " ")
	if err != nil {
		return err
	}
	if err := runs.WriteFile(filepath.Join(dir, SpecFile), p.experiment.Source); err != nil {
		return err
	}
	return runs.WriteFile(filepath.Join(dir, PlanFile), append(text, '\n'))
}

// ReadPlan reads the plan of an experiment.
func ReadPlan(dir string) (*Plan, error) {
	path := filepath.Join(dir, PlanFile)
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	p := &Plan{}
	if err := json.Unmarshal(text, p); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}

// slug makes a name of a file from a name of the experiment.
func slug(name string) string {
	out := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '.', r == '=':
			return r
		}
		return '_'
	}, name)
	return strings.TrimLeft(out, ".")
}
