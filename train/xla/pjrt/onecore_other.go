//go:build !linux

package pjrt

// OnOneCore runs f: plugins are for Linux.
func OnOneCore(f func()) { f() }
