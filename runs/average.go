// Accuracies of several runs of one setting, averaged over seeds and splits.

package runs

import (
	"regexp"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/miplc/miplc/train"
)

// SettingResults are the accuracies of the runs of one setting.
type SettingResults struct {
	Setting string   `json:"setting"`                // names of the runs without seed and split; "" if there is no more
	Runs    int      `json:"runs"`                   // with a test accuracy
	Mean    *float64 `json:"accuracy,omitempty"`     // of the test bags; nil: no run has one
	Std     *float64 `json:"accuracy_std,omitempty"` // sample standard deviation; nil for fewer than two runs
}

// seedAndSplit matches the parts of the name of a run that do not name its setting.
var seedAndSplit = regexp.MustCompile(`(^|-)((split|seed|number|fold)-\d+(-|$))+`)

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
		setting := strings.Trim(seedAndSplit.ReplaceAllString(t.Name, "-"), "-")
		i, found := index[setting]
		if !found {
			i = len(lists)
			index[setting], lists = i, append(lists, nil)
			r.Settings = append(r.Settings, SettingResults{Setting: setting})
		}
		if v := accuracies[t.Name]; v != nil {
			lists[i] = append(lists[i], *v)
		}
	}
	for i, list := range lists {
		r.Settings[i].setAccuracies(list)
	}
}

func (s *SettingResults) setAccuracies(list []float64) {
	if s.Runs = len(list); len(list) == 0 {
		return
	}
	mean := stat.Mean(list, nil)
	s.Mean = &mean
	if len(list) > 1 {
		std := stat.StdDev(list, nil)
		s.Std = &std
	}
}
