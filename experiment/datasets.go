// The datasets of an experiment and their splits: found or generated, opened once, and freed after the last cell.

package experiment

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/bagfile"
	"github.com/miplc/miplc/data/generate"
	"github.com/miplc/miplc/experiment/definition"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/fileio"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/language/schema"
	"github.com/miplc/miplc/runs/prepare"
)

// SetFacts describes one dataset at one r.
type SetFacts struct {
	Name   string `json:"name"`
	R      int    `json:"r"`
	Domain string `json:"domain,omitempty"`
	Source string `json:"source"` // the file, or the generator
	// Encoder is the encoder that computed the features, see encoderOf.
	Encoder string `json:"encoder,omitempty"`
	data.Stats
	Warnings []string `json:"warnings,omitempty"` // of the splits
}

// warn adds the warnings of a split, each once.
func (f *SetFacts) warn(split *data.Split) {
	for _, text := range split.Warnings {
		if !slices.Contains(f.Warnings, text) {
			f.Warnings = append(f.Warnings, text)
		}
	}
}

// encoderOf returns the keys of data.encoder that change features, or "" for a spec without an encoder.
func encoderOf(spec *language.Spec) string {
	if !spec.Encodes() {
		return ""
	}
	e := &spec.Data.Encoder
	return fmt.Sprintf("%q %q %d %v %v %q", e.File.V, e.Output.V, e.Size.V, e.Mean.V, e.Std.V, e.Order.V)
}

// sharedDataset is a dataset that cells share. It is opened for the first of them and freed after the
// last.
type sharedDataset struct {
	facts    SetFacts
	path     string
	labels   string         // data.labels of the specs
	folder   bagfile.Folder // where files are searched, and limits for reading them
	splits   definition.Splits
	bags     string            // see data.Dataset.HashOfInstances
	encode   prepare.Encode    // of images
	encoder  *language.Spec    // a spec with the encoder of the features; nil: the file contains them
	files    map[string]string // of a table of bags, see bagfile.FilesOf
	features *stagedFeatures   // in a shard: path is a copy of the features that an encoder computed

	mu      sync.Mutex
	opened  *prepare.Bags
	waiting int // number of cells that still need it
}

// open returns the bags, which stay open until done has been called once for each cell counted in waiting.
func (in *sharedDataset) open() (*prepare.Bags, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.opened != nil {
		return in.opened, nil
	}
	set, err := in.openBags()
	if err != nil {
		return nil, err
	}
	if set.Hash() != in.facts.Hash {
		return nil, fmt.Errorf("%s was changed since the experiment was planned", in.path)
	}
	set.Name = in.facts.title()
	in.opened = set
	return set, nil
}

// openBags reads the dataset with the groups that its splits need, or computes its features.
func (in *sharedDataset) openBags() (*prepare.Bags, error) {
	o := in.folder.Reading
	o.Labels, o.Form = bagfile.Labels(in.labels), bagfile.ExperimentForm
	o.Columns.Roles.Group = in.splits.Group.V
	if in.encoder != nil {
		images, err := prepare.OpenImages(&in.encoder.Data.Encoder, in.path, o, in.folder)
		if err != nil {
			return nil, err
		}
		return in.encode(images)
	}
	if info, err := os.Stat(in.path); err == nil && info.IsDir() {
		return nil, diag.Errorf(diag.Pos{File: in.path}, "a folder has images, and a learner on it has no encoder").
			WithNote("set data.encoder in the specs of all learners on this dataset")
	}
	if in.features != nil {
		if err := checkUnchanged(in.path, in.features.SHA256); err != nil {
			return nil, err
		}
	}
	set, err := bagfile.OpenWith(in.path, o)
	if err == nil && in.features != nil {
		set.Source = in.features.Source
	}
	return &prepare.Bags{Dataset: set}, err
}

// done frees the bags after the last cell.
func (in *sharedDataset) done() {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.waiting--; in.waiting == 0 {
		in.opened = nil
	}
}

func (f *SetFacts) title() string {
	if f.R == definition.Stored {
		return f.Name
	}
	return fmt.Sprintf("%s r=%d", f.Name, f.R)
}

// placeData finds or generates a dataset and returns the path of its file.
func placeData(d *definition.DataSet, r int, dir string, folder bagfile.Folder) (path,
	source string, err error) {
	if d.Synth != nil {
		return cachedSynth(d.Synth, d.Name.V, r, dir, folder)
	}
	name := strings.ReplaceAll(d.File.V, definition.RPlaceholder, strconv.Itoa(r))
	path, err = prepare.FindData(schema.Str{V: name, Pos: d.File.Pos}, folder)
	return path, filepath.Base(name), err
}

// drawVersion is increased when the same description generates other bags, or in another order.
const drawVersion = 3

