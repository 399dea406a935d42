//go:build cgo

// Large bags use their memory again.

package onnxruntime

import (
	"strings"
	"testing"

	ort "github.com/yalue/onnxruntime_go"

	"github.com/miplc/miplc/internal/libraries"
	"github.com/miplc/miplc/internal/onnxpb"
)

// openNodes opens a session whose graph has the input x and the output y, both float32 of rank 2.
func openNodes(t *testing.T, s SessionOptions, nodes ...*onnxpb.NodeProto) *ort.DynamicAdvancedSession {
	t.Helper()
	if _, err := Start(""); err != nil {
		if _, err = InstallLibrary(t.Context(), libraries.InstallOptions{}); err == nil { // as enginetest.Library
			_, err = Start("")
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	open := []*onnxpb.TensorShapeProto_Dimension{onnxpb.Open("n"), onnxpb.Open("d")}
	model, err := onnxpb.Marshal(&onnxpb.ModelProto{
		IrVersion:   8,
		OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: 17}},
		Graph: &onnxpb.GraphProto{
			Name:   "test",
			Node:   nodes,
			Input:  []*onnxpb.ValueInfoProto{onnxpb.Value("x", onnxpb.TensorProto_FLOAT, open...)},
			Output: []*onnxpb.ValueInfoProto{onnxpb.Value("y", onnxpb.TensorProto_FLOAT, open...)},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	opts, err := s.Options()
	if err != nil {
		t.Fatal(err)
	}
	defer opts.Destroy()
	session, err := OpenSession(model, []string{"x"}, []string{"y"}, opts)
	if err != nil {
		t.Fatal(err)
	}
	return session
}

// runShape runs a session of openNodes on zeros, with the output in memory of the test. It returns the
// number of blocks that the run allocated.
func runShape(t *testing.T, session *ort.DynamicAdvancedSession, n, d int64) int {
	t.Helper()
	x, err := ort.NewEmptyTensor[float32](ort.NewShape(n, d))
	if err != nil {
		t.Fatal(err)
	}
	defer x.Destroy()
	y, err := ort.NewEmptyTensor[float32](ort.NewShape(n, d))
	if err != nil {
		t.Fatal(err)
	}
	defer y.Destroy()
	before := CountBlocks().Calls
	if err := session.Run([]ort.Value{x}, []ort.Value{y}); err != nil {
		t.Fatal(err)
	}
	return CountBlocks().Calls - before
}

// Only sessions for large bags keep the memory of values, and of temporary values of one operation. Later
// runs need no further memory, also on other shapes.
func TestLargeBagsReuseMemory(t *testing.T) {
	softmax := &onnxpb.NodeProto{OpType: "Softmax", Input: []string{"x"}, Output: []string{"y"},
		Attribute: []*onnxpb.AttributeProto{onnxpb.IntAttr("axis", 0)}}
	chain := []*onnxpb.NodeProto{
		{OpType: "Exp", Input: []string{"x"}, Output: []string{"a"}},
		{OpType: "Sin", Input: []string{"a"}, Output: []string{"b"}},
		{OpType: "Mul", Input: []string{"a", "b"}, Output: []string{"y"}},
	}
	large := SessionOptions{Threads: 1, LargeBags: true}
	for name, nodes := range map[string][]*onnxpb.NodeProto{"temporary values": {softmax}, "values": chain} {
		usual := openNodes(t, SessionOptions{Threads: 1}, nodes...)
		defer usual.Destroy()
		if calls := runShape(t, usual, 1000, 300); calls != 0 {
			t.Errorf("%s: a usual session allocates %d blocks", name, calls)
		}
		session := openNodes(t, large, nodes...)
		if calls := runShape(t, session, 1000, 3000); calls == 0 {
			t.Errorf("%s: a session for large bags allocates no blocks", name)
		}
		kept := CountBlocks()
		if kept.Used != 0 || kept.Resident < 1000*3000*4 {
			t.Errorf("%s: after a run there are %+v", name, kept)
		}
		for _, n := range []int64{1000, 1500, 100, 999} {
			runShape(t, session, n, 3000*1000/n)
		}
		if now := CountBlocks(); now.Resident > kept.Resident+PageOfBlocks {
			t.Errorf("%s: after further runs there are %+v, at first %+v", name, now, kept)
		}
		if err := session.Destroy(); err != nil {
			t.Fatal(err)
		}
		large.Trim()
		if now := CountBlocks(); now.Resident != 0 {
			t.Errorf("%s: after the session there are %+v", name, now)
		}
	}
}

// A value that is larger than the memory is an error.
func TestLargeBagsOutOfMemory(t *testing.T) {
	shape := &onnxpb.AttributeProto{Name: "value", Type: onnxpb.AttributeProto_TENSOR, T: onnxpb.IntTensor("", []int64{2},
		[]int64{1 << 23, 1 << 23})}
	session := openNodes(t, SessionOptions{Threads: 1, LargeBags: true},
		&onnxpb.NodeProto{OpType: "Constant", Output: []string{"shape"}, Attribute: []*onnxpb.AttributeProto{shape}},
		&onnxpb.NodeProto{OpType: "Expand", Input: []string{"x", "shape"}, Output: []string{"y"}})
	defer session.Destroy()
	x, err := ort.NewEmptyTensor[float32](ort.NewShape(1, 1))
	if err != nil {
		t.Fatal(err)
	}
	defer x.Destroy()
	if err := session.Run([]ort.Value{x}, []ort.Value{nil}); err == nil || !strings.Contains(err.Error(), "bad_alloc") {
		t.Errorf("a value of 256 TiB: %v", err)
	}
}
