// Saving and restoring a run.

package train

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/miplc/miplc/internal/diag"
)

// save writes a checkpoint of the finished epochs.
func (r *Run) save(state *State) error {
	c := &Checkpoint{Identity: r.identity, Epoch: r.done, Metrics: r.Metrics, Params: state.Params,
		Optimizer: state.Optimizer, Best: r.best.params, Weights: r.Weights, Trajectories: r.Trajectories,
		Attention: r.Attention}
	r.saved = time.Now()
	if err := c.save(r.Dir); err != nil {
		return fmt.Errorf("checkpoint of epoch %d: %w", c.Epoch, err)
	}
	return nil
}

// resume restores the newest checkpoint and returns its state, or nil if the run starts from the
// beginning. If resuming is not wanted, it deletes the checkpoints.
func (r *Run) resume(wanted bool) (*State, error) {
	if r.Dir == "" {
		return nil, nil
	}
	if !wanted {
		return nil, removeCheckpoints(r.Dir)
	}
	c, damaged, err := LoadCheckpoint(r.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if damaged != "" {
		r.fit.options.Observer.Warn("ignoring " + damaged)
	}
	if err := c.Identity.check(r.identity, r.Dir); err != nil {
		return nil, err
	}
	if damaged != "" { // otherwise the next save would keep it in place of the good one
		if err := os.Remove(filepath.Join(r.Dir, CheckpointFile)); err != nil {
			return nil, err
		}
	}
	state, err := r.restore(c)
	if err != nil {
		return nil, fmt.Errorf("the checkpoint in %s does not fit the program: %w", r.Dir, err)
	}
	return state, nil
}

// restore copies the results in a checkpoint to the run and returns the state of the engine.
func (r *Run) restore(c *Checkpoint) (*State, error) {
	state := &State{Params: c.Params, Optimizer: c.Optimizer}
	if err := CheckState(r.Program, state); err != nil {
		return nil, err
	}
	if len(c.Weights) != len(r.Weights) || c.Epoch > r.Epochs {
		return nil, fmt.Errorf("it has %s after epoch %d, the run has %d and %s",
			diag.Count(len(c.Weights), "label weight"), c.Epoch, len(r.Weights), diag.Count(r.Epochs, "epoch"))
	}
	r.Weights, r.Metrics, r.Trajectories, r.Attention = c.Weights, c.Metrics, c.Trajectories, c.Attention
	r.resumed = c.Epoch
	for _, m := range c.Metrics {
		r.done = m.Epoch
		r.choose(m)
	}
	if r.best.Epoch > 0 {
		r.best.params = c.Best
		if err := CheckState(r.Program, &State{Params: r.best.params}); err != nil {
			return nil, err
		}
	}
	return state, nil
}

// CheckBegun returns an error if the run in the folder of a trial was begun with another spec or split.
// begun is the identity of its checkpoint. The hash of the dataset takes longer and is checked when training begins.
func (t *Trial) CheckBegun(begun Identity) error {
	want := begun
	want.Spec, want.Split = t.Program.Spec.Identity(), t.Split.Hash()
	return begun.check(want, t.Dir)
}
