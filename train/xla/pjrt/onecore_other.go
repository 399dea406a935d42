//go:build !linux

package pjrt

// OnOneCore runs f. Plugins need Linux.
func OnOneCore(f func()) { f() }
