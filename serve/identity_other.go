//go:build !linux

package serve

import (
	"os"
	"time"
)

// identity returns false, so that files are compared by their hash.
func identity(os.FileInfo) (text string, changed time.Time, ok bool) { return "", time.Time{}, false }
