//go:build !linux

// States of files, by which a change is noticed, on other systems.

package fileio

import (
	"io/fs"
	"time"
)

// State returns false: the file information of these systems has no time of the last change, or has
// it under another name.
func State(fs.FileInfo) (text string, changed time.Time, ok bool) { return "", time.Time{}, false }
