// Package console is what a command sees of the outside world: the streams,
// whether a person or a machine reads them, and the exit code. Commands get it
// injected, so tests run them without a process.
package console

import (
	"cmp"
	"encoding/json"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/miplc/miplc/internal/outfile"
	"github.com/miplc/miplc/internal/sanitize"
)

// Console is handed to every command.
type Console struct {
	In  io.Reader
	Out io.Writer // results
	Err io.Writer // progress and errors
	// JSON asks for one JSON object on Out, on failure too, in place of text.
	JSON bool
	// Terminal says that Err is a terminal: a progress bar may redraw its line.
	Terminal bool
	Getenv   func(string) string

	keeps    atomic.Int64 // a time.Duration
	code     atomic.Int64 // where a signal ends the command; 0: ExitFailed
	lock     sync.Mutex
	answered bool // something was printed as the result
	ended    bool // by a signal: nothing more is printed
}

// System returns the console of the process.
func System() *Console {
	return &Console{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Terminal: isTerminal(os.Stderr), Getenv: os.Getenv}
}

// isTerminal tells a terminal from files and pipes. The null device is a
// character device too, but nobody reads it.
func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}

// Result prints what a command found: v as one JSON object for machines, or
// whatever text writes for people.
func (c *Console) Result(v any, text func(io.Writer) error) error {
	c.lock.Lock()
	defer c.lock.Unlock()
	if c.ended {
		return nil
	}
	c.answered = true
	if c.JSON {
		return writeJSON(c.Out, v)
	}
	return text(sanitize.Writer(c.Out))
}

// Resultf is Result with a text as sanitize.Fprintf writes it.
func (c *Console) Resultf(v any, format string, args ...any) error {
	return c.Result(v, func(w io.Writer) error {
		_, err := sanitize.Fprintf(w, format, args...)
		return err
	})
}

// LastEpochs is the time to keep the last epochs of trainings.
const LastEpochs = 20 * time.Second

// Keep is called by a command where it begins what it keeps at a signal, as the epochs of
// a training, with the time that it may take for that, and the exit code if that is not
// enough. Others end at once.
func (c *Console) Keep(atMost time.Duration, code int) {
	c.code.Store(int64(code))
	c.keeps.Store(int64(atMost))
}

// InterruptedCode returns the exit code of the command if a signal ends it now.
func (c *Console) InterruptedCode() int { return cmp.Or(int(c.code.Load()), ExitFailed) }

// Keeps returns the time that the command has after a signal; 0: it ends at once.
func (c *Console) Keeps() time.Duration { return time.Duration(c.keeps.Load()) }

// ResultOf prints what a command found and ends it with err, which may be nil.
func (c *Console) ResultOf(err error, v any, text func(io.Writer) error) error {
	if err != nil && c.JSON {
		return &Failure{Code: ExitFailed, Err: err, Result: v}
	}
	return cmp.Or(c.Result(v, text), err)
}

// Create starts the file that a command writes. Where that is the standard output
// the result for people goes to Err, and there is none for machines.
func (c *Console) Create(path string, o outfile.Options) (*outfile.File, error) {
	o.Through = true
	f, err := outfile.Create(path, o)
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

// Notef tells a person what is going on. It goes to Err and is left out of
// machine output.
func (c *Console) Notef(format string, args ...any) {
	if !c.JSON {
		sanitize.Fprintf(c.Err, format+"\n", args...)
	}
}

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// Progress is where plain lines of progress go; nil when a machine reads.
func (c *Console) Progress() io.Writer {
	if c.JSON {
		return nil
	}
	return c.Err
}
