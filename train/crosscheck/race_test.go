//go:build race

package crosscheck_test

func init() { light = true }
