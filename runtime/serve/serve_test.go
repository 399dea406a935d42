// Predictions, inference and metadata of the server as HTTP clients see them, and the server that other tests use.

package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/testkit/enginetest"
	"github.com/miplc/miplc/runtime"
)

// The models are those of the tests of package runtime, one for each signature, with 3 features and
// 4 classes.
const (
	bagModel   = "../testdata/demipl-3x4.onnx"
	batchModel = "../testdata/batch-3x4.onnx"
	otherModel = "../testdata/saturated-3x4.onnx"
)

// service is a server under test with its models by name.
type service struct {
	*Server
	url      string                    // of HTTP
	web, rpc string                    // addresses
	admin    string                    // URL
	direct   map[string]*runtime.Model // the same models without a server
	dir      string                    // of the models
	log      *lockedBuffer
	end      context.CancelFunc
	ended    chan error
}

// start serves a folder with the models bag and batch on the loopback interface.
func start(t testing.TB, change ...func(*Config)) *service {
	t.Helper()
	enginetest.Library(t)
	s := &service{dir: t.TempDir(), log: &lockedBuffer{}, direct: map[string]*runtime.Model{}, ended: make(chan error, 1)}
	o := Config{
		Version: "test", Log: slog.New(slog.NewTextHandler(s.log, nil)),
		Batching:        Batching{MaxBags: 8, Runs: 2, MaxWaiting: 1024},
		MaxRequestBytes: 1 << 20, RequestMemory: 1 << 30, RunMemory: 1 << 30, Decoders: 2, MaxInstances: 5000,
		MaxConnections: 1000, Timeout: time.Minute, Drain: time.Minute,
	}
	for _, f := range change {
		f(&o)
	}
	for name, path := range map[string]string{"bag": bagModel, "batch": batchModel} {
		put(t, filepath.Join(s.dir, name+".onnx"), path)
		model, err := runtime.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { model.Close() })
		s.direct[name] = model
	}
	server, err := New(s.dir, func(path string) (*runtime.Model, error) {
		return runtime.Open(path, runtime.WithMaxInstances(o.MaxInstances))
	}, o)
	if err != nil {
		t.Fatal(err)
	}
	web, rpc, admin := local(t), local(t), local(t)
	ctx, cancel := context.WithCancel(context.Background())
	s.Server, s.end, s.web, s.rpc = server, cancel, web.Addr().String(), rpc.Addr().String()
	s.url, s.admin = "http://"+s.web, "http://"+admin.Addr().String()
	go func() { s.ended <- s.Serve(ctx, Listeners{HTTP: web, GRPC: rpc, Admin: admin}) }()
	t.Cleanup(func() {
		cancel()
		if err := <-s.ended; err != nil {
			t.Error(err)
		}
		server.Close()
	})
	return s
}

// lockedBuffer is a buffer for the log of a server.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func local(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func put(t testing.TB, to, from string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// randomBag returns a bag of n instances of 3 features.
func randomBag(n int, seed uint64) runtime.Bag {
	rng := rand.New(rand.NewPCG(seed, uint64(n)))
	b := runtime.Bag{Instances: make([]float32, 3*n), N: n}
	for i := range b.Instances {
		b.Instances[i] = float32(rng.NormFloat64())
	}
	return b
}

// ask sends a request and returns the status and body of the response.
func (s *service) ask(t testing.TB, method, path, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequest(method, s.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

func asJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func decode[T any](t testing.TB, text string) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in %.300s", err, text)
	}
	return v
}

// same returns an error if two predictions differ by more than batching can change them.
func same(got, want runtime.Prediction) error {
	near := func(a, b float32) bool { return a-b < 1e-5 && b-a < 1e-5 }
	if got.Label != want.Label || got.Class != want.Class {
		return fmt.Errorf("label %d %q, want %d %q", got.Label, got.Class, want.Label, want.Class)
	}
	if !slices.EqualFunc(got.Probabilities, want.Probabilities, near) || !slices.EqualFunc(got.Attention, want.Attention,
		near) {
		return fmt.Errorf("%+v, want %+v", got, want)
	}
	return nil
}

func nested(b runtime.Bag) (rows [][]float32) { return slices.Collect(slices.Chunk(b.Instances, 3)) }

func TestPredict(t *testing.T) {
	s := start(t)
	for _, name := range []string{"bag", "batch"} {
		for _, n := range []int{1, 2, 40, 1000} {
			bag := randomBag(n, 1)
			want, err := s.direct[name].Predict(t.Context(), bag)
			if err != nil {
				t.Fatal(err)
			}
			code, text := s.ask(t, "POST", "/predict?model="+name, asJSON(map[string]any{"instances": nested(bag)}))
			got := decode[bagAnswer](t, text)
			if err := same(got.Prediction, want); err != nil || code != 200 || got.Model != name || got.Version != "1" {
				t.Errorf("%s, %d instances: status %d, model %s %s: %v", name, n, code, got.Model, got.Version, err)
			}
		}
	}
}

