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

// The copied headers are those of the binding, so that both speak to the library by the
// same version of the C API.
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

// Append reads the C pointer out of the binding's options.
func TestSessionOptionsIsOnePointer(t *testing.T) {
	of := reflect.TypeFor[ort.SessionOptions]()
	if of.NumField() != 1 || of.Field(0).Type.Kind() != reflect.Pointer {
		t.Errorf("%s is not a struct of one pointer", of)
	}
}
