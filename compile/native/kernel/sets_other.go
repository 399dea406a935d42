//go:build !amd64 && !arm64

// The sets of kernels on other processors: plain Go only.

package kernel

func vectorSets() []*Set { return nil }
