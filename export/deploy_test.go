// Files for Triton and Docker fit the model and replace nothing, and their model predicts the same.

package export

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/contract"
	"github.com/miplc/miplc/internal/onnxpb"
	"github.com/miplc/miplc/internal/testkit/enginetest"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/train"
)

// built returns a small model with signature bag or batch.
func built(t *testing.T, signature string) *Deployment {
	t.Helper()
	spec, err := language.Load("quickstart", "export.signature="+signature, "name=A small_model", "data.normalize=none")
	if err != nil {
		t.Fatal(err)
	}
	p, err := compile.Compile(spec, compile.Signature{Instance: []int{20}, Classes: 5})
	if err != nil {
		t.Fatal(err)
	}
	pb, err := Model(p, train.InitParams(p, 1), contract.Metadata{Classes: []string{"a", "b", "c", "d", "e"},
		Engine: "none"})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "model.onnx")
	if content, err := onnxpb.Marshal(pb); err != nil || os.WriteFile(path, content, 0o666) != nil {
		t.Fatal(err)
	}
	m, err := DeployRead(path, "")
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Triton sends all values in one row and the end of each bag. The model for Triton predicts the same
// from these as the original model from bag_of.
func TestRaggedIsTheBatch(t *testing.T) {
	m := built(t, "batch")
	sizes := []int{3, 1, 7}
	rows, n := enginetest.Bag(graphOf(m), 11, 1), 11
	var bagOf, ends []int
	for b, size := range sizes {
		for range size {
			bagOf = append(bagOf, b)
		}
		ends = append(ends, len(bagOf)*20)
	}
	want := enginetest.RunORT(t, m.proto, map[string]*graph.Tensor{contract.Instances: rows, contract.BagOf: whole(bagOf)})
	r := ragged(m.proto, m.Meta.InputShape)
	if err := contract.Structure(r); err != nil {
		t.Fatal(err)
	}
	// the type that the test can feed
	r.Graph.Input[1].GetType().GetTensorType().ElemType = int32(onnxpb.TensorProto_INT64)
	got := enginetest.RunORT(t, r, map[string]*graph.Tensor{contract.Instances: graph.NewTensor([]int{n * 20},
		rows.Data...), bagEnds: whole(ends)})
	for _, name := range []string{contract.Probabilities, contract.Attention, contract.Label} {
		if err := enginetest.Near(name, got[name], want[name], 0); err != nil {
			t.Error(err)
		}
	}
	if proto.Equal(r, m.proto) {
		t.Error("the model of the caller was changed")
	}
}

func whole(v []int) *graph.Tensor { return &graph.Tensor{Shape: []int{len(v)}, Ints: v} }

// graphOf returns a graph with the input for which bags are drawn.
func graphOf(m *Deployment) *graph.Graph {
	b := graph.NewBuilder("bag")
	b.Input(contract.Instances, graph.Float, graph.Shape{graph.N, graph.Dim(m.Meta.InputShape[0])})
	g, _ := b.Graph()
	return g
}

func TestNames(t *testing.T) {
	m := built(t, "bag")
	if m.Name != "a-small-model" {
		t.Errorf("the name is %q", m.Name)
	}
	for _, bad := range []string{"Big", "a.b", "-a", "a-", "1a", strings.Repeat("a", 53), "a/../b"} {
		if _, err := DeployRead(m.path, bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

// If one of the files exists, no file is written.
func TestTritonReplacesNothing(t *testing.T) {
	m, dir := built(t, "bag"), t.TempDir()
	labels := filepath.Join(dir, m.Name, "labels.txt")
	if err := os.MkdirAll(filepath.Dir(labels), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(labels, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	files, err := m.Triton(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Write(files, false); err == nil || !strings.Contains(err.Error(), "labels.txt") {
		t.Errorf("error %v", err)
	}
	if list, _ := os.ReadDir(filepath.Dir(labels)); len(list) != 1 {
		t.Errorf("other files were written: %v", list)
	}
	if err := m.Write(files, true); err != nil {
		t.Error(err)
	}
	if list, _ := os.ReadDir(filepath.Dir(labels)); len(list) != 3 {
		t.Errorf("written: %v", list)
	}
}

// The health check of the images distinguishes a service that is ready from one that is not.
func TestHealthCheck(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("bash is not installed")
	}
	dir := t.TempDir()
	files, err := built(t, "bag").Docker(dir, DockerSource{Version: "v1.2.3"})
	if err != nil || len(files) != 3 || files[0].Path != dir+"/models/a-small-model/1/model.onnx" {
		t.Fatalf("%d files, %v", len(files), err)
	}
	var status atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/ready" {
			t.Errorf("it requests %s", r.URL.Path)
		}
		w.WriteHeader(int(status.Load()))
	}))
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files[1:] {
		path, text := f.Path, f.Content
		var check []string
		if err := json.Unmarshal(regexp.MustCompile(`(?m)^    CMD (\[.*\])$`).FindSubmatch(text)[1], &check); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		healthy := func() bool {
			cmd := exec.Command(check[0], check[1:]...)
			cmd.Env = append(os.Environ(), "PORT="+port, "HEALTH=/ready")
			return cmd.Run() == nil
		}
		if status.Store(http.StatusOK); !healthy() {
			t.Errorf("%s: a ready service is reported as unhealthy", path)
		}
		if status.Store(http.StatusServiceUnavailable); healthy() {
			t.Errorf("%s: a service that is not ready is reported as healthy", path)
		}
		for _, must := range []string{"USER 65532:65532", "sha256sum -c", "ENTRYPOINT", "amd64) ", "arm64) "} {
			if !strings.Contains(string(text), must) {
				t.Errorf("%s does not contain %s", path, must)
			}
		}
	}
	server.Close()
}
