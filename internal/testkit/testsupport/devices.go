// Devices in software, for tests.

package testsupport

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// envSwiftShader is the environment variable with the folder of SwiftShader, a software Vulkan
// device, and a Vulkan loader.
const envSwiftShader = "MIPLC_SWIFTSHADER"

// SwiftShader returns the environment of a process whose only Vulkan device is SwiftShader. The
// dynamic linker reads a part of it when the process starts, so a test needs a separate process,
// see InProcess.
func SwiftShader(t testing.TB) []string {
	t.Helper()
	dir := os.Getenv(envSwiftShader)
	if dir == "" {
		t.Skipf("there is no SwiftShader: %s names its folder, which .ci/run makes from an npm package", envSwiftShader)
	}
	driver := filepath.Join(dir, "vk_swiftshader_icd.json")
	if _, err := os.Stat(driver); err != nil {
		t.Fatalf("%s names a folder without SwiftShader: %v", envSwiftShader, err)
	}
	libraries := dir
	if others := os.Getenv("LD_LIBRARY_PATH"); others != "" {
		libraries += string(os.PathListSeparator) + others
	}
	return []string{"VK_DRIVER_FILES=" + driver, "VK_ICD_FILENAMES=" + driver, "LD_LIBRARY_PATH=" + libraries,
		"ORT_WEBGPU_EP_ALLOW_SOFTWARE_ADAPTER=1"}
}

// envOpenVINO is the environment variable with a folder of the libraries of the Python package
// onnxruntime-openvino.
const envOpenVINO = "MIPLC_OPENVINO"

// OpenVINO returns the environment of a process whose onnxruntime has the provider openvino built
// in. Its CPU device runs on any x86-64 processor.
func OpenVINO(t testing.TB) []string {
	t.Helper()
	dir := os.Getenv(envOpenVINO)
	if dir == "" {
		t.Skipf("there is no OpenVINO: %s names the folder of its libraries, which .ci/run makes from the wheel "+
			"onnxruntime-openvino", envOpenVINO)
	}
	library := filepath.Join(dir, "libonnxruntime.so.1.24.1")
	if _, err := os.Stat(library); err != nil {
		t.Fatalf("%s names a folder without onnxruntime: %v", envOpenVINO, err)
	}
	return []string{"ONNXRUNTIME_SHARED_LIBRARY_PATH=" + library}
}

// OpenVINOPlugin returns the environment of a process whose execution provider openvino is the
// library of the Python package onnxruntime-ep-openvino. That library supports only devices of
// Intel, including Intel CPUs. It can train, which the provider of OpenVINO cannot.
func OpenVINOPlugin(t testing.TB) []string {
	t.Helper()
	if processor, err := os.ReadFile("/proc/cpuinfo"); err != nil || !bytes.Contains(processor, []byte("GenuineIntel")) {
		t.Skip("onnxruntime-ep-openvino 1.8.1 offers only devices of Intel (vendor 0x8086), and this processor is not " +
			"Intel's: GetEpDevices lists the device of CPUExecutionProvider alone. Prediction on OpenVINO is tested with the " +
			"provider of onnxruntime-openvino")
	}
	python := Python(t, "onnxruntime_ep_openvino==1.8.1")
	path, err := exec.Command(python, "-c", "import onnxruntime_ep_openvino as p; print(p.get_library_path())").Output()
	if err != nil {
		t.Fatal(err)
	}
	return []string{"MIPLC_PROVIDER_OPENVINO=" + string(bytes.TrimSpace(path))}
}

// InProcess runs the test again in a separate process with the additional environment, and reports
// whether this is that process. A device that ends its process then fails only one test.
func InProcess(t *testing.T, environment func(testing.TB) []string) bool {
	t.Helper()
	const mark = "MIPLC_TEST_PROCESS"
	if os.Getenv(mark) == t.Name() {
		return true
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=5m")
	cmd.Env = append(append(os.Environ(), environment(t)...), mark+"="+t.Name())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	} else if testing.Verbose() {
		t.Logf("%s", out)
	}
	return false
}
