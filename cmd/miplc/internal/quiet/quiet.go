// Package quiet keeps libraries off the standard error until the program begins.
// go-xla looks for plugins while it is initialised, and logs on a machine that has
// no HOME or no /etc/ld.so.conf.
//
// Go initialises packages by their paths, each after all that it imports. This one
// imports nothing that such a logger does not import too, so it comes before them.
package quiet

import (
	"log"
	"os"
)

var stderr = os.Stderr

func init() {
	_ = log.Writer() // the standard logger keeps the true standard error
	if null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0); err == nil {
		os.Stderr = null
	}
}

// End gives the standard error back.
func End() { os.Stderr = stderr }
