// The figures that a run writes to its folder, those without data left out.

package runs

import (
	"fmt"
	"path/filepath"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/internal/fileio"
	"github.com/miplc/miplc/runs/plot"
	"github.com/miplc/miplc/train"
)

// Names of the figures in PlotsFolder.
const (
	lossPlot        = "loss.svg"
	attentionPlot   = "attention.svg"
	weightsPlot     = "label-weights.svg"
	confusionPlot   = "confusion.svg"
	reliabilityPlot = "reliability.svg"
)

var plotFiles = []string{lossPlot, attentionPlot, weightsPlot, confusionPlot, reliabilityPlot}

// writePlots writes the figures of a run, except those without data, and returns their names in the
// folder of the run.
func writePlots(dir, title string, report *train.Report, set *data.Dataset) ([]string, error) {
	classes, detail := set.AllClassNames(), report.Detail
	figures := map[string][]byte{}
	if len(report.Metrics) > 0 {
		figures[lossPlot] = plot.LossAccuracy(title+": loss and accuracy", report.Metrics)
	}
	if len(report.Attention) > 0 {
		figures[attentionPlot] = plot.AttentionSnapshots(title+": attention scores", report.Attention)
	}
	if len(report.Trajectories) > 0 {
		figures[weightsPlot] = plot.WeightTrajectories(title+": label weights of training bags", report.Trajectories, classes)
	}
	if detail.Accuracy != nil && detail.Confusion != nil {
		figures[confusionPlot] = plot.Confusion(fmt.Sprintf("%s: %s bags", title, report.DetailOf), detail.Confusion, classes)
	}
	if len(detail.Reliability) > 0 {
		figures[reliabilityPlot] = plot.Reliability(fmt.Sprintf("%s: calibration on the %s bags", title, report.DetailOf),
			detail.Reliability)
	}
	var names []string
	for _, file := range plotFiles {
		if figures[file] == nil {
			continue
		}
		if err := fileio.Replace(filepath.Join(dir, PlotsFolder, file), figures[file]); err != nil {
			return nil, err
		}
		names = append(names, PlotsFolder+"/"+file)
	}
	return names, nil
}
