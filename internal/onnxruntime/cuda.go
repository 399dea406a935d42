// The files of the CUDA provider.

package onnxruntime

import (
	"path"
	"slices"
	"strings"

	"github.com/miplc/miplc/internal/libraries"
)

// CUDA is the execution provider for NVIDIA GPUs.
const CUDA = "cuda"

// minCUDA is the oldest version of CUDA that the NVIDIA driver must support, and minDriver the first
// driver that does.
const (
	minCUDA   = 13000
	minDriver = "580"
)

// cudaFiles lists the files of the execution provider for CUDA 13, those of an archive next to each other:
// onnxruntime built with CUDA, which is the first, and the libraries of NVIDIA that it needs.
var cudaFiles = slices.Concat(
	cudaArchive("onnxruntime-gpu==1.27.0", "manylinux_2_28_x86_64", 220, "onnxruntime/capi",
		cudaFile{"libonnxruntime.so.1.27.0", 23736336, "184096f611d6cfff75f5d4cbaf01f76d736ab10d408d335fca0c85e5a79018db"},
		cudaFile{"libonnxruntime_providers_shared.so", 14632,
			"086ec1d5388f64153d9c63470d126693db9a182c8ce236d3a1119068471b8a0d"},
		cudaFile{"libonnxruntime_providers_cuda.so", 251627280,
			"9aacf1788ceae09ca362cbf9bb3c1d69c94cec86e24310de7ad14e6b05b5bb5d"},
	),
	cudaArchive("nvidia-cuda-runtime==13.2.86", "manylinux2014_x86_64", 3, "nvidia/cu13/lib",
		cudaFile{"libcudart.so.13", 773920, "862020da24ec4db58470c8dfad08e8753b417c459c115326edf15e9f574c92e3"},
	),
	cudaArchive("nvidia-cuda-nvrtc==13.2.86", "manylinux2010_x86_64", 45, "nvidia/cu13/lib",
		cudaFile{"libnvrtc-builtins.so.13.2", 4442056, "6b1c571cc730d5fcfd57f322e1fa7e0e65de7454b2239ff6d552a09b82d47dbe"},
		cudaFile{"libnvrtc.so.13", 115333336, "3d646504d4595919a17884c4beaa9949a8ff12085387d8b4de2baa504d7fc023"},
	),
	cudaArchive("nvidia-cublas==13.4.1.3", "manylinux_2_27_x86_64", 450, "nvidia/cu13/lib",
		cudaFile{"libcublas.so.13", 54198912, "d089edf0a70ba75f0f422927da121f59018247f491741a3bf0b20637ed7c7b61"},
		cudaFile{"libcublasLt.so.13", 508260928, "8d702c94d90bd4bd0c032fd4207ae655b4a2d036bd31920c1fbf4ecaf3547c59"},
	),
	cudaArchive("nvidia-curand==10.4.2.55", "manylinux_2_27_x86_64", 60, "nvidia/cu13/lib",
		cudaFile{"libcurand.so.10", 133030104, "ee267cb70762dda60b30b38ef2348725eb42f2cac6bafa3b0bd8c2d209683cbc"},
	),
	cudaArchive("nvidia-cufft==12.2.0.57", "manylinux2014_x86_64", 218, "nvidia/cu13/lib",
		cudaFile{"libcufft.so.12", 290858264, "978b45f4704355216781beefa98e858af0eb6dcbc2f5688623c08968b32d6a55"},
	),
	cudaArchive("nvidia-cudnn-cu13==9.26.0.51", "manylinux_2_27_x86_64", 400, "nvidia/cudnn/lib",
		cudaFile{"libcudnn.so.9", 133336, "08308aa4767b3395766de5884e97d404012efc2bd573c2c799f46161d2aded8a"},
		cudaFile{"libcudnn_adv.so.9", 109169128, "dead427901fb258e9b49616a28d9e632846c15e55dc16368350aadcc1d85d20a"},
		cudaFile{"libcudnn_cnn.so.9", 4203984, "538f1747d3afb26855a5298d222bf6e5f64c5eed4f6646da7bdc12030dcf8c8a"},
		cudaFile{"libcudnn_engines_precompiled.so.9", 264266304,
			"344abee9c22d35adb59b7877a8eba61e6c42370363e92e15a7dde10b277dae77"},
		cudaFile{"libcudnn_engines_runtime_compiled.so.9", 35684088,
			"27a76a3c510cc3d3f7374b9a432257774a7aef980ed203e5529e08ec1e477254"},
		cudaFile{"libcudnn_engines_tensor_ir.so.9", 216026128,
			"30f2309519f08b8870b95791a0fa97d834dac6b9875f21a8dc96df35bb2762ea"},
		cudaFile{"libcudnn_ext.so.9", 8402008, "1f438cb2944c2c554ca22708596c5812fbb5cb91206a94987473997668e6d142"},
		cudaFile{"libcudnn_graph.so.9", 134433840, "ecf218feb8b5f891df654fb5500523b1ca2bc5602ce5c4e47392a55823815bd3"},
		cudaFile{"libcudnn_heuristic.so.9", 75502384, "70df8fcfbe225cf55b54c3702bf33ff66f7e0a706c76c20bac3ff162df0b1423"},
		cudaFile{"libcudnn_ops.so.9", 39855912, "35b35884301acd3a9fb11ae7edeb00b81c09917e8bc578a622b21341764f90a8"},
	),
)

// cudaFile is a library in an archive.
type cudaFile struct {
	name string
	size int64
	sum  string // SHA-256
}

// cudaArchive returns the pins of files in one folder of an archive of download MB.
func cudaArchive(archive, platform string, download int, folder string, files ...cudaFile) (pins []libraries.Pin) {
	for _, f := range files {
		pins = append(pins, libraries.Pin{System: "linux/amd64", Via: libraries.ViaPip, Archive: archive,
			Member: path.Join(folder, f.name), Platform: platform, Size: f.size, SHA256: f.sum, Download: download})
	}
	return pins
}

// sharedProviders must be in the folder of the onnxruntime library, which loads it for the provider.
const sharedProviders = "libonnxruntime_providers_shared.so"

// cudaLibraries are the libraries that the provider needs, in an order in which each can resolve those
// before it.
var cudaLibraries = []string{
	"libcudart.so.13", "libnvrtc.so.13", "libcublasLt.so.13", "libcublas.so.13", "libcurand.so.10", "libcufft.so.12",
	"libcudnn.so.9",
}

// cudaPackage returns the Python package with one of cudaLibraries.
func cudaPackage(library string) string {
	i := slices.IndexFunc(cudaFiles, func(p libraries.Pin) bool { return path.Base(p.Member) == library })
	name, _, _ := strings.Cut(cudaFiles[i].Archive, "==")
	return name
}
