// The replacement of a model that is in use, without interrupting predictions or surprising callers.

package runtime

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/miplc/miplc/internal/contract"
)

// openFile is an open file of a model, until Reload replaces it.
type openFile struct {
	options *options
	info    Info
	batch   bool // contract batch/1

	estimate *contract.Footprint
	small    int           // instances up to which a run needs little memory
	brief    int           // instances up to which a run is too short to watch its context
	chunked  *chunkedGraph // nil: bags are not predicted in chunks

	using   sync.RWMutex // read-locked by predictions, locked by close
	session Session      // nil after close
}

// errNotOpened is the error of a zero Model.
var errNotOpened = fmt.Errorf("%w: it was never opened; use Open or OpenBytes", ErrClosed)

// loaded returns the current file, or nil if the model was never opened.
func (m *Model) loaded() *openFile {
	if m == nil {
		return nil
	}
	return m.current.Load()
}

// acquire returns the file to predict with. The caller releases it with using.RUnlock.
func (m *Model) acquire() (*openFile, error) {
	for {
		f := m.loaded()
		if f == nil {
			return nil, errNotOpened
		}
		if f.using.TryRLock() { // fails while close waits, which must not delay predictions with the next file
			if f.session != nil {
				return f, nil
			}
			f.using.RUnlock()
		}
		if m.loaded() == f {
			return nil, ErrClosed
		}
	}
}

// close waits for the predictions in progress and frees the session.
func (f *openFile) close() error {
	f.using.Lock()
	defer f.using.Unlock()
	err := f.session.Close()
	f.session = nil
	return err
}

// Reload replaces the model by the one at path, with the options of Open, without interrupting
// predictions: those in progress use the old file, which is closed after the last of them; later
// ones use the new file. The new file must have the same input shape and the same classes in the
// same order, so that callers need not change. After an error, the old model stays in use.
func (m *Model) Reload(path string) error {
	if m.loaded() == nil {
		return errNotOpened
	}
	err := m.reload(path)
	if err != nil {
		m.options.log.Error("model not reloaded: the one in use stays", "path", path, "error", err)
	} else {
		m.options.log.Info("model reloaded", "path", path, "model", m.Info())
	}
	return err
}

func (m *Model) reload(path string) error {
	m.reloading.Lock()
	defer m.reloading.Unlock()
	old := m.current.Load()
	if old.session == nil {
		return ErrClosed
	}
	data, err := readFile(path)
	if err != nil {
		return err
	}
	f, err := m.options.open(data)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := old.info.CheckReplacement(f.info); err != nil {
		f.close()
		return fmt.Errorf("%s: %w: %w", path, ErrContract, err)
	}
	m.current.Store(f)
	if err := old.close(); err != nil {
		m.options.log.Warn("the model that was replaced is not freed", "error", err)
	}
	return nil
}

// CheckReplacement returns an error if callers would notice that next replaces this model: the input
// shape, the order of the features, the classes or the kind of labels differ, or next lacks the class
// attention.
func (i Info) CheckReplacement(next Info) error {
	if !slices.Equal(i.InputShape, next.InputShape) {
		return fmt.Errorf("it takes instances of shape %v, the model in use of %v", next.InputShape, i.InputShape)
	}
	for c := range max(len(i.Classes), len(next.Classes)) {
		switch {
		case c >= len(next.Classes):
			return fmt.Errorf("it has no class number %d, the model in use has %q", c+1, i.Classes[c])
		case c >= len(i.Classes):
			return fmt.Errorf("its class number %d, %q, is not one of the model in use", c+1, next.Classes[c])
		case i.Classes[c] != next.Classes[c]:
			return fmt.Errorf("its class number %d is %q, that of the model in use %q", c+1, next.Classes[c], i.Classes[c])
		}
	}
	switch {
	case i.Threshold == nil && next.Threshold != nil:
		return errors.New("it predicts any number of labels, the model in use one")
	case i.Threshold != nil && next.Threshold == nil:
		return errors.New("it predicts one label, the model in use any number")
	case i.ClassAttention && !next.ClassAttention:
		return errors.New("it has no attention of each class, which the model in use has")
	}
	if names, nextNames := i.featureNames(), next.featureNames(); len(names) > 0 && len(nextNames) > 0 &&
		!slices.Equal(names, nextNames) {
		return fmt.Errorf("its features are %.200q, those of the model in use %.200q", nextNames, names)
	}
	return nil
}

// featureNames returns the names of the features. It returns nil if they are unknown.
func (i Info) featureNames() []string {
	if i.Columns == nil {
		return nil
	}
	return i.Columns.Features
}

// Close waits for the predictions in progress and frees the model. Closing twice, or closing a zero
// Model, does nothing.
func (m *Model) Close() error {
	if m.loaded() == nil {
		return nil
	}
	m.reloading.Lock()
	defer m.reloading.Unlock()
	f := m.current.Load()
	if f.session == nil {
		return nil
	}
	err := f.close()
	m.options.log.Info("model closed", "model", f.info, "error", err)
	return err
}
