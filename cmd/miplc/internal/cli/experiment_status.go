// The command miplc experiment status, which shows how far the processes of an experiment are.

package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/miplc/miplc/cmd/miplc/internal/console"
	"github.com/miplc/miplc/experiment"
	"github.com/miplc/miplc/internal/diag"
)

func statusCommand(con *console.Console) *cobra.Command {
	dir, watch := "", false
	cmd := &cobra.Command{
		Use:   "status DIR",
		Short: "Show the progress of an experiment on all machines",
		Long: `Print how many cells in DIR are finished, failed and missing, why cells failed, which
processes run, and an estimate of the remaining time.

A running process updates the time of its results file every half minute. A process
counts as running if its file is not closed and was updated within the last two minutes.
--watch repeats every few seconds until every cell has a result and no process runs, or until
Ctrl-C.
The exit status is 0 even if cells failed; --json has the number of failed cells.`,
		Example: "  miplc experiment status table\n  miplc experiment status table --watch",
		Args:    console.Args(console.Arg("DIR", &dir)),
		RunE:    func(cmd *cobra.Command, _ []string) error { return runStatus(cmd.Context(), con, dir, watch) },
	}
	cmd.Flags().BoolVar(&watch, "watch", false, "repeat until the experiment ends")
	return cmd
}

// lookAgain is the interval of --watch.
const lookAgain = 5 * time.Second

// runStatus prints the status once. With --watch it prints it repeatedly, until every cell has a result
// and no process runs, or until the user interrupts it.
func runStatus(ctx context.Context, con *console.Console, dir string, watch bool) error {
	if watch && con.JSON {
		return console.Usagef("miplc experiment status: --watch prints repeatedly and --json prints one object: give only " +
			"one of them")
	}
	line := console.NewLine(con.Err, con.Terminal)
	defer line.End()
	for {
		s, err := experiment.ReadStatus(dir, time.Now())
		if err != nil {
			return err
		}
		over := s.Done+s.Failed == s.Cells && len(s.Running) == 0
		if !watch || over || ctx.Err() != nil {
			line.Clear()
			return con.Result(s, func(w io.Writer) { printStatus(w, dir, s) })
		}
		if line.Due() {
			line.Show(summaryOf(s))
		}
		select {
		case <-ctx.Done():
		case <-time.After(lookAgain):
		}
	}
}

// summaryOf returns the line that --watch redraws.
func summaryOf(s *experiment.Status) string {
	text := fmt.Sprintf("%s, %s at work", countCells(s.Done, s.Cells, s.Failed),
		diag.CountForms(len(s.Running), "process", "processes"))
	if s.Left != nil {
		text += ", about " + span(*s.Left) + " left"
	}
	return text
}

// maxShown is the number of processes and of failures that are listed.
const maxShown = 10

func printStatus(w io.Writer, dir string, s *experiment.Status) {
	diag.Fprintf(w, "%s: %d of %s done, %d failed\n", s.Name, s.Done, diag.CountForms(s.Cells, "cell is", "cells are"),
		s.Failed)
	for _, p := range s.Running[:min(len(s.Running), maxShown)] {
		diag.Fprintf(w, "  %s runs on %s, last seen %s ago\n", p.Part, p.Host, span(p.Silent))
	}
	if more := len(s.Running) - maxShown; more > 0 {
		fmt.Fprintf(w, "  and %d more\n", more)
	}
	for _, f := range s.Failures[:min(len(s.Failures), maxShown)] {
		diag.Fprintf(w, "  failed: %s: %s\n", f.Coord.String(), f.Error)
	}
	if more := len(s.Failures) - maxShown; more > 0 {
		fmt.Fprintf(w, "  and %d more cells failed\n", more)
	}
	if n := len(s.Differ); n > 0 {
		diag.Fprintf(w, "  %s computed more than once with results that are not the same, the first is %s\n",
			diag.CountForms(n, "cell was", "cells were"), s.Differ[0].String())
	}
	if left := s.Cells - s.Done; left > 0 {
		fmt.Fprintln(w, timeLeft(s, left))
	} else {
		diag.Fprintf(w, "tables and figures: miplc report %s\n", diag.ShellWord(dir))
	}
}

// timeLeft says how long the cells that are left take.
func timeLeft(s *experiment.Status, cells int) string {
	text := diag.CountForms(cells, "cell is", "cells are") + " left"
	if s.Seconds != nil {
		text += fmt.Sprintf(", about %s of one core", span(*s.Seconds))
	}
	switch {
	case s.Left != nil:
		return text + fmt.Sprintf("; %s with %s", span(*s.Left), diag.CountForms(len(s.Running), "running process",
			"running processes"))
	case len(s.Running) == 0:
		return text + "; no process is running"
	}
	return text + "; the time is known after the first cell"
}
