// The measurements of epochs, and their file.

package train

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/internal/fileio"
)

// MetricsFile is the name of the file with one line of JSON per epoch.
const MetricsFile = "metrics.jsonl"

// Metrics are the measurements of one epoch.
type Metrics struct {
	Epoch  int     `json:"epoch"` // from 1
	LR     float64 `json:"lr"`
	Lambda float64 `json:"lambda"`
	Loss   float64 `json:"loss"` // mean over the bags, before the update of each step
	// of the first step of the first epoch, before any update; nil in later epochs
	StartLoss *float64           `json:"start_loss,omitempty"`
	Terms     map[string]float64 `json:"terms"` // unweighted means, by name
	// FromSteps: the measures of the training bags are those of the predictions of the steps,
	// each made before the update of its step.
	FromSteps bool     `json:"train_from_steps,omitempty"`
	Measures  Measures `json:"measures,omitempty"` // nil if not measured in this epoch
	// training bags whose largest label weight is on the true label
	Disambiguation *float64 `json:"disambiguation_accuracy"`
	Seconds        float64  `json:"seconds"`
}

// MarshalJSON adds the accuracies of the training and the test bags, which are in Measures, under names of
// their own.
func (m Metrics) MarshalJSON() ([]byte, error) {
	type plain Metrics
	return json.Marshal(struct {
		plain
		TrainAccuracy *float64 `json:"train_accuracy"`
		TestAccuracy  *float64 `json:"test_accuracy"`
	}{plain(m), m.Measures.Accuracy(data.TrainPart), m.Measures.Accuracy(data.TestPart)})
}

// openMetrics replaces the file by one with the finished epochs, because the old file may have
// epochs after the checkpoint. It reads the seconds of the epochs from the old file, because
// checkpoints have no times. The file is nil without a path.
func openMetrics(path string, done []Metrics) (*os.File, error) {
	if path == "" {
		return nil, nil
	}
	if len(done) > 0 {
		if err := readSeconds(path, done); err != nil {
			return nil, err
		}
	}
	if err := WriteMetrics(path, done); err != nil {
		return nil, err
	}
	return fileio.Append(path)
}

// readSeconds sets the seconds of the epochs that are in the old file. It skips lines that it
// cannot read, such as one cut off by a crash.
func readSeconds(path string, done []Metrics) error {
	f, _, err := fileio.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var m Metrics
		if json.Unmarshal(lines.Bytes(), &m) == nil && m.Epoch >= 1 && m.Epoch <= len(done) {
			done[m.Epoch-1].Seconds = m.Seconds
		}
	}
	return nil
}

// WriteMetrics writes the metrics file of some epochs.
func WriteMetrics(path string, list []Metrics) error {
	var text bytes.Buffer
	for _, m := range list {
		if err := writeMetrics(&text, m); err != nil {
			return err
		}
	}
	return fileio.Replace(path, text.Bytes())
}

// writeMetrics writes the line of an epoch.
func writeMetrics(w io.Writer, m Metrics) error {
	if err := json.NewEncoder(w).Encode(m); err != nil {
		return fmt.Errorf("metrics of epoch %d: %w", m.Epoch, err)
	}
	return nil
}
