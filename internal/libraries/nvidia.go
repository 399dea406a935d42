// GPUs, as the NVIDIA driver reports them, and loading of NVIDIA's libraries.

package libraries

// GPU describes the first GPU.
type GPU struct {
	Name   string
	Count  int     // number of GPUs
	Memory float64 // bytes
	CUDA   int     // newest version of CUDA that the driver supports: 13020 is 13.2
}
