package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/miplc/miplc/internal/diag"
)

// Exit codes of miplc.
const (
	ExitDone    = 0
	ExitFailed  = 1 // the work could not be done
	ExitInvalid = 2 // the command line or a spec is wrong
	// ExitInterrupted: a signal ended the command, which can go on from what is kept;
	// EX_TEMPFAIL of sysexits.h.
	ExitInterrupted = 75
)

// Failure is an error with the exit code it ends the process with, and what
// the command found before it failed.
type Failure struct {
	Code   int
	Err    error // nil: Result says it all
	Result any   // an object whose fields machine output keeps beside "errors"
}

func (f *Failure) Error() string {
	if f.Err == nil {
		return "failed"
	}
	return f.Err.Error()
}

func (f *Failure) Unwrap() error { return f.Err }

// Invalid marks err as the user's: a wrong command line or a wrong spec.
func Invalid(err error) error {
	if err == nil {
		return nil
	}
	return &Failure{Code: ExitInvalid, Err: err}
}

// Interrupted marks err as the end of a command that can go on.
func Interrupted(err error) error { return &Failure{Code: ExitInterrupted, Err: err} }

// Usagef returns a wrong command line.
func Usagef(format string, args ...any) error { return Invalid(fmt.Errorf(format, args...)) }

// Report tells of err in the way the console's reader wants it and returns the
// exit code.
func (c *Console) Report(err error) int {
	c.lock.Lock()
	defer c.lock.Unlock()
	if err == nil || c.ended {
		return ExitDone
	}
	return c.report(err)
}

// Interrupt ends the console of a command that a signal ends, and returns the exit
// code. Where the one object for machines is printed already the command is done.
func (c *Console) Interrupt() int {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.ended = true
	if c.JSON && c.answered {
		return ExitDone
	}
	return c.report(&Failure{Code: c.InterruptedCode(), Err: context.Canceled})
}

func (c *Console) report(err error) int {
	code := ExitFailed
	var failure *Failure
	if errors.As(err, &failure) {
		code = failure.Code
	}
	if c.JSON {
		if werr := writeJSON(c.Out, failureObject(err, failure, code)); werr != nil {
			fmt.Fprintf(c.Err, "error: %v\n", werr)
		}
		return code
	}
	if failure == nil || failure.Err != nil {
		diag.Render(c.Err, readable(err))
	}
	return code
}

// readable replaces errors whose own words say nothing to a person.
func readable(err error) error {
	if errors.Is(err, context.Canceled) && err.Error() == context.Canceled.Error() {
		return errors.New("interrupted")
	}
	return err
}

// Problem is one error for machines. Line and column count from 1 and are left
// out where unknown.
type Problem struct {
	File       string   `json:"file,omitempty"`
	Line       int      `json:"line,omitempty"`
	Column     int      `json:"column,omitempty"`
	Text       string   `json:"text"`
	Suggestion string   `json:"suggestion,omitempty"`
	Notes      []string `json:"notes,omitempty"`
}

// Problems lists the diagnostics of err that are told, or err itself as one;
// more counts those that are left out.
func Problems(err error) (problems []Problem, more int) {
	if err == nil {
		return nil, 0
	}
	list, ok := diag.ListOf(readable(err))
	if !ok {
		list = diag.List{{Text: readable(err).Error()}}
	}
	list, more = list.Shown()
	for _, d := range list {
		problems = append(problems, Problem{d.Pos.File, d.Pos.Line, d.Pos.Col, d.Text, d.Suggestion, d.Notes})
	}
	return problems, more
}

// failureObject merges the fields of the failure's result with "exit",
// "errors" and, where these are not all, "more_errors".
func failureObject(err error, f *Failure, code int) map[string]any {
	object := map[string]any{}
	if f != nil && f.Result != nil {
		if raw, merr := json.Marshal(f.Result); merr == nil {
			_ = json.Unmarshal(raw, &object) // a result that is no object adds nothing
		}
	}
	object["exit"] = code
	if f == nil || f.Err != nil {
		problems, more := Problems(err)
		object["errors"] = problems
		if more > 0 {
			object["more_errors"] = more
		}
	}
	return object
}
