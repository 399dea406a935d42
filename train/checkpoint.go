// Checkpoints: their file and identity, saving a run and resuming it.

package train

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/fileio"
	"github.com/miplc/miplc/internal/ndarray"
)

// Names of the checkpoint files in the folder of a run.
const (
	CheckpointFile = "checkpoint.miplc"
	PreviousFile   = "checkpoint.previous.miplc"
)

// Identity identifies the training of a checkpoint. Training resumes only if all fields but Others are
// equal, because each of them changes the results.
type Identity struct {
	Spec   string `json:"spec_sha256"`
	Data   string `json:"data_sha256"`
	Split  string `json:"split_sha256"`
	Engine string `json:"engine"`
	Device string `json:"device,omitempty"` // empty: the CPU
	// Others is the number of other trials in the same program, if it changes rounding. It differs after a part of a group
	// has finished, or after a group was divided because it failed.
	Others int `json:"others,omitempty"`
}

// Checkpoint is the state of a run after an epoch. It has no times and no random state, because
// random streams are keyed by the epoch. Equal runs write equal bytes.
type Checkpoint struct {
	Identity     Identity            `json:"identity"`
	Epoch        int                 `json:"epoch"` // number of finished epochs
	Metrics      []Metrics           `json:"metrics"`
	Params       vectors             `json:"params"`
	Optimizer    vectors             `json:"optimizer"`
	Best         vectors             `json:"best,omitempty"` // parameters of the epoch that train.best has chosen so far
	Weights      floats              `json:"weights"`        // label weights
	Trajectories []Trajectory        `json:"trajectories"`
	Attention    []AttentionSnapshot `json:"attention"`
}

// floats are values that JSON contains as base64 of their bytes, so that all bits are kept.
type floats []float32

func (f floats) MarshalJSON() ([]byte, error) { return json.Marshal(ndarray.AppendBytes(nil, f)) }

func (f *floats) UnmarshalJSON(text []byte) error {
	var b []byte
	err := json.Unmarshal(text, &b)
	*f = ndarray.FromBytes[float32](b[:len(b)/4*4])
	return err
}

// vectors are values by name, which JSON contains as floats.
type vectors map[string][]float32

func (v vectors) MarshalJSON() ([]byte, error) {
	m := map[string]floats{}
	for name, values := range v {
		m[name] = values
	}
	return json.Marshal(m)
}

func (v *vectors) UnmarshalJSON(text []byte) error {
	var m map[string]floats
	err := json.Unmarshal(text, &m)
	*v = vectors{}
	for name, values := range m {
		(*v)[name] = values
	}
	return err
}

// State returns the state of the model, the best one so far with train.best, else that of the last epoch.
func (c *Checkpoint) State() *State {
	if c.Best != nil {
		return &State{Params: c.Best}
	}
	return &State{Params: c.Params, Optimizer: c.Optimizer}
}

// encode returns the file of a checkpoint: the SHA-256 of the rest, and the checkpoint as JSON.
func (c *Checkpoint) encode() ([]byte, error) {
	timeless := *c
	timeless.Metrics = slices.Clone(c.Metrics)
	for i := range timeless.Metrics {
		timeless.Metrics[i].Seconds = 0
	}
	text, err := json.Marshal(timeless)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(text)
	return append(sum[:], text...), nil
}

// decodeCheckpoint reads a file of encode.
func decodeCheckpoint(file []byte) (*Checkpoint, error) {
	if len(file) < sha256.Size || sha256.Sum256(file[sha256.Size:]) != [sha256.Size]byte(file) {
		return nil, errors.New("the file is damaged or cut off")
	}
	c := &Checkpoint{}
	if err := json.Unmarshal(file[sha256.Size:], c); err != nil {
		return nil, err
	}
	if c.Epoch < 0 || c.Epoch != len(c.Metrics) {
		return nil, fmt.Errorf("it has metrics of %s and says %d", diag.Count(len(c.Metrics), "epoch"), c.Epoch)
	}
	return c, nil
}

