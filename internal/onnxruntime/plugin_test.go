//go:build cgo

// The C interface that we call is that of the library.

package onnxruntime

import (
	"os"
	"os/exec"
	"reflect"
	"strings"
	"testing"

	ort "github.com/yalue/onnxruntime_go"
)

// The declarations of api.h are those of the binding's header.
func TestAPI(t *testing.T) {
	binding, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/yalue/onnxruntime_go").Output()
	if err != nil {
		t.Fatal(err)
	}
	own, err := os.ReadFile("api.h") // so that the cache of test results depends on it
	if err != nil {
		t.Fatal(err)
	}
	compiler, err := exec.Command("go", "env", "CC").Output()
	if err != nil {
		t.Fatal(err)
	}
	cc := exec.Command(strings.TrimSpace(string(compiler)), "-xc", "-fsyntax-only", "-Werror",
		"-I"+strings.TrimSpace(string(binding)), "-")
	cc.Stdin = strings.NewReader("#include <onnxruntime_c_api.h>\n" + string(own) + `
_Static_assert(API_VERSION == ORT_API_VERSION, "version");
_Static_assert(LOG_FATAL == ORT_LOGGING_LEVEL_FATAL, "log level");
_Static_assert(DEVICE_ALLOCATOR == OrtDeviceAllocator && DEFAULT_MEMORY == OrtMemTypeDefault, "allocator");
_Static_assert(offsetof(OrtApiBase, GetApi) == 0, "OrtApiBase");
#define FIELD(name) _Static_assert(offsetof(struct allocator, name) == offsetof(OrtAllocator, name), #name);
FIELD(version) FIELD(Alloc) FIELD(Free) FIELD(Info) FIELD(Reserve) FIELD(GetStats) FIELD(AllocOnStream)
_Static_assert(sizeof(struct allocator) == sizeof(OrtAllocator), "OrtAllocator");
#define SAME(index, result, name, ...) \
  _Static_assert(offsetof(OrtApi, name) == index * sizeof(void *), #name); \
  _Static_assert(__builtin_types_compatible_p(__typeof__(((OrtApi *)0)->name), name##_function), #name);
FUNCTIONS(SAME)
`)
	if text, err := cc.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, text)
	}
}

// AppendProvider reads the C pointer in the struct of the binding.
func TestStructOfOnePointer(t *testing.T) {
	of := reflect.TypeFor[ort.SessionOptions]()
	if of.NumField() != 1 || of.Field(0).Type.Kind() != reflect.Pointer {
		t.Errorf("%s is not a struct of one pointer", of)
	}
}
