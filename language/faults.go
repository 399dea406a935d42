package language

import "github.com/miplc/miplc/internal/diag"

// faults collects what is wrong with a file. At diag.MaxFound it ends the reading,
// from however deep within, since each further error costs time and tells nothing:
// collect is where that ends.
type faults diag.List

// tooMany unwinds the reading of a file with too many faults.
type tooMany struct{}

// Add appends a diagnostic.
func (f *faults) Add(d ...diag.Diagnostic) {
	if *f = append(*f, d...); len(*f) >= diag.MaxFound {
		panic(tooMany{})
	}
}

// Err is the faults as an error, sorted by place, or nil.
func (f faults) Err() error { return diag.List(f).Err() }

// collect runs read until it is done or there are too many faults.
func collect(read func()) {
	defer func() {
		if p := recover(); p != nil && p != any(tooMany{}) {
			panic(p)
		}
	}()
	read()
}
