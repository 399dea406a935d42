// The figures that a run writes to its folder, those without data left out.

package runs

import (
	"bytes"
	"fmt"
	"io"
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
	classes := set.AllClassNames()
	figures := []struct {
		file string
		show bool
		draw func(io.Writer) error
	}{
		{lossPlot, len(report.Metrics) > 0, func(w io.Writer) error {
			return plot.LossAccuracy(w, title+": loss and accuracy", report.Metrics)
		}},
		{attentionPlot, len(report.Attention) > 0, func(w io.Writer) error {
			return plot.AttentionSnapshots(w, title+": attention scores", report.Attention)
		}},
		{weightsPlot, len(report.Trajectories) > 0, func(w io.Writer) error {
			return plot.WeightTrajectories(w, title+": label weights of training bags", report.Trajectories, classes)
		}},
		{confusionPlot, report.Detail.Accuracy != nil && report.Detail.Confusion != nil, func(w io.Writer) error {
			return plot.Confusion(w, fmt.Sprintf("%s: %s bags", title, report.DetailOf), report.Detail.Confusion, classes)
		}},
		{reliabilityPlot, len(report.Detail.Reliability) > 0, func(w io.Writer) error {
			return plot.Reliability(w, fmt.Sprintf("%s: calibration on the %s bags", title, report.DetailOf),
				report.Detail.Reliability)
		}},
	}
	var names []string
	for _, f := range figures {
		if !f.show {
			continue
		}
		var svg bytes.Buffer
		if err := f.draw(&svg); err != nil {
			return nil, fmt.Errorf("plot %s: %w", f.file, err)
		}
		if err := fileio.Replace(filepath.Join(dir, PlotsFolder, f.file), svg.Bytes()); err != nil {
			return nil, err
		}
		names = append(names, PlotsFolder+"/"+f.file)
	}
	return names, nil
}
