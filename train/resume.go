// Saving and restoring a run.

package train

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/miplc/miplc/internal/diag"
)

// Prefixes of the arrays in a checkpoint.
const (
	arrayParam      = "param/"
	arrayOptimizer  = "optimizer/" // + name of the vector
	arrayWeights    = "weights"
	arrayTrajectory = "trajectory/" // + number of the bag, from 0
	arrayAttention  = "attention/"  // + epoch + /train/positive and so on
	arrayBest       = "best/"       // + name of the parameter, see train.best
)

// save writes a checkpoint of the finished epochs.
func (r *Run) save(state *State) error {
	c := &checkpoint{Identity: r.identity, Epoch: r.done, Metrics: r.Metrics, Arrays: map[string]floats{
		arrayWeights: r.Weights}}
	for name, values := range state.Params {
		c.Arrays[arrayParam+name] = values
	}
	for name, values := range state.Optimizer {
		c.Arrays[arrayOptimizer+name] = values
	}
	for name, values := range r.best.params {
		c.Arrays[arrayBest+name] = values
	}
	for _, tr := range r.Trajectories {
		c.Arrays[arrayTrajectory+strconv.Itoa(tr.Bag-1)] = slices.Concat(tr.Weights...)
	}
	for i := range r.Attention {
		for name, scores := range r.Attention[i].parts() {
			c.Arrays[fmt.Sprintf("%s%d/%s", arrayAttention, r.Attention[i].Epoch, name)] = *scores
		}
	}
	r.saved = time.Now()
	return c.save(r.Dir)
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
	c, damaged, err := newestCheckpoint(r.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, d := range damaged {
		r.fit.options.Observer.Warn(fmt.Sprintf("ignoring %s: %v", d.path, d.err))
	}
	if err := c.Identity.check(r.identity, r.Dir); err != nil {
		return nil, err
	}
	for _, d := range damaged { // otherwise the next save would keep it in place of the good one
		if err := os.Remove(d.path); err != nil {
			return nil, err
		}
	}
	state, err := r.restore(c)
	if err != nil {
		return nil, fmt.Errorf("the checkpoint in %s does not fit the program: %w", r.Dir, err)
	}
	return state, nil
}

// restore copies the arrays of a checkpoint to the run and returns the state of the engine.
func (r *Run) restore(c *checkpoint) (*State, error) {
	for e := 1; e <= c.Epoch && e <= r.Epochs; e++ {
		if r.snapshot(e) {
			r.Attention = append(r.Attention, AttentionSnapshot{Epoch: e})
		}
	}
	for i := range r.Attention {
		for name, scores := range r.Attention[i].parts() {
			if values := c.Arrays[fmt.Sprintf("%s%d/%s", arrayAttention, r.Attention[i].Epoch, name)]; len(values) > 0 {
				*scores = values
			}
		}
	}
	state := c.state()
	if err := CheckState(r.Program, state); err != nil {
		return nil, err
	}
	if len(c.Arrays[arrayWeights]) != len(r.Weights) || c.Epoch > r.Epochs {
		return nil, fmt.Errorf("it has %s after epoch %d, the run has %d and %s",
			diag.Count(len(c.Arrays[arrayWeights]), "label weight"), c.Epoch, len(r.Weights), diag.Count(r.Epochs, "epoch"))
	}
	for i := range r.Trajectories {
		tr := &r.Trajectories[i]
		var values []float32 = c.Arrays[arrayTrajectory+strconv.Itoa(tr.Bag-1)]
		if len(values) == (c.Epoch+1)*r.Data.Classes {
			tr.Weights = slices.Collect(slices.Chunk(values, r.Data.Classes))
		}
	}
	r.Weights, r.Metrics = c.Arrays[arrayWeights], c.Metrics
	r.resumed = c.Epoch
	for _, m := range c.Metrics {
		r.done = m.Epoch
		r.choose(m)
	}
	if r.best.Epoch > 0 {
		r.best.params = c.best()
		if err := CheckState(r.Program, &State{Params: r.best.params}); err != nil {
			return nil, err
		}
	}
	return state, nil
}

// state returns the state of the engine.
func (c *checkpoint) state() *State {
	s := &State{Params: map[string][]float32{}, Optimizer: map[string][]float32{}}
	for name, values := range c.Arrays {
		if p, ok := strings.CutPrefix(name, arrayParam); ok {
			s.Params[p] = values
		} else if vector, ok := strings.CutPrefix(name, arrayOptimizer); ok {
			s.Optimizer[vector] = values
		}
	}
	return s
}

// best returns the parameters of the epoch that train.best has chosen so far, or nil.
func (c *checkpoint) best() map[string][]float32 {
	var params map[string][]float32
	for name, values := range c.Arrays {
		if p, ok := strings.CutPrefix(name, arrayBest); ok {
			if params == nil {
				params = map[string][]float32{}
			}
			params[p] = values
		}
	}
	return params
}

// parts returns the lists of scores of a snapshot by the suffixes of their array names.
func (s *AttentionSnapshot) parts() map[string]*[]float32 {
	return map[string]*[]float32{
		"train/positive": &s.Train.Positive, "train/negative": &s.Train.Negative, "train/unknown": &s.Train.Unknown,
		"test/positive": &s.Test.Positive, "test/negative": &s.Test.Negative, "test/unknown": &s.Test.Unknown,
		"train/spreads": &s.Train.Spreads, "test/spreads": &s.Test.Spreads,
	}
}
