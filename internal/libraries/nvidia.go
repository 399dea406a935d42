// Asks the NVIDIA driver for GPUs and loads NVIDIA's libraries.

package libraries

// GPU describes the first GPU.
type GPU struct {
	Name   string
	Count  int     // number of GPUs
	Memory float64 // bytes
	CUDA   int     // newest version of CUDA that the driver supports: 13020 is 13.2
}
