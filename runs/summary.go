// The summary of a finished run, as other programs read it, and the accuracies of several runs of one setting.

package runs

import (
	"path/filepath"

	"gonum.org/v1/gonum/stat"

	"github.com/miplc/miplc/export"
	"github.com/miplc/miplc/internal/fileio"
	"github.com/miplc/miplc/runs/judge"
	"github.com/miplc/miplc/train"
)

// Summary is the content of SummaryFile. Accuracies are shares from 0 to 1; they are missing if no
// true label is known.
type Summary struct {
	// name of the folder if several runs were trained; not in SummaryFile
	Folder  string `json:"folder,omitempty"`
	Name    string `json:"name"`
	Version string `json:"miplc"`
	// fitted learner; Engine is then its name and Epochs the number of its iterations
	Learner            string   `json:"learner,omitempty"`
	EngineReason       string   `json:"engine_reason"` // why this engine on this device
	Device             string   `json:"device"`        // cpu, cuda or an execution provider
	DeviceName         string   `json:"device_name,omitempty"`
	Seed               uint64   `json:"seed"`
	Parameters         int      `json:"parameters"`
	TestAccuracy       *float64 `json:"accuracy,omitempty"` // of the test bags
	ValidationAccuracy *float64 `json:"validation_accuracy,omitempty"`
	Assessment
	train.Training
	train.Evaluation              // of the exported model
	Temperature      *Temperature `json:"temperature,omitempty"` // nil without export.temperature
	Data             DataFacts    `json:"data"`
	Split            SplitSummary `json:"split"`
	// bags with a true label, by part of the split; nil if all have one
	KnownLabels map[string]int    `json:"known_labels,omitempty"`
	SpecSHA256  string            `json:"spec_sha256"`
	ModelSHA256 string            `json:"model_sha256"`
	Parity      *export.Agreement `json:"parity"`
	Files       []string          `json:"files"` // in the folder of the run
}

// Assessment is what a run has shown, in its training and by the predictions of its model file. The summary of a run
// and the result of a cell of an experiment share it.
type Assessment struct {
	Engine        string            `json:"engine,omitempty"` // that trained, or the learner
	Environment   *Environment      `json:"environment,omitempty"`
	Diverged      *train.Divergence `json:"diverged,omitempty"` // nil unless the loss exploded
	TrainAccuracy *float64          `json:"train_accuracy,omitempty"`
	// share of the training bags whose true label has the largest label weight
	Disambiguation *float64 `json:"disambiguation_accuracy,omitempty"`
	// nil if it is not defined for the data
	Baseline *judge.Baseline `json:"baseline,omitempty"`
	// weaknesses of the run and its data, the most harmful first; nil: not sought
	Findings []judge.Finding `json:"findings,omitzero"`
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

// SettingResults are the accuracies of the runs of one setting.
type SettingResults struct {
	Setting string   `json:"setting"`                // names of the runs without seed and split; "" if there is no more
	Runs    int      `json:"runs"`                   // with a test accuracy
	Mean    *float64 `json:"accuracy,omitempty"`     // of the test bags; nil: no run has one
	Std     *float64 `json:"accuracy_std,omitempty"` // sample standard deviation; nil for fewer than two runs
}

// average sets the number of diverged runs, and the mean and deviation of the accuracies of each
// setting.
func (r *Results) average(trials []*train.Trial) {
	accuracies := map[string]*float64{} // by name of the run
	for _, s := range r.Runs {
		accuracies[s.Folder] = s.TestAccuracy
		if s.Diverged != nil {
			r.Diverged++
		}
	}
	index, lists := map[string]int{}, [][]float64{}
	for _, t := range trials {
		i, found := index[t.Setting]
		if !found {
			i = len(lists)
			index[t.Setting], lists = i, append(lists, nil)
			r.Settings = append(r.Settings, SettingResults{Setting: t.Setting})
		}
		if v := accuracies[t.Name]; v != nil {
			lists[i] = append(lists[i], *v)
		}
	}
	for i, list := range lists {
		s := &r.Settings[i]
		if s.Runs = len(list); s.Runs > 0 {
			s.Mean = new(stat.Mean(list, nil))
		}
		if s.Runs > 1 {
			s.Std = new(stat.StdDev(list, nil))
		}
	}
}