// save writes the checkpoint and keeps the one before as PreviousFile. After the first call, the
// folder contains a complete checkpoint at every moment.
func (c *Checkpoint) save(dir string) error {
	content, err := c.encode()
	if err != nil {
		return err
	}
	current, previous := filepath.Join(dir, CheckpointFile), filepath.Join(dir, PreviousFile)
	f, err := fileio.Create(current, fileio.WriteOptions{Force: true})
	if err != nil {
		return err
	}
	defer f.Discard()
	if _, err := f.Write(content); err != nil {
		return err
	}
	if err := f.Finish(); err != nil { // on the disk, before the old checkpoint is renamed
		return err
	}
	if err := os.Rename(current, previous); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return f.Commit()
}

// LoadCheckpoint reads the newest checkpoint in dir that is not damaged. It changes no files. damaged is the
// defect of a newer file, "" if there is none. Without a checkpoint c is empty and the error wraps fs.ErrNotExist;
// if all are damaged, it names them.
func LoadCheckpoint(dir string) (c *Checkpoint, damaged string, err error) {
	var all []string
	for _, name := range []string{CheckpointFile, PreviousFile} {
		path := filepath.Join(dir, name)
		content, err := fileio.Read(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			if c, err = decodeCheckpoint(content); err == nil {
				return c, strings.Join(all, "; "), nil
			}
			all = append(all, fmt.Sprintf("%s: %v", path, err))
			continue
		}
		return &Checkpoint{}, "", err
	}
	if len(all) == 0 {
		return &Checkpoint{}, "", fmt.Errorf("there is no checkpoint in %s: %w", dir, fs.ErrNotExist)
	}
	return &Checkpoint{}, "", fmt.Errorf("all checkpoints in %s are damaged (%s): train again from the start, into "+
		"another folder or over this one with --force",
		dir, strings.Join(all, "; "))
}

// removeCheckpoints deletes the checkpoints in a folder.
func removeCheckpoints(dir string) error {
	for _, name := range []string{CheckpointFile, PreviousFile} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// check returns an error that lists how the identity of a checkpoint in dir differs from that of the run.
func (id *Identity) check(want Identity, dir string) error {
	var differ []string
	for _, part := range []struct{ what, have, want string }{
		{"spec", id.Spec, want.Spec},
		{"dataset", id.Data, want.Data},
		{"split", id.Split, want.Split},
		{"engine", id.Engine, want.Engine},
		{"device", cmp.Or(id.Device, defaultDevice), cmp.Or(want.Device, defaultDevice)},
	} {
		if part.have != part.want {
			differ = append(differ, fmt.Sprintf("%s (there %s, here %s)", part.what, shown(part.have), shown(part.want)))
		}
	}
	if differ == nil {
		return nil
	}
	return fmt.Errorf("the checkpoint in %s belongs to another %s: continue it without changes, choose another folder, "+
		"or start again with --force",
		dir, strings.Join(differ, " and another "))
}

// defaultDevice is the device of an Identity without one.
const defaultDevice = "cpu"

// shown returns a value of Identity for a message: at most 12 characters of a hash, "none" if it is empty.
func shown(s string) string {
	if len(s) > 12 {
		return s[:12]
	}
	if s == "" {
		return "none"
	}
	return s
}

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

// resume restores the newest checkpoint and returns its state and Identity.Others. The state is nil if there is no
// checkpoint.
func (r *Run) resume() (state *State, others int, err error) {
	if r.Dir == "" {
		return nil, 0, nil
	}
	c, damaged, err := LoadCheckpoint(r.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	if damaged != "" {
		r.fit.options.Observer.Warn("ignoring " + damaged)
	}
	if err := c.Identity.check(r.identity, r.Dir); err != nil {
		return nil, 0, err
	}
	if damaged != "" { // otherwise the next save would keep it in place of the good one
		if err := os.Remove(filepath.Join(r.Dir, CheckpointFile)); err != nil {
			return nil, 0, err
		}
	}
	if state, err = r.restore(c); err != nil {
		return nil, 0, fmt.Errorf("the checkpoint in %s does not fit the program: %w", r.Dir, err)
	}
	return state, c.Identity.Others, nil
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
	if slices.EqualFunc(c.Trajectories, r.Trajectories, func(a, b Trajectory) bool { return a.Bag == b.Bag }) {
		r.Trajectories = c.Trajectories
	}
	r.Weights, r.Metrics, r.Attention = c.Weights, c.Metrics, c.Attention
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
