package runs

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/internal/outfile"
	"github.com/miplc/miplc/internal/plot"
	"github.com/miplc/miplc/train"
)

// Files of the figures, in the folder of plots.
const (
	lossPlot      = "loss.svg"
	attentionPlot = "attention.svg"
	weightsPlot   = "label-weights.svg"
	confusionPlot = "confusion.svg"
)

var plotFiles = []string{lossPlot, attentionPlot, weightsPlot, confusionPlot}

// writePlots draws the figures of a run into the folder of plots. Figures that
// have nothing to show are left out. It returns the names of the files.
func writePlots(dir, title string, report *train.Report, set *data.Dataset) ([]string, error) {
	classes := set.Names()
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
		{confusionPlot, slices.ContainsFunc(report.Confusion, func(row []int) bool { return slices.Max(row) > 0 }), func(w io.Writer) error {
			return plot.Confusion(w, fmt.Sprintf("%s: %s bags", title, report.ConfusionOf), report.Confusion, classes)
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
		if err := outfile.Replace(filepath.Join(dir, PlotsFolder, f.file), svg.Bytes()); err != nil {
			return nil, err
		}
		names = append(names, PlotsFolder+"/"+f.file)
	}
	return names, nil
}