func TestInfer(t *testing.T) {
	s := start(t)
	bag := randomBag(5, 1)
	want, err := s.direct["bag"].Predict(t.Context(), bag)
	if err != nil {
		t.Fatal(err)
	}
	for _, data := range []any{bag.Instances, nested(bag)} {
		code, text := s.ask(t, "POST", "/v2/models/bag/versions/1/infer", asJSON(map[string]any{
			"id":     "a",
			"inputs": []any{map[string]any{"name": "instances", "datatype": "FP32", "shape": []int{5, 3}, "data": data}},
		}))
		got := decode[struct {
			Model, Version, ID string
			Outputs            []struct {
				Name, Datatype string
				Shape          []int
				Data           []float32
			}
		}](t, strings.NewReplacer("model_name", "model", "model_version", "version").Replace(text))
		if code != 200 || got.Model != "bag" || got.Version != "1" || got.ID != "a" || len(got.Outputs) != 2 {
			t.Fatalf("status %d: %s", code, text)
		}
		p, a := got.Outputs[0], got.Outputs[1]
		if p.Name != "probabilities" || !slices.Equal(p.Shape, []int{1, 4}) || !slices.Equal(p.Data, want.Probabilities) {
			t.Errorf("probabilities: %+v, want %v", p, want.Probabilities)
		}
		if a.Name != "attention" || !slices.Equal(a.Shape, []int{1, 5}) || !slices.Equal(a.Data, want.Attention) {
			t.Errorf("attention: %+v, want %v", a, want.Attention)
		}
	}
}

