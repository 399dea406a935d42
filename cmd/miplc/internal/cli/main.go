// Package cli combines the commands of miplc, one package per command, with common handling of
// errors, exit codes and panics.
package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/miplc/miplc/cmd/miplc/internal/console"
	"github.com/miplc/miplc/cmd/miplc/internal/quiet"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/fileio"
	"github.com/miplc/miplc/internal/workers"
)

func init() { quiet.End() }

// Main runs miplc with the arguments after the program name and returns the
// exit code.
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
	select {
	case code := <-ended:
		return code
	case <-time.After(grace):
	}
	allowed := con.TimeAfterSignal()
	if allowed == 0 {
		fileio.DiscardAll()
		fileio.AbandonAll()
		return con.Interrupt()
	}
	select {
	case code := <-ended:
		return code
	case <-time.After(allowed):
	}
	fileio.DiscardAll()
	return con.Interrupt()
}

// run runs the command and returns its exit code.
func run(ctx context.Context, args []string, con *console.Console) (code int) {
	defer func() {
		if r := recover(); r != nil {
			code = con.Report(bug(r, con.Getenv))
		}
	}()
	root := newRoot(con)
	root.SetArgs(args)
	root.SetIn(con.In)
	root.SetOut(con.Out)
	root.SetErr(con.Err)
	err := root.ExecuteContext(ctx)
	if ran := (*commandError)(nil); err != nil && !errors.As(err, &ran) {
		con.JSON = slices.Contains(args, "--json") // a wrong flag may have unset it
	}
	return con.Report(asUsage(err))
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
	panicked := workers.Recovered(r)
	notes := []string{"please report it with the command line and the spec; MIPLC_DEBUG=1 shows where it happened"}
	if getenv("MIPLC_DEBUG") != "" {
		notes = strings.Split(strings.TrimSpace(string(panicked.Stack)), "\n")
	}
	return diag.Diagnostic{Text: panicked.Error(), Notes: notes}
}

// asUsage adds the exit code for wrong usage to errors of cobra, which are all about the command line.
func asUsage(err error) error {
	var failure *console.Failure
	var ran *commandError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &ran):
		return ran.err
	case errors.As(err, &failure):
		return err
	}
	return console.Invalid(err)
}

// commandError marks an error as one of the command, in contrast to errors of cobra about the
// arguments.
type commandError struct{ err error }

func (e *commandError) Error() string { return e.err.Error() }
func (e *commandError) Unwrap() error { return e.err }

// markRun wraps the errors of all commands in commandError.
func markRun(cmd *cobra.Command) {
	if run := cmd.RunE; run != nil {
		cmd.RunE = func(c *cobra.Command, args []string) error {
			if err := run(c, args); err != nil {
				return &commandError{err}
			}
			return nil
		}
	}
	for _, sub := range cmd.Commands() {
		markRun(sub)
	}
}
