package train

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/infile"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/outfile"
)

// Names of the checkpoint files in the output directory.
const (
	CheckpointFile   = "checkpoint.miplc"
	PreviousFile     = "checkpoint.previous.miplc"
	checkpointFormat = "miplc checkpoint 1\n"
)

// Identity says what a checkpoint belongs to. Training goes on only where all
// of it is the same, since anything else would give other numbers.
type Identity struct {
	Spec   string `json:"spec_sha256"`
	Data   string `json:"data_sha256"`
	Split  string `json:"split_sha256"`
	Engine string `json:"engine"`
	Device string `json:"device,omitempty"` // empty: the CPU
	Beside int    `json:"beside,omitempty"` // trials in the same program, which may change the rounding
}

// SplitHash is the SHA-256, in hex, of the bags of all parts.
func SplitHash(s *data.Split) string {
	var text []byte
	parts := [][]int{s.Train, s.Test}
	if len(s.Validation) > 0 {
		parts = append(parts, s.Validation)
	}
	for _, bags := range parts {
		text = binary.LittleEndian.AppendUint64(text, uint64(len(bags)))
		for _, b := range bags {
			text = binary.LittleEndian.AppendUint64(text, uint64(b))
		}
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// checkpoint is the state of a run after an epoch. It holds no times and no
// random state: streams are keyed by the epoch, so the same run always writes
// the same bytes.
type checkpoint struct {
	Identity Identity
	Epoch    int // epochs done
	Metrics  []Metrics
	Arrays   map[string][]float32
}

// header is the JSON part of a checkpoint file.
type header struct {
	Identity Identity    `json:"identity"`
	Epoch    int         `json:"epoch"`
	Metrics  []Metrics   `json:"metrics"`
	Arrays   []arrayInfo `json:"arrays"` // in the order of their values
}

type arrayInfo struct {
	Name string `json:"name"`
	Len  int    `json:"len"`
}

// encode lays a checkpoint out: the format line, the length of the header (8
// bytes, little-endian), the header as JSON, the arrays as little-endian
// float32, and the SHA-256 of all that.
func (c *checkpoint) encode() ([]byte, error) {
	h := header{Identity: c.Identity, Epoch: c.Epoch, Metrics: slices.Clone(c.Metrics)}
	for i := range h.Metrics {
		h.Metrics[i].Seconds = 0
	}
	size := 0
	for name, values := range c.Arrays {
		h.Arrays = append(h.Arrays, arrayInfo{name, len(values)})
		size += 4 * len(values)
	}
	slices.SortFunc(h.Arrays, func(a, b arrayInfo) int { return strings.Compare(a.Name, b.Name) })
	text, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	out := make([]byte, 0, len(checkpointFormat)+8+len(text)+size+sha256.Size)
	out = append(out, checkpointFormat...)
	out = binary.LittleEndian.AppendUint64(out, uint64(len(text)))
	out = append(out, text...)
	for _, a := range h.Arrays {
		out = ndarray.AppendBytes(out, c.Arrays[a.Name])
	}
	sum := sha256.Sum256(out)
	return append(out, sum[:]...), nil
}

// errTorn marks a file that is not a whole checkpoint.
var errTorn = errors.New("the file is damaged or cut off")

// decodeCheckpoint reads what encode made. Every error wraps errTorn.
func decodeCheckpoint(file []byte) (*checkpoint, error) {
	body := len(file) - sha256.Size
	if body < 0 {
		return nil, errTorn
	}
	if sum := sha256.Sum256(file[:body]); !bytes.Equal(sum[:], file[body:]) {
		return nil, errTorn
	}
	return decodeBody(file[:body])
}

// decodeBody reads a checkpoint without its trailing sum.
func decodeBody(body []byte) (*checkpoint, error) {
	rest, ok := bytes.CutPrefix(body, []byte(checkpointFormat))
	if !ok || len(rest) < 8 {
		return nil, fmt.Errorf("%w: it does not start as a checkpoint of this version of miplc", errTorn)
	}
	length := binary.LittleEndian.Uint64(rest)
	rest = rest[8:]
	if length > uint64(len(rest)) {
		return nil, fmt.Errorf("%w: its header is longer than the file", errTorn)
	}
	var h header
	if err := json.Unmarshal(rest[:length], &h); err != nil {
		return nil, fmt.Errorf("%w: %v", errTorn, err)
	}
	rest = rest[length:]
	c := &checkpoint{Identity: h.Identity, Epoch: h.Epoch, Metrics: h.Metrics, Arrays: map[string][]float32{}}
	if c.Epoch < 0 || c.Epoch != len(c.Metrics) {
		return nil, fmt.Errorf("%w: it has metrics of %s and says %d", errTorn, diag.Count(len(c.Metrics), "epoch"), c.Epoch)
	}
	for _, a := range h.Arrays {
		if a.Len < 0 || a.Len > len(rest)/4 {
			return nil, fmt.Errorf("%w: array %s is longer than the file", errTorn, a.Name)
		}
		c.Arrays[a.Name], rest = ndarray.FromBytes[float32](rest[:4*a.Len]), rest[4*a.Len:]
	}
	if len(rest) != 0 {
		return nil, fmt.Errorf("%w: %d bytes are left over", errTorn, len(rest))
	}
	return c, nil
}

// save writes the checkpoint. The one before stays as PreviousFile. At every
// moment at least one whole checkpoint has its name in the directory, once
// there was one.
func (c *checkpoint) save(dir string) error {
	content, err := c.encode()
	if err != nil {
		return fmt.Errorf("checkpoint of epoch %d: %w", c.Epoch, err)
	}
	if err := replaceCheckpoint(dir, content); err != nil {
		return fmt.Errorf("checkpoint of epoch %d: %w", c.Epoch, err)
	}
	return nil
}

func replaceCheckpoint(dir string, content []byte) error {
	current, previous := filepath.Join(dir, CheckpointFile), filepath.Join(dir, PreviousFile)
	f, err := outfile.Create(current, outfile.Options{Force: true})
	if err != nil {
		return err
	}
	defer f.Discard()
	if _, err := f.Write(content); err != nil {
		return err
	}
	if err := f.Finish(); err != nil { // on the disk, before the old one loses its name
		return err
	}
	if err := os.Rename(current, previous); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return f.Commit()
}

// newestCheckpoint reads the newest whole checkpoint of a directory. Those passed
// over for it are damaged. Where there is none the error wraps fs.ErrNotExist;
// where all are damaged it names them.
func newestCheckpoint(dir string) (c *checkpoint, passed []damagedFile, err error) {
	for _, name := range []string{CheckpointFile, PreviousFile} {
		path := filepath.Join(dir, name)
		content, err := infile.Read(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		if c, err = decodeCheckpoint(content); err == nil {
			return c, passed, nil
		}
		passed = append(passed, damagedFile{path, err})
	}
	if len(passed) == 0 {
		return nil, nil, fmt.Errorf("there is no checkpoint in %s: %w", dir, fs.ErrNotExist)
	}
	var all []string
	for _, d := range passed {
		all = append(all, fmt.Sprintf("%s: %v", d.path, d.err))
	}
	return nil, passed, fmt.Errorf("no whole checkpoint is left in %s to go on from (%s): train again from the start, into another folder or over this one with --force",
		dir, strings.Join(all, "; "))
}

// damagedFile is a file that is not a whole checkpoint.
type damagedFile struct {
	path string
	err  error
}

// removeCheckpoints makes way for a run from the start.
func removeCheckpoints(dir string) error {
	for _, name := range []string{CheckpointFile, PreviousFile} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// matches explains how the identity of a checkpoint differs from that of the
// run, or returns nil.
func (c *checkpoint) matches(want Identity, dir string) error {
	var differ []string
	for _, part := range []struct{ what, have, want string }{
		{"spec", c.Identity.Spec, want.Spec},
		{"data set", c.Identity.Data, want.Data},
		{"split", c.Identity.Split, want.Split},
		{"engine", c.Identity.Engine, want.Engine},
		{"device", device(c.Identity.Device), device(want.Device)},
		{"number of trials beside it", fmt.Sprint(c.Identity.Beside), fmt.Sprint(want.Beside)},
	} {
		if part.have != part.want {
			differ = append(differ, fmt.Sprintf("%s (there %s, here %s)", part.what, short(part.have), short(part.want)))
		}
	}
	if differ == nil {
		return nil
	}
	return fmt.Errorf("the checkpoint in %s belongs to another %s: choose another directory, or start over without resuming",
		dir, strings.Join(differ, " and another "))
}

func device(name string) string {
	if name == "" {
		return "cpu"
	}
	return name
}

// short cuts a hash to what a person compares.
func short(s string) string {
	if len(s) > 12 {
		return s[:12]
	}
	if s == "" {
		return "none"
	}
	return s
}
