//go:build cgo

package plugin

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	ort "github.com/yalue/onnxruntime_go"
)

// The copied headers are identical to those of the binding, so that both use the same version of
// the C API.
func TestHeaders(t *testing.T) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/yalue/onnxruntime_go").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"onnxruntime_c_api.h", "onnxruntime_ep_c_api.h"} {
		own, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		binding, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(out)), name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(own, binding) {
			t.Errorf("%s differs from the binding's: copy it from there", name)
		}
	}
}

// Append, Tensor and Graph read and write the C pointers in structs of the binding.
func TestStructsOfOnePointer(t *testing.T) {
	for _, of := range []reflect.Type{reflect.TypeFor[ort.SessionOptions](), reflect.TypeFor[ort.ValueInternalData](),
		reflect.TypeFor[ort.IoBinding](), reflect.TypeFor[ort.DynamicAdvancedSession]()} {
		if of.NumField() != 1 || of.Field(0).Type.Kind() != reflect.Pointer {
			t.Errorf("%s is not a struct of one pointer", of)
		}
	}
	if first := reflect.TypeFor[ort.AdvancedSession]().Field(0); first.Name != "ortSession" || first.Type.Kind() != reflect.Pointer {
		t.Errorf("the first field of an AdvancedSession is %s", first.Name)
	}
}
