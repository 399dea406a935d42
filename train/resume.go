package train

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/miplc/miplc/compile"
)

// Prefixes of the arrays in a checkpoint.
const (
	arrayParam      = "param/"
	arrayVelocity   = "velocity/"
	arrayWeights    = "weights"
	arrayTrajectory = "trajectory/" // + number of the bag, from 0
	arrayAttention  = "attention/"  // + epoch + /train/positive and so on
)

// checkpoint writes the state of the run where the spec asks for it. The last
// epoch always gets its checkpoint unless checkpoints are off.
func (t *trainer) checkpoint() error {
	every := t.program.Spec.Train.Checkpoint.V
	if t.opt.Dir == "" || every <= 0 || (t.done%every != 0 && t.done != t.Epochs) {
		return nil
	}
	state, err := t.state()
	if err != nil {
		return err
	}
	c := &checkpoint{Identity: t.identity, Epoch: t.done, Metrics: t.Metrics, Arrays: map[string][]float32{arrayWeights: t.Weights}}
	for name, values := range state.Params {
		c.Arrays[arrayParam+name] = values
	}
	for name, values := range state.Velocity {
		c.Arrays[arrayVelocity+name] = values
	}
	for _, tr := range t.Trajectories {
		c.Arrays[arrayTrajectory+strconv.Itoa(tr.Bag-1)] = flatten(tr.Weights)
	}
	for i := range t.Attention {
		for name, scores := range t.Attention[i].parts() {
			c.Arrays[fmt.Sprintf("%s%d/%s", arrayAttention, t.Attention[i].Epoch, name)] = *scores
		}
	}
	return c.save(t.opt.Dir)
}

// state takes the state out of the engine and makes sure that it is finite.
func (t *trainer) state() (*State, error) {
	state, err := t.engine.State()
	if err != nil {
		return nil, fmt.Errorf("engine %s does not give its state: %w", t.engine.Name(), err)
	}
	if t.program.Normalize {
		state.Params[compile.ParamMean], state.Params[compile.ParamStd] = t.feed.mean, t.feed.std
	}
	for _, p := range t.program.Params {
		for _, part := range []struct {
			what   string
			values []float32
		}{{"parameter ", state.Params[p.Name]}, {"the velocity of parameter ", state.Velocity[p.Name]}} {
			if i := firstNonFinite(part.values); i >= 0 {
				return nil, &NonFiniteError{Epoch: t.done, Set: t.Data.Name, What: part.what + p.Name, Value: float64(part.values[i])}
			}
		}
	}
	return state, CheckState(t.program, state)
}

// resume takes the newest checkpoint in and returns its engine state, or nil
// when the run starts from the beginning.
func (t *trainer) resume() (*State, error) {
	if t.opt.Dir == "" {
		return nil, nil
	}
	if !t.opt.Resume {
		return nil, removeCheckpoints(t.opt.Dir)
	}
	c, passed, err := newestCheckpoint(t.opt.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, d := range passed {
		t.observer.Warn(fmt.Sprintf("%s is passed over: %v", d.path, d.err))
	}
	if err := c.matches(t.identity, t.opt.Dir); err != nil {
		return nil, err
	}
	for _, d := range passed { // or the next save pushes the whole one out for it
		if err := os.Remove(d.path); err != nil {
			return nil, err
		}
	}
	state, err := t.restore(c)
	if err != nil {
		return nil, fmt.Errorf("the checkpoint in %s does not fit the program: %w", t.opt.Dir, err)
	}
	return state, nil
}

// restore spreads the arrays of a checkpoint over the run.
func (t *trainer) restore(c *checkpoint) (*State, error) {
	state := &State{Params: map[string][]float32{}, Velocity: map[string][]float32{}}
	snapshots := map[string]*[]float32{}
	for e := 1; e <= c.Epoch && e <= t.Epochs; e++ {
		if t.Snapshot(e) {
			t.Attention = append(t.Attention, AttentionSnapshot{Epoch: e})
		}
	}
	for i := range t.Attention {
		for name, scores := range t.Attention[i].parts() {
			snapshots[fmt.Sprintf("%s%d/%s", arrayAttention, t.Attention[i].Epoch, name)] = scores
		}
	}
	for name, values := range c.Arrays {
		if p, ok := strings.CutPrefix(name, arrayParam); ok {
			state.Params[p] = values
		} else if p, ok := strings.CutPrefix(name, arrayVelocity); ok {
			state.Velocity[p] = values
		} else if scores := snapshots[name]; scores != nil && len(values) > 0 {
			*scores = values
		}
	}
	if err := CheckState(t.program, state); err != nil {
		return nil, err
	}
	if len(c.Arrays[arrayWeights]) != len(t.Weights) || c.Epoch > t.Epochs {
		return nil, fmt.Errorf("it holds %d label weights after epoch %d, the run has %d and %d epochs",
			len(c.Arrays[arrayWeights]), c.Epoch, len(t.Weights), t.Epochs)
	}
	for i := range t.Trajectories {
		tr := &t.Trajectories[i]
		values := c.Arrays[arrayTrajectory+strconv.Itoa(tr.Bag-1)]
		if len(values) == (c.Epoch+1)*t.Data.Classes {
			tr.Weights = rows(values, t.Data.Classes)
		}
	}
	t.Weights, t.Metrics, t.done = c.Arrays[arrayWeights], c.Metrics, c.Epoch
	t.resumed = c.Epoch
	return state, nil
}

// parts lists the score lists of a snapshot by the end of their array names.
func (s *AttentionSnapshot) parts() map[string]*[]float32 {
	return map[string]*[]float32{
		"train/positive": &s.Train.Positive, "train/negative": &s.Train.Negative, "train/unknown": &s.Train.Unknown,
		"test/positive": &s.Test.Positive, "test/negative": &s.Test.Negative, "test/unknown": &s.Test.Unknown,
	}
}

func flatten(list [][]float32) []float32 {
	var flat []float32
	for _, row := range list {
		flat = append(flat, row...)
	}
	return flat
}

func rows(flat []float32, width int) [][]float32 {
	var list [][]float32
	for ; len(flat) >= width; flat = flat[width:] {
		list = append(list, flat[:width:width])
	}
	return list
}