// A binary request contains several bags for a model with the signature batch.
func TestInferBinary(t *testing.T) {
	s := start(t)
	bags := []runtime.Bag{randomBag(2, 1), randomBag(1, 2), randomBag(4, 3)}
	var raw, which []byte
	for i, b := range bags {
		raw = ndarray.AppendBytes(raw, b.Instances)
		for range b.N {
			which = append(which, byte(i), 0, 0, 0, 0, 0, 0, 0)
		}
	}
	head := asJSON(map[string]any{
		"parameters": map[string]any{"binary_data_output": true},
		"inputs": []any{
			map[string]any{"name": "bag_of", "datatype": "INT64", "shape": []int{7}, "parameters": map[string]int{
				"binary_data_size": len(which)}},
			map[string]any{"name": "instances", "datatype": "FP32", "shape": []int{7, 3}, "parameters": map[string]int{
				"binary_data_size": len(raw)}},
		},
		"outputs": []any{
			map[string]any{"name": "label", "parameters": map[string]bool{"binary_data": false}},
			map[string]any{"name": "probabilities"},
		},
	})
	req, err := http.NewRequest("POST", s.url+"/v2/models/batch/infer", io.MultiReader(strings.NewReader(head),
		bytes.NewReader(which), bytes.NewReader(raw)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set(jsonLength, fmt.Sprint(len(head)))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("status %d, %v: %s", resp.StatusCode, err, body)
	}
	var length int
	if _, err := fmt.Sscan(resp.Header.Get(jsonLength), &length); err != nil {
		t.Fatal(err)
	}
	got := decode[inferAnswer](t, string(body[:length]))
	if len(got.Outputs) != 2 || got.Outputs[0].Name != "label" ||
		*got.Outputs[1].Parameters.BinaryDataSize != len(body)-length {
		t.Fatalf("%s and %d bytes", body[:length], len(body)-length)
	}
	probabilities := ndarray.FromBytes[float32](body[length:])
	labels := got.Outputs[0].Data.([]any)
	for i, b := range bags {
		want, err := s.direct["batch"].Predict(t.Context(), b)
		if err != nil {
			t.Fatal(err)
		}
		p := runtime.Prediction{Label: int(labels[i].(float64)), Class: want.Class, Probabilities: probabilities[4*i : 4*i+4],
			Attention: want.Attention}
		if err := same(p, want); err != nil {
			t.Errorf("bag %d: %v", i, err)
		}
	}
}

// An invalid request gets a status and a message that says what is wrong.
func TestWrongRequests(t *testing.T) {
	s := start(t)
	infer := func(model, inputs, rest string) string {
		return "POST /v2/models/" + model + `/infer {"inputs": [` + inputs + "]" + rest + "}"
	}
	instances := func(shape, data string) string {
		return `{"name": "instances", "datatype": "FP32", "shape": ` + shape + `, "data": ` + data + "}"
	}
	good := instances("[1, 3]", "[1, 2, 3]")
	for _, c := range []struct {
		request string // method, path and body
		code    int
		want    string
	}{
		{"GET /v2/models/nosuch -", 404, `no model "nosuch"; the server has bag, batch`},
		{"GET /v2/models/bag/versions/7 -", 404, `no version "7"; it has 1`},
		{"GET /nosuch -", 404, "/openapi.json"},
		{"GET /bags/1 -", 404, "the server needs --bags"},
		{"GET /predict -", 405, "/predict accepts only POST"},
		{"GET /v2/models/bag/infer -", 405, "/v2/models/bag/infer accepts only POST"},
		{`POST /predict {"instances": [[1, 2, 3]]}`, 400, "several models are served: name one of bag, batch"},
		{`POST /predict?model=bag&version=7;v=1 {"instances": [[1, 2, 3]]}`, 400, "query of the URL: invalid semicolon"},
		{`POST /predict?model=bag&version=%zz {"instances": [[1, 2, 3]]}`, 400, "query of the URL: invalid URL escape"},
		{`POST /predict?model=bag {"instances": [[1, 2], [3, 4]]}`, 400, "instances[0]: 2 values, the shape needs 3"},
		{`POST /predict?model=bag {"instances": [[1, 2, 3], [1, 2, 3, 4]]}`, 400, "instances[1]: more than 3 values"},
		{`POST /predict?model=bag {"instances": [[1, 2, "x"]]}`, 400,
			`instances[0][2]: "x" is not a number, or is out of range`},
		{`POST /predict?model=bag {"instances": [[1, 2, 1e39]]}`, 400, "is not a number, or is out of range"},
		{`POST /predict?model=bag {"instances": [[1, 2, NaN]]}`, 400, "invalid character 'N'"},
		{`POST /predict?model=bag {"instances": []}`, 400, "no instances"},
		{`POST /predict?model=bag {"instances": 3}`, 400, "must be a list"},
		{`POST /predict?model=bag {}`, 400, `"instances" is missing`},
		{`POST /predict?model=bag {"instances": [[1]], "instances": [[1, 2, 3]]}`, 400, `"instances" is given twice`},
		{infer("bag", strings.Replace(good, `"shape"`, `"datatype": "FP32", "shape"`, 1), ""), 400,
			`"datatype" is given twice`},
		{`POST /predict?model=bag [`, 400, "unexpected EOF"},
		{`POST /predict?model=bag {"instances": [` + strings.Repeat("[0,0,0],", 5000) + `[0,0,0]]}`, 400,
			"more than 5000 elements"},
		{"POST /predict?model=bag " + strings.Repeat("[", 1<<20+1), 413, "larger than 1 MiB, the limit"},
		{infer("nosuch", good, ""), 404, "no model"},
		{infer("bag", "", ""), 400, `input "instances" is missing`},
		{infer("bag", "null", ""), 400, `no input ""`},
		{infer("bag", good, `, "inputs": []`), 400, `"inputs" is given twice`},
		{infer("bag", "3", ""), 400, "inputs[0] must be an object"},
		{infer("bag", strings.Repeat("{},", 1000)+"{}", ""), 400, "more than 16 inputs"},
		{infer("bag", good, `, "outputs": [`+strings.Repeat("{},", 1000)+"{}]"), 400, "more than 16 outputs"},
		{`POST /v2/models/bag/infer {"inputs": 3}`, 400, "inputs must be a list"},
		{`POST /v2/models/bag/infer []`, 400, "must be an object"},
		{infer("bag", strings.TrimSuffix(good, "}")+`, "parameters": {"binary_data_size": 0}}`, ""), 400,
			"both data and binary_data_size"},
		{infer("bag", strings.TrimSuffix(good, "}")+`, "parameters": {"shared_memory_region": "x"}}`, ""), 400,
			"shared_memory_region, an extension"},
		{infer("bag", good, `, "outputs": [{"name": "attention", "parameters": {"shared_memory_region": "x"}}]`), 400,
			"shared_memory_region, an extension"},
		{infer("bag", strings.Replace(good, `"instances"`, `"`+strings.Repeat("x", maxMember)+`"`, 1), ""), 400,
			"inputs[0].name is longer"},
		{infer("bag", good+","+good, ""), 400, "given twice"},
		{infer("bag", `{"name": "x"}`, ""), 400, `no input "x"; the model has [instances]`},
		{infer("bag", strings.Replace(good, "FP32", "INT8", 1), ""), 400,
			`datatype "INT8", the model expects FP32; the server accepts FP32, FP16, BF16, FP64`},
		{infer("batch", good+`, {"name": "bag_of", "datatype": "INT32", "shape": [1], "data": [0]}`, ""), 400,
			`datatype "INT32", the model expects INT64; the server accepts INT64`},
		{infer("bag", strings.Replace(instances("[1, 3]", "[1, 2, 1e39]"), "FP32", "FP64", 1), ""), 400,
			"data[2]: 1e39 is not a number, or is out of range"},
		{infer("bag", instances("[1, 4]", "[1, 2, 3, 4]"), ""), 400, "shape [1 4], the model expects [-1 3]"},
		{infer("bag", instances("[2, 3]", "[1, 2, 3]"), ""), 400, "input \"instances\": data: 3 values, the shape needs 6"},
		{infer("bag", instances("[-1, 3]", "[1, 2, 3]"), ""), 400, "shape [-1 3]"},
		{infer("bag", instances("[4611686018427387904, 3]", "[1, 2, 3]"), ""), 400, "shape"},
		{infer("bag", instances("[]", "[1]"), ""), 400, "shape []"},
		{infer("bag", instances("[1.5, 3]", "[1, 2, 3]"), ""), 400, "inputs[0].shape must be a whole number, not number 1.5"},
		{infer("bag", good, `, "id": 7`), 400, "id must be a string, not number"},
		{infer("bag", strings.TrimSuffix(good, "}")+`, "parameters": []}`, ""), 400,
			"inputs[0].parameters must be an object, not array"},
		{infer("bag", strings.TrimSuffix(good, "}")+`, "parameters": {"binary_data_size": "12"}}`, ""), 400,
			"inputs[0].parameters.binary_data_size must be a whole number, not string"},
		{infer("bag", instances("[0, 3]", "[]"), ""), 400, "no instances"},
		{infer("bag", good, `, "outputs": [{"name": "label"}]`), 400,
			`no output "label"; the model has [probabilities attention]`},
		{infer("bag", good, `, "outputs": [{"name": "attention"}, {"name": "probabilities"}, {"name": "attention"}]`), 400,
			`output "attention" is requested twice`},
		{infer("bag", `{"name": "instances", "datatype": "FP32", "shape": [1, 3], "parameters": {"binary_data_size": 12}}`,
			""), 400, "binary_data_size is 12, 0 bytes are left"},
		{infer("batch", good, ""), 400, `input "bag_of" is missing`},
		{infer("batch", good+`, {"name": "bag_of", "datatype": "INT64", "shape": [1], "data": [1]}`, ""), 400,
			"bag_of[0] is 1"},
		{infer("batch", good+`, {"name": "bag_of", "datatype": "INT64", "shape": [2], "data": [0, 0]}`, ""), 400,
			"names the bags of 2 instances"},
	} {
		parts := strings.SplitN(c.request, " ", 3)
		code, text := s.ask(t, parts[0], parts[1], parts[2])
		said := decode[map[string]string](t, text)["error"]
		if code != c.code || !strings.Contains(said, c.want) {
			t.Errorf("%.200s: status %d, %q; want %d, %q", c.request, code, said, c.code, c.want)
		}
	}
}

func TestMetadata(t *testing.T) {
	s := start(t)
	for path, want := range map[string]string{
		"/v2":                             `{"extensions":["binary_tensor_data"],"name":"miplc","version":"test"}`,
		"/v2/health/live":                 `{"live":true}`,
		"/v2/health/ready":                `{"live":true,"ready":true}`,
		"/v2/models/bag/ready":            `{"name":"bag","ready":true}`,
		"/v2/models/bag/versions/1/ready": `{"name":"bag","ready":true}`,
		"/v2/models/bag": `{"name":"bag","versions":["1"],"platform":"onnx_onnxv1",` +
			`"inputs":[{"name":"instances","datatype":"FP32","shape":[-1,3]}],"outputs":[{"name":"probabilities",` +
			`"datatype":"FP32","shape":[1,4]},{"name":"attention","datatype":"FP32","shape":[1,-1]}]}`,
		"/v2/models/batch/versions/1": `{"name":"batch","versions":["1"],"platform":"onnx_onnxv1",` +
			`"inputs":[{"name":"instances","datatype":"FP32","shape":[-1,3]},{"name":"bag_of","datatype":"INT64",` +
			`"shape":[-1]}],"outputs":[{"name":"probabilities","datatype":"FP32","shape":[-1,4]},{"name":"attention",` +
			`"datatype":"FP32","shape":[-1]},{"name":"label","datatype":"INT64","shape":[-1]}]}`,
	} {
		if code, text := s.ask(t, "GET", path, ""); code != 200 || strings.TrimSpace(text) != want {
			t.Errorf("%s: status %d\n%s\nwant\n%s", path, code, text, want)
		}
	}
}
