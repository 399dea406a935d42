// Errors of commands: their exit codes, their text, and their form in JSON.

package console

import (
	"cmp"
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
	// ExitInterrupted: a signal ended the command, which can be resumed; EX_TEMPFAIL of sysexits.h.
	ExitInterrupted = 75
)

// Failure is an error with the exit code of the process, and the partial result of the command.
type Failure struct {
	Code   int
	Err    error // nil: Result describes the failure
	Result any   // an object whose fields are printed together with "errors" in JSON
}

func (f *Failure) Error() string {
	if f.Err == nil {
		return "failed"
	}
	return f.Err.Error()
}

func (f *Failure) Unwrap() error { return f.Err }

// WrongData marks err as an error of a dataset, unless it is a *diag.InvalidError: the JSON object then has
// "wrong": "data".
func WrongData(err error) error {
	if errors.As(err, new(*diag.InvalidError)) {
		return err
	}
	return &Failure{Code: ExitFailed, Err: err, Result: map[string]string{"wrong": "data"}}
}

// Interrupted marks err as the interruption of a command that can be resumed.
func Interrupted(err error) error { return &Failure{Code: ExitInterrupted, Err: err} }

// Usagef returns an error about the command line.
func Usagef(format string, args ...any) error {
	return &diag.InvalidError{Err: fmt.Errorf(format, args...)}
}

// Report prints err as text or JSON and returns the exit code.
func (c *Console) Report(err error) int {
	c.lock.Lock()
	defer c.lock.Unlock()
	if err == nil || c.ended {
		return ExitDone
	}
	return c.report(err)
}

// Interrupt ends the output of a command after a signal and returns the exit code. If the JSON
// object is already printed, the command has succeeded.
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
	switch {
	case errors.As(err, &failure):
		code = failure.Code
	case errors.As(err, new(*diag.InvalidError)):
		code = ExitInvalid
	}
	if err.Error() == context.Canceled.Error() && errors.Is(err, context.Canceled) {
		err = errors.New(cmp.Or(c.interruption, "interrupted"))
	}
	if c.JSON {
		if werr := writeJSON(c.Out, failureObject(err, failure, code)); werr != nil {
			fmt.Fprintf(c.Err, "error: %v\n", werr)
		}
		return code
	}
	if failure == nil || failure.Err != nil {
		diag.Render(c.Err, err)
	}
	return code
}

// Problem is one error in JSON. Line and column count from 1 and are omitted if unknown.
type Problem struct {
	File       string   `json:"file,omitempty"`
	Line       int      `json:"line,omitempty"`
	Column     int      `json:"column,omitempty"`
	Text       string   `json:"text"`
	Suggestion string   `json:"suggestion,omitempty"`
	Notes      []string `json:"notes,omitempty"`
}

// Problems returns the shown diagnostics of err, or err itself as one. more is the number of
// omitted ones.
func Problems(err error) (problems []Problem, more int) {
	if err == nil {
		return nil, 0
	}
	list, ok := diag.ListOf(err)
	if !ok {
		list = diag.List{{Text: err.Error()}}
	}
	list, more = list.Shown()
	for _, d := range list {
		problems = append(problems, Problem{d.Pos.Source(), d.Pos.Line, d.Pos.Col, d.Text, d.Suggestion, d.Notes})
	}
	return problems, more
}

// failureObject returns the fields of the failure's result with "exit", "errors" and, if some are
// omitted, "more_errors".
func failureObject(err error, f *Failure, code int) map[string]any {
	object := map[string]any{}
	if f != nil && f.Result != nil {
		if raw, merr := json.Marshal(f.Result); merr == nil {
			_ = json.Unmarshal(raw, &object) // a result that is not an object adds nothing
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
