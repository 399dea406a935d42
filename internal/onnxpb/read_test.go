// Broken files are refused.

package onnxpb_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/miplc/miplc/internal/onnxpb"
)

func TestReadRefuses(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	large := write("large.onnx", nil)
	if err := os.Truncate(large, onnxpb.MaxFile+1); err != nil {
		t.Fatal(err)
	}
	// Graph in attribute in node in graph ..., nested a thousand times with correct lengths.
	nested := []byte{}
	for range 1000 {
		for _, field := range []byte{6, 5, 1} { // g, attribute, node
			nested = append(append([]byte{field<<3 | 2}, varint(len(nested))...), nested...)
		}
	}
	nested = append(append([]byte{7<<3 | 2}, varint(len(nested))...), nested...)
	for _, c := range []struct{ name, path, reason string }{
		{"missing", filepath.Join(dir, "none.onnx"), "no such file"},
		{"folder", dir, "is a directory"},
		{"empty", write("empty.onnx", nil), "the file is empty"},
		{"text", write("text.onnx", []byte("hello, this is not a model")), "not an ONNX file, or cut short"},
		{"no graph", write("graph.onnx", []byte{8, 8}), "it has no graph"},
		{"no opset", write("opset.onnx", []byte{7<<3 | 2, 0}), "names no operator set"},
		{"nested", write("nested.onnx", nested), "not an ONNX file"},
		{"large", large, "larger than an ONNX model of miplc can be"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := onnxpb.Read(c.path)
			if err == nil || !strings.Contains(err.Error(), c.reason) || !strings.Contains(err.Error(), c.path) {
				t.Errorf("got %v, want an error with %q and the path", err, c.reason)
			}
		})
	}
	if _, err := onnxpb.Read(large); !errors.Is(err, onnxpb.ErrTooLarge) {
		t.Errorf("got %v, want ErrTooLarge", err)
	}
}

func varint(n int) []byte {
	var out []byte
	for n >= 0x80 {
		out, n = append(out, byte(n)|0x80), n>>7
	}
	return append(out, byte(n))
}

func TestTensors(t *testing.T) {
	f := onnxpb.FloatTensor("f", []int64{2, 1}, []float32{1.5, -2})
	i := onnxpb.IntTensor("i", []int64{2}, []int64{-1, 1 << 40})
	if err := errors.Join(f.Check(), i.Check()); err != nil {
		t.Fatal(err)
	}
	// The count must be that of the data that is read, even if a file contains both forms.
	f.FloatData, i.Int64Data = []float32{1, 2, 3}, []int64{1, 2, 3}
	f.Dims, i.Dims = []int64{3}, []int64{3}
	for _, both := range []*onnxpb.TensorProto{f, i} {
		if both.Check() == nil {
			t.Errorf("%s: 3 elements are accepted, but 2 can be read", both.Name)
		}
	}
	if got := f.Floats(); got[0] != 1.5 || got[1] != -2 {
		t.Errorf("floats were read as %v", got)
	}
	if got := i.Ints(); got[0] != -1 || got[1] != 1<<40 {
		t.Errorf("ints were read as %v", got)
	}
}
