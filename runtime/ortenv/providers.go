package ortenv

// CPU is the execution provider that every library has.
const CPU = "cpu"

// Providers are the execution providers that can be named beside CPU.
var Providers = []string{"cuda", "tensorrt", "coreml", "directml", "openvino", "webgpu", "xnnpack", "qnn", "rocm"}

// Session says how a session of onnxruntime runs.
type Session struct {
	Threads  int               // threads within an operation; 0: all cores
	Provider string            // execution provider: "" or CPU, or a name of Providers
	Settings map[string]string // of the provider, by the names that onnxruntime gives them
}

// Offered lists those of Providers that the library has in a form that works on
// this machine.
func Offered(library string) []string {
	var names []string
	for _, name := range Providers {
		if CheckProvider(library, name) == nil {
			names = append(names, name)
		}
	}
	return names
}
