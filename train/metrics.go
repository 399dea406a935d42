package train

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/miplc/miplc/internal/infile"
	"github.com/miplc/miplc/internal/outfile"
)

// MetricsFile is the name of the file with one line of JSON per epoch.
const MetricsFile = "metrics.jsonl"

// Metrics is what one epoch measured. Accuracies are shares from 0 to 1 of the
// bags whose true label is known; nil if not measured in this epoch or if none
// is known.
type Metrics struct {
	Epoch         int                `json:"epoch"` // from 1
	LR            float64            `json:"lr"`
	Lambda        float64            `json:"lambda"`
	Loss          float64            `json:"loss"`                 // mean over the bags, as the steps saw them
	StartLoss     *float64           `json:"start_loss,omitempty"` // of the first step of the first epoch, before any update; nil in later epochs
	Terms         map[string]float64 `json:"terms"`                // unweighted, the same mean
	TrainAccuracy *float64           `json:"train_accuracy"`
	TestAccuracy  *float64           `json:"test_accuracy"`
	// FromSteps: the measures of the training bags are those of the predictions of the steps,
	// each made before the update of its step.
	FromSteps      bool     `json:"train_from_steps,omitempty"`
	Measures       Measures `json:"measures,omitempty"`      // nil if not measured in this epoch
	Disambiguation *float64 `json:"disambiguation_accuracy"` // training bags whose largest label weight is on the true label
	Seconds        float64  `json:"seconds"`
}

// metricsLog appends one line per epoch to the metrics file. Without a
// file it does nothing.
type metricsLog struct {
	file *os.File
}

// openMetrics starts the file with the epochs that are done already, so that a
// file which ran ahead of its checkpoint gets no epoch twice. The file is
// replaced as a whole. Seconds of the done epochs come from the old file:
// checkpoints hold no times.
func openMetrics(path string, done []Metrics) (*metricsLog, error) {
	if path == "" {
		return &metricsLog{}, nil
	}
	if len(done) > 0 {
		if err := recallSeconds(path, done); err != nil {
			return nil, err
		}
	}
	if err := WriteMetrics(path, done); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|infile.NonBlocking, 0)
	if err != nil {
		return nil, err
	}
	return &metricsLog{file: f}, nil
}

func (l *metricsLog) add(m Metrics) error {
	if l.file == nil {
		return nil
	}
	line, err := m.line()
	if err != nil {
		return err
	}
	_, err = l.file.Write(line)
	return err
}

func (l *metricsLog) close() error {
	if l.file == nil {
		return nil
	}
	return l.file.Close()
}

func (m *Metrics) line() ([]byte, error) {
	line, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("metrics of epoch %d: %w", m.Epoch, err)
	}
	return append(line, '\n'), nil
}

// recallSeconds fills in the seconds of epochs that the old file knows. Lines
// that cannot be read, such as one cut off by a crash, are passed over.
func recallSeconds(path string, done []Metrics) error {
	f, _, err := infile.Open(path)
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

// WriteMetrics writes the metrics file of the epochs that are done.
func WriteMetrics(path string, list []Metrics) error {
	var text []byte
	for i := range list {
		line, err := list[i].line()
		if err != nil {
			return err
		}
		text = append(text, line...)
	}
	return outfile.Replace(path, text)
}
