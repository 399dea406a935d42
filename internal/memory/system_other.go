//go:build !linux

package memory

// system knows of no bounds here.
func system() []Room { return nil }
