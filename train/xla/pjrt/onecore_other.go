//go:build !linux

// Work on one core, where threads cannot be bound.

package pjrt

// OnOneCore runs f. Plugins need Linux.
func OnOneCore(f func()) { f() }
