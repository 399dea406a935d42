//go:build cgo && !linux

package ortenv

// returnLargeBlocks does nothing on these systems.
func returnLargeBlocks() {}
