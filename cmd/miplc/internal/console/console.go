// Package console is the environment of commands: the streams, whether a person or a
// program reads them, and the exit code. Tests replace it to run commands without a process.
package console

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/fileio"
	"github.com/miplc/miplc/train/xla/pjrt"
)

// Console is the environment of a command.
type Console struct {
	Out io.Writer // results
	Err io.Writer // progress and errors
	// JSON selects one JSON object on Out instead of text, also for errors.
	JSON bool
	// Terminal reports that Err is a terminal, on which a progress bar can redraw its line.
	Terminal bool
	Getenv   func(string) string
	// OpenDevice opens the devices of the engine xla; nil: pjrt.FirstDevice. Tests have further devices.
	OpenDevice pjrt.Opener

	timeAfterSignal atomic.Int64 // a time.Duration
	exitCode        atomic.Int64 // exit code if a signal ends the command; 0: ExitFailed
	lock            sync.Mutex
	interruption    string // what a signal leaves, see SayIfInterrupted
	answered        bool   // a result was printed
	ended           bool   // by a signal: print nothing more
}

// System returns the console of the process.
func System() *Console {
	return &Console{Out: os.Stdout, Err: os.Stderr, Terminal: isTerminal(os.Stderr), Getenv: os.Getenv}
}

// isTerminal distinguishes terminals from files and pipes. The null device is a character device
// too, but counts as a file.
func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}

// Result prints the result of a command: v as one JSON object, or the text that text writes. CheckOutput reports
// a failed write.
func (c *Console) Result(v any, text func(io.Writer)) error {
	c.lock.Lock()
	defer c.lock.Unlock()
	if c.ended {
		return nil
	}
	c.answered = true
	if c.JSON {
		return writeJSON(c.Out, v)
	}
	text(diag.CleanWriter(c.Out))
	return nil
}

// Resultf is Result with a text formatted by diag.Fprintf.
func (c *Console) Resultf(v any, format string, args ...any) error {
	return c.Result(v, func(w io.Writer) { diag.Fprintf(w, format, args...) })
}

// LastEpochs is the time after a signal for completing the current epochs.
const LastEpochs = 20 * time.Second

// AllowAfterSignal lets the command go on for a time after a signal, to save its state or to
// answer requests. exitCode is that of the process if the time is not sufficient. Other commands end at
// once.
func (c *Console) AllowAfterSignal(atMost time.Duration, exitCode int) {
	c.exitCode.Store(int64(exitCode))
	c.timeAfterSignal.Store(int64(atMost))
}

// SayIfInterrupted sets the error of a command that a signal ends from now on: what it leaves, and how to go on.
// Without it, the error is that the command was interrupted.
func (c *Console) SayIfInterrupted(text string) {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.interruption = text
}

// InterruptedCode returns the exit code if a signal ends the command now.
func (c *Console) InterruptedCode() int { return cmp.Or(int(c.exitCode.Load()), ExitFailed) }

// TimeAfterSignal returns the time that the command has after a signal; 0: none.
func (c *Console) TimeAfterSignal() time.Duration { return time.Duration(c.timeAfterSignal.Load()) }

// ResultOf prints the result of a command and returns err, which may be nil.
func (c *Console) ResultOf(err error, v any, text func(io.Writer)) error {
	if err != nil && c.JSON {
		return &Failure{Code: ExitFailed, Err: err, Result: v}
	}
	return cmp.Or(c.Result(v, text), err)
}

// Create starts a file that a command writes. If it is the standard output, the text result is
// printed to Err, and there is no JSON result.
func (c *Console) Create(path string, o fileio.WriteOptions) (*fileio.File, error) {
	o.AllowStream = true
	f, err := fileio.Create(path, o)
	if err != nil || !f.IsStdout() {
		return f, err
	}
	if c.JSON {
		f.Discard()
		return nil, Usagef("%s is where --json prints its object: name another file", path)
	}
	c.Out = c.Err
	return f, nil
}

// Notef prints a note to Err, unless output is JSON.
func (c *Console) Notef(format string, args ...any) {
	if !c.JSON {
		diag.Fprintf(c.Err, format+"\n", args...)
	}
}

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// Counter returns a counter of items, such as "images", which is silent if output is JSON.
func (c *Console) Counter(what string) *Counter {
	line := NewLine(c.Err, c.Terminal)
	if c.JSON {
		line = NewLine(io.Discard, false)
	}
	line.wait()
	return &Counter{line, what, time.Now()}
}

// Progress returns the writer for lines of progress, or nil if output is JSON.
func (c *Console) Progress() io.Writer {
	if c.JSON {
		return nil
	}
	return c.Err
}

// output is a writer that keeps its first error.
type output struct {
	to   io.Writer
	lock sync.Mutex
	err  error
}

func (o *output) Write(p []byte) (int, error) {
	n, err := o.to.Write(p)
	if err != nil {
		o.lock.Lock()
		defer o.lock.Unlock()
		if o.err == nil {
			o.err = err
		}
	}
	return n, err
}

// CheckOutput runs a command and returns its exit code, or ExitFailed if the command succeeded but
// Out could not be written: a script must not mistake a part of a result for the whole. Commands
// need not check each write.
func (c *Console) CheckOutput(run func() int) int {
	out := &output{to: c.Out}
	c.Out = out
	code := run()
	out.lock.Lock()
	defer out.lock.Unlock()
	if code == ExitDone && out.err != nil {
		fmt.Fprintf(c.Err, "error: the standard output cannot be written: %v\n", out.err)
		return ExitFailed
	}
	return code
}
