//go:build !unix || solaris || aix

package ortlib

import "context"

// lock does nothing here: parallel installations then fetch twice, and the
// last rename wins with the same bytes.
func lock(context.Context, string, func()) (unlock func(), err error) {
	return func() {}, nil
}
