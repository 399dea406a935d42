//go:build !amd64 && !arm64

// Other processors have only the kernels in plain Go.

package kernel

func vectorSets() []*Set { return nil }
