// NVIDIA's libraries that the plugin for GPUs needs.

package pjrt

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/miplc/miplc/internal/fileio"
	"github.com/miplc/miplc/internal/libraries"
)

// packages returns the folder of NVIDIA's Python packages that belong to a plugin: next to
// jax_plugins.
func packages(plugin string) string {
	return filepath.Join(filepath.Dir(filepath.Dir(filepath.Dir(plugin))), "nvidia")
}

// wanted lists the CUDA libraries in an order in which each can resolve those before it.
var wanted = []string{
	"libcudart", "libnvrtc", "libnvJitLink", "libcublasLt", "libcublas", "libnccl", "libcupti",
	"libcusparse", "libcusolver", "libcufft", "libnvshmem_host", "libcudnn",
}

// cudaLibraries finds the wanted libraries in a folder of NVIDIA's packages. missing are those that were not found,
// or that are not trusted. Users who name a plugin also choose the libraries of its installation.
func cudaLibraries(folder string, named bool) (paths, missing []string) {
	for _, name := range wanted {
		match := fileio.Glob(folder, "*/lib/"+name+".so.*")
		if len(match) == 0 {
			missing = append(missing, name)
			continue
		}
		slices.Sort(match)
		newest := match[len(match)-1]
		if err := libraries.CheckTrust(newest); err != nil && !named {
			missing = append(missing, fmt.Sprintf("%s (refused: %v)", name, err))
			continue
		}
		paths = append(paths, newest)
	}
	return paths, missing
}

// toolkit returns the folder of NVIDIA's packages with the tools that XLA's compiler needs
// (libdevice, ptxas), or "".
func toolkit(folder string) string {
	for _, part := range []string{"nvvm/libdevice", "bin/ptxas"} {
		if match := fileio.Glob(folder, "*/"+part); len(match) > 0 {
			return filepath.Dir(filepath.Dir(match[len(match)-1]))
		}
	}
	return ""
}
