// Collected mistakes of a file.

package schema

import "github.com/miplc/miplc/internal/diag"

// Faults collects diagnostics about a file. After diag.MaxFound of them Add panics to end the
// reading from any depth, because further errors only cost time. Collect recovers from that panic.
type Faults diag.List

// tooMany is the value of that panic.
type tooMany struct{}

// Add appends diagnostics.
func (f *Faults) Add(d ...diag.Diagnostic) {
	if *f = append(*f, d...); len(*f) >= diag.MaxFound {
		panic(tooMany{})
	}
}

// Err returns the faults as an error sorted by position, or nil.
func (f Faults) Err() error { return diag.List(f).Err() }

// Collect calls read and returns when it ends or when there are too many faults.
func Collect(read func()) {
	defer func() {
		if p := recover(); p != nil && p != any(tooMany{}) {
			panic(p)
		}
	}()
	read()
}
