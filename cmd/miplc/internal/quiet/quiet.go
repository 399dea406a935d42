// Package quiet suppresses output of libraries to the standard error until the program starts.
// go-xla searches for plugins during initialisation, and logs on machines without HOME or
// /etc/ld.so.conf.
//
// Go initialises packages in the order of their paths, each after its imports. This package imports
// nothing that such a logger does not import too, so it is initialised before them.
package quiet

import (
	"log"
	"os"
)

var stderr = os.Stderr

func init() {
	_ = log.Writer() // the standard logger keeps the original standard error
	if null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0); err == nil {
		os.Stderr = null
	}
}

// End restores the standard error.
func End() { os.Stderr = stderr }