// cachedSynth generates a dataset in the folder of the experiment unless it exists. The name of the
// file contains a hash of the description.
func cachedSynth(s *definition.Synth, name string, r int, dir string, folder bagfile.Folder) (path, source string,
	err error) {
	text, err := json.Marshal(s)
	if err != nil {
		return "", "", err
	}
	hash := sha256.Sum256(fmt.Appendf(nil, "%d %s r %d %s", drawVersion, s.Set.V, r, text))
	source = fmt.Sprintf("%s, seed %d", s.Set.V, s.Seed)
	path = filepath.Join(dir, DataFolder, fmt.Sprintf("%s-r%d-%x.npz", diag.FileName(name), r, hash[:4]))
	if _, err := os.Stat(path); err == nil {
		return path, source, nil
	}
	if err := fileio.Sweep(path); err != nil { // files of killed processes: the folder belongs to the experiment
		return "", "", err
	}
	set, err := draw(s, r, folder)
	if err != nil {
		return "", "", err
	}
	return path, source, bagfile.Save(path, set)
}

func draw(s *definition.Synth, r int, folder bagfile.Folder) (*data.Dataset, error) {
	if s.Set.V != generate.PrototypeSet && folder.Dir == "" {
		return nil, errors.New("it is drawn from labelled instances: --data-dir or MIPLC_DATA names their folder")
	}
	o := s.Design
	o.Source, o.Limit, o.R, o.Seed = folder.Dir, folder.MaxBytes, &r, uint64(s.Seed)
	return generate.Synth(s.Set.V, o)
}

// makeSplit returns split i of a dataset, counted from 1.
func makeSplit(s definition.Splits, i int, set *data.Dataset, folder bagfile.Folder) (*data.Split, error) {
	if s.Pools == 0 {
		one := s.At(i)
		return prepare.OpenSplit(&one, set, folder)
	}
	list, err := generate.SplitPools(set.Bags(), set.Classes, s.Pools, i, data.SplitSettings{Train: s.Train.V,
		Stratify: s.Stratify.V, Seed: uint64(s.Seed.V)})
	if err != nil {
		return nil, prepare.Misfit(&s.Split, err)
	}
	if len(list) < i {
		return nil, fmt.Errorf("%d pools have only %d different splits with a share of %g training bags; reduce splits.count",
			s.Pools, len(list), s.Train.V)
	}
	return list[i-1], nil
}

// holdOut splits off a share of the training bags of a split for choosing a setting: the result trains on the others
// and tests on these. With folds, there is a result for each. Groups stay together if those of the split do.
func holdOut(set *data.Dataset, whole *data.Split, c definition.Choose, number int, grouped bool) ([]*data.Split,
	error) {
	setting := fmt.Sprintf("holdout %v", c.Holdout.V)
	if c.Folds.V > 0 {
		setting = fmt.Sprintf("folds %d", c.Folds.V)
	}
	seed := c.Seed + number - 1
	list, err := prepare.HoldOutFolds(set, whole, grouped, data.SplitSettings{Train: 1 - c.Holdout.V, Folds: c.Folds.V,
		Stratify: c.Stratify, Seed: uint64(seed)})
	if err != nil {
		fault := diag.Diagnostic{Text: fmt.Sprintf("choose.%s of the training bags of split %d: %v", setting, number, err)}
		if wrong, ok := errors.AsType[*data.SplitError](err); ok {
			fault = fault.WithNote("%s", wrong.Note)
		}
		return nil, fault
	}
	for i, inner := range list {
		inner.Source = fmt.Sprintf("%s, held out %v, seed %d", whole.Source, c.Holdout.V, seed)
		if c.Folds.V > 0 {
			inner.Source = fmt.Sprintf("%s, fold %d of %d, seed %d", whole.Source, i+1, c.Folds.V, seed)
		}
	}
	return list, nil
}

// DataError marks an error of a dataset, as opposed to the experiment and its specs.
type DataError struct{ Err error }

func (e *DataError) Error() string { return e.Err.Error() }
func (e *DataError) Unwrap() error { return e.Err }

// dataError returns an error of a dataset with its position in the file.
func dataError(e *definition.Experiment, d *definition.DataSet, r int, err error) error {
	return dataErrorAt(e, d.Name, SetFacts{Name: d.Name.V, R: r}, err)
}

// dataErrorAt returns a dataError at a setting of the dataset.
func dataErrorAt(e *definition.Experiment, at schema.Str, f SetFacts, err error) error {
	one := diag.Diagnostic{Text: err.Error()}
	if list, ok := diag.ListOf(err); ok {
		one = list[0]
	}
	if one.Pos.File == e.File && one.Pos.Line > 0 {
		return &DataError{Err: e.AddSource(one)}
	}
	text := one.Text
	if !one.Pos.IsZero() {
		text = one.Pos.String() + ": " + text
	}
	shown := e.ShowAt(at.Pos, "%s: %s", f.title(), text)
	shown.Suggestion, shown.Notes = one.Suggestion, one.Notes
	return &DataError{Err: shown}
}
