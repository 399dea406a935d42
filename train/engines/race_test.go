//go:build race

// Fewer random specs under the race detector.

package engines_test

func init() { light = true }
