//go:build !linux

package serve

import (
	"os"
	"time"
)

// identity does not tell: files are compared by their hash at every look.
func identity(os.FileInfo) (text string, changed time.Time, ok bool) { return "", time.Time{}, false }
