// The command miplc data inspect, which describes datasets and single bags.

package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/miplc/miplc/cmd/miplc/internal/console"
	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/bagfile"
	"github.com/miplc/miplc/data/formats"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/fileio"
	"github.com/miplc/miplc/runs/plot"
)

// inspectOptions are the settings of miplc data inspect.
type inspectOptions struct {
	Reading bagfile.Reading
	Console *console.Console
	Files   []string
	Bag     string // name, or number, from 1, if the bags have no names; empty: none
	SVG     string // picture of the bag
	Force   bool
}

// bagDescription describes one bag.
type bagDescription struct {
	Bag        int      `json:"bag"` // from 1
	Name       string   `json:"name,omitempty"`
	Instances  int      `json:"instances"`
	Candidates []string `json:"candidates"`
	True       string   `json:"true,omitempty"`
	Positive   []int    `json:"positive,omitempty"` // numbers of the positive instances, from 1
	SVG        string   `json:"svg,omitempty"`
}

func inspectCommand(con *console.Console) *cobra.Command {
	o := &inspectOptions{Console: con}
	cmd := &cobra.Command{
		Use:        "inspect FILE...",
		SuggestFor: []string{"info", "describe", "show", "check", "validate", "stats", "summary", "head"},
		Short:      "Validate and describe datasets, or describe and draw one bag",
		Long: `Validate datasets (` + formats.Readable().List() + `) and describe them in a table:

  | Dataset | #bags | #ins | #dim | avg. #ins | #class | avg. #CLs |
  |---|---:|---:|---:|---:|---:|---:|
  | bags | 2 | 3 | 2 | 1.5 | 2 | 2 |

#ins is the number of instances, #dim the number of features per instance, avg. #ins the
mean number of instances per bag, and avg. #CLs the mean number of candidates per bag. For
one file, the command also prints the classes and the SHA-256 of the data, which does not
depend on the format. If a spec has this value as data.sha256, miplc rejects other data.
With --bag, the command describes one bag instead: its name, candidates, true label and
positive instances (those with the true label in the column instance_label).

An invalid file is an error with exit code 1. The message names the line or the bag, and
says what to do:

  bags.csv:2: error: bag 1 ("a"): the true label "cow" is not among the candidates "cat dog"
          change the label or the candidates; leave an unknown label empty`,
		Example: `  miplc data inspect bags.csv
  miplc data inspect slides.csv --labels known --group-column patient
  miplc data inspect mnist-r1.npz fmnist-r1.npz
  miplc data inspect mnist-r1.npz --bag 3 --svg bag3.svg`,
		Args: console.Args(console.Arguments("FILE...", &o.Files)),
		RunE: func(*cobra.Command, []string) error { return runInspect(o) },
	}
	console.ReadingFlags(cmd.Flags(), &o.Reading)
	groupColumnFlag(cmd.Flags(), &o.Reading)
	labelsFlag(cmd.Flags(), &o.Reading)
	console.BagFlag(cmd.Flags(), &o.Bag, "bag to describe: its name or, if the bags have no names, its number from 1")
	cmd.Flags().StringVar(&o.SVG, "svg", "", "with --bag, SVG file to draw the bag to")
	cmd.Flags().BoolVar(&o.Force, "force", false, "overwrite an existing SVG file")
	return cmd
}

// runInspect describes datasets or a bag.
func runInspect(o *inspectOptions) error {
	switch {
	case o.SVG != "" && o.Bag == "":
		return console.Usagef("--svg draws one bag: give its number or name with --bag")
	case o.Bag != "" && len(o.Files) != 1:
		return console.Usagef("--bag describes a bag of one file, but %d files are given", len(o.Files))
	}
	var svg *fileio.File
	if o.SVG != "" {
		var err error
		if svg, err = o.Console.Create(o.SVG, fileio.WriteOptions{Force: o.Force, Inputs: o.Files}); err != nil {
			return err
		}
		defer svg.Discard()
	}
	var stats []data.Stats
	var bag *bagDescription
	for _, path := range o.Files {
		set, err := bagfile.OpenWith(path, o.Reading)
		if err != nil {
			return err
		}
		stats = append(stats, data.Describe(set))
		for _, text := range set.Warnings {
			o.Console.Notef("warning: %s", text)
		}
		if o.Bag != "" {
			if bag, err = o.bag(set, svg); err != nil {
				return err
			}
		}
	}
	result := map[string]any{"sets": stats}
	if bag != nil {
		result["bag"] = bag
	}
	return o.Console.Result(result, func(w io.Writer) {
		if bag != nil {
			bag.print(w)
			return
		}
		io.WriteString(w, data.StatsMarkdown(stats...))
		if len(stats) == 1 {
			fmt.Fprintf(w, "\n%s", stats[0].Details())
		}
	})
}

func (o *inspectOptions) bag(set *data.Dataset, svg *fileio.File) (*bagDescription, error) {
	i, err := set.Find(diag.Pos{File: o.Files[0]}, o.Bag)
	if err != nil {
		return nil, err
	}
	// with several labels: the true ones
	b := &bagDescription{Bag: i + 1, Instances: set.Size(i), Candidates: set.CandidateNames(i)}
	if set.BagNames != nil {
		b.Name = set.BagNames[i]
	}
	b.True = strings.Join(set.TrueNames(i), " ")
	for j := range set.Size(i) {
		if set.Positive(i, set.Offsets[i]+j) {
			b.Positive = append(b.Positive, j+1)
		}
	}
	if svg == nil {
		return b, nil
	}
	if err := plot.Bag(svg, set, i); err != nil {
		return nil, err
	}
	b.SVG = o.SVG
	return b, svg.Commit()
}

func (b *bagDescription) print(w io.Writer) {
	fmt.Fprintf(w, "bag %d", b.Bag)
	if b.Name != "" {
		diag.Fprintf(w, " (%s)", b.Name)
	}
	diag.Fprintf(w, ": %s, candidates %v", diag.Count(b.Instances, "instance"), b.Candidates)
	if b.True != "" {
		diag.Fprintf(w, ", true label %s", b.True)
	}
	fmt.Fprintln(w)
	if len(b.Positive) > 0 {
		diag.Fprintf(w, "positive instances %v\n", b.Positive)
	}
	if b.SVG != "" {
		diag.Fprintf(w, "drawn to %s\n", b.SVG)
	}
}
