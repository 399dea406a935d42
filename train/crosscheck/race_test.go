//go:build race

// Fewer random specs under the race detector.

package crosscheck_test

func init() { light = true }
