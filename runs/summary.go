// The summary of a finished run: accuracies, dataset, split and environment, as other programs read it.

package runs

import (
	"path/filepath"

	"github.com/miplc/miplc/data/measure"
	"github.com/miplc/miplc/internal/fileio"
	"github.com/miplc/miplc/runs/parity"
	"github.com/miplc/miplc/train"
)

// Summary is the content of SummaryFile. Accuracies are shares from 0 to 1; they are missing if no
// true label is known.
type Summary struct {
	Folder             string            `json:"folder,omitempty"` // name of the folder if several runs were trained; not in SummaryFile
	Name               string            `json:"name"`
	Version            string            `json:"miplc"`
	Learner            string            `json:"learner,omitempty"` // fitted learner; Engine is then its name and Epochs the number of its iterations
	Engine             string            `json:"engine"`
	EngineReason       string            `json:"engine_reason"` // why this engine on this device
	Device             string            `json:"device"`        // cpu, cuda or an execution provider
	DeviceName         string            `json:"device_name,omitempty"`
	Environment        *Environment      `json:"environment"`
	Epochs             int               `json:"epochs"`
	Seed               uint64            `json:"seed"`
	Parameters         int               `json:"parameters"`
	Diverged           *train.Divergence `json:"diverged,omitempty"` // nil unless the loss exploded
	Best               *train.Best       `json:"best,omitempty"`     // choice of train.best; Epochs is then that of the training that made the model
	TestAccuracy       *float64          `json:"accuracy,omitempty"` // of the test bags
	ValidationAccuracy *float64          `json:"validation_accuracy,omitempty"`
	SampledAccuracy    *float64          `json:"sampled_accuracy,omitempty"` // of the test bags, for learners that also predict by sampling
	TrainAccuracy      *float64          `json:"train_accuracy,omitempty"`
	Disambiguation     *float64          `json:"disambiguation_accuracy,omitempty"` // share of the training bags whose true label has the largest label weight
	Loss               float64           `json:"loss"`                              // mean of the last epoch
	Measures           train.Measures    `json:"measures"`                          // of the exported model, by part of the split
	DetailOf           string            `json:"detail_of"`                         // part of the split: test, or train without test bags
	Detail             *measure.Detail   `json:"detail"`                            // classes, confusion matrix and calibration of that part
	Baseline           *Baseline         `json:"baseline,omitempty"`                // nil if it is not defined for the data
	Findings           []Finding         `json:"findings"`                          // weaknesses of the run and its data, the most harmful first
	Temperature        *Temperature      `json:"temperature,omitempty"`             // nil without export.temperature
	Seconds            float64           `json:"seconds"`                           // of training
	Data               DataFacts         `json:"data"`
	Split              SplitSummary      `json:"split"`
	KnownLabels        map[string]int    `json:"known_labels,omitempty"` // bags with a true label, by part of the split; nil if all have one
	SpecSHA256         string            `json:"spec_sha256"`
	ModelSHA256        string            `json:"model_sha256"`
	Parity             *parity.Report    `json:"parity"`
	Files              []string          `json:"files"` // in the folder of the run
}

// DataFacts identifies a dataset.
type DataFacts struct {
	Name    string   `json:"name"`
	Bags    int      `json:"bags"`
	Classes []string `json:"classes"`
	SHA256  string   `json:"sha256"`
	Outside int      `json:"outside_candidates,omitempty"` // bags whose true label is not a candidate
}

// ReadSummary reads the summary of a finished run.
func ReadSummary(dir string) (*Summary, error) {
	s := &Summary{}
	return s, fileio.ReadJSON(filepath.Join(dir, SummaryFile), s)
}
