// Package cli combines the commands of miplc, one file per command, with common handling of
// errors, exit codes and panics.
package cli

import (
	"context"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/miplc/miplc/cmd/miplc/internal/console"
	"github.com/miplc/miplc/cmd/miplc/internal/quiet"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/fileio"
	"github.com/miplc/miplc/internal/resources"
)

func init() { quiet.End() }

// Main runs miplc with the arguments after the program name and returns the exit code.
func Main(args []string, con *console.Console) int {
	// A wrong flag ends parsing before --json is read, but its error must be JSON too.
	con.JSON = slices.Contains(args, "--json")
	con.Err = diag.CleanWriter(con.Err)
	limitProcessors(con.Getenv)
	ctx, stop := untilSignal(con)
	defer stop()
	ended := make(chan int, 1)
	go func() { ended <- con.CheckOutput(func() int { return run(ctx, args, con) }) }()
	select {
	case code := <-ended:
		return code
	case <-ctx.Done():
	}
	return endAfterSignal(con, ended)
}

// grace is how long a command may take after a signal to end itself.
const grace = 300 * time.Millisecond

// endAfterSignal ends a command after a signal and removes incomplete files.
func endAfterSignal(con *console.Console, ended <-chan int) int {
	for _, wait := range []func() time.Duration{func() time.Duration { return grace }, con.TimeAfterSignal} {
		select {
		case code := <-ended:
			return code
		case <-time.After(wait()):
		}
	}
	fileio.DiscardAll()
	if con.TimeAfterSignal() == 0 {
		fileio.AbandonAll()
	}
	return con.Interrupt()
}

// run runs the command and returns its exit code.
func run(ctx context.Context, args []string, con *console.Console) (code int) {
	defer func() {
		if r := recover(); r != nil {
			code = con.Report(bug(r, con.Getenv))
		}
	}()
	root, ran := newRoot(con), false
	root.PersistentPreRun = func(*cobra.Command, []string) { ran = true }
	root.SetArgs(args)
	root.SetOut(con.Out)
	root.SetErr(con.Err)
	err := root.ExecuteContext(ctx)
	if !ran { // errors of cobra are all about the command line
		con.JSON = slices.Contains(args, "--json") // a wrong flag may have unset it
		err = diag.Invalid(err)
	}
	return con.Report(err)
}

// untilSignal returns a context that the first signal cancels, after which the command ends in
// order. A second signal removes temporary files and ends the process at once.
func untilSignal(con *console.Console) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	signals, done := make(chan os.Signal, 2), make(chan struct{})
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // nohup ignores it
		signal.Notify(signals, syscall.SIGHUP)
	}
	go func() {
		for range 2 {
			select {
			case <-done:
				return
			case <-signals:
				cancel()
			}
		}
		fileio.DiscardAll()
		os.Exit(con.InterruptedCode())
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(done)
		cancel()
	}
}

// bug converts a panic to an error that asks for a report.
func bug(r any, getenv func(string) string) error {
	panicked := resources.Recovered(r)
	notes := []string{"please report it with the command line and the spec; MIPLC_DEBUG=1 shows where it happened"}
	if getenv("MIPLC_DEBUG") != "" {
		notes = strings.Split(strings.TrimSpace(string(panicked.Stack)), "\n")
	}
	return diag.Diagnostic{Text: panicked.Error(), Notes: notes}
}

// processorVariables are the variables with the number of processors that Slurm assigned to a task.
var processorVariables = []string{"SLURM_CPUS_PER_TASK", "SLURM_CPUS_ON_NODE"}

// limitProcessors limits the process to the processors that Slurm assigned to it, because not every cluster
// enforces that. The Go runtime itself respects affinity and control groups. GOMAXPROCS has
// precedence.
func limitProcessors(getenv func(string) string) {
	if getenv("GOMAXPROCS") != "" {
		return
	}
	for _, name := range processorVariables {
		if n, err := strconv.Atoi(getenv(name)); err == nil && n > 0 {
			runtime.GOMAXPROCS(min(n, runtime.GOMAXPROCS(0)))
			return
		}
	}
}
