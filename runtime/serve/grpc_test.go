// gRPC clients get predictions or clear errors, in bounded memory and only with a valid token.

package serve

import (
	"context"
	"math"
	goruntime "runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/runtime"
	"github.com/miplc/miplc/runtime/serve/oip"
)

func (s *service) dial(t testing.TB, options ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	if len(options) == 0 {
		options = append(options, grpc.WithTransportCredentials(insecure.NewCredentials()))
	}
	conn, err := grpc.NewClient(s.rpc, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// message returns a request of one bag, raw or typed.
func message(b runtime.Bag, raw bool) *oip.ModelInferRequest {
	in := &oip.ModelInferRequest_InferInputTensor{Name: "instances", Datatype: "FP32", Shape: []int64{int64(b.N), 3}}
	m := &oip.ModelInferRequest{ModelName: "bag", Id: "x", Inputs: []*oip.ModelInferRequest_InferInputTensor{in}}
	if raw {
		m.RawInputContents = [][]byte{ndarray.AppendBytes(nil, b.Instances)}
	} else {
		in.Contents = &oip.InferTensorContents{Fp32Contents: b.Instances}
	}
	return m
}

func TestGRPC(t *testing.T) {
	s := start(t)
	client := oip.NewGRPCInferenceServiceClient(s.dial(t))
	for _, n := range []int{1, 2, 40, 1000} {
		bag := randomBag(n, 7)
		want, err := s.direct["bag"].Predict(t.Context(), bag)
		if err != nil {
			t.Fatal(err)
		}
		for _, raw := range []bool{true, false} {
			got, err := client.ModelInfer(t.Context(), message(bag, raw))
			if err != nil {
				t.Fatal(err)
			}
			if got.ModelName != "bag" || got.ModelVersion != "1" || got.Id != "x" || len(got.Outputs) != 2 ||
				len(got.RawOutputContents) != 2 {
				t.Fatalf("raw %v: %v", raw, got)
			}
			if p := ndarray.FromBytes[float32](got.RawOutputContents[0]); !slices.Equal(p, want.Probabilities) {
				t.Errorf("%d instances: probabilities %v, want %v", n, p, want.Probabilities)
			}
			if a := ndarray.FromBytes[float32](got.RawOutputContents[1]); !slices.Equal(a, want.Attention) ||
				!slices.Equal(got.Outputs[1].Shape, []int64{1, int64(n)}) {
				t.Errorf("%d instances: attention %v of shape %v, want %v", n, a, got.Outputs[1].Shape, want.Attention)
			}
		}
	}
	if live, err := client.ServerLive(t.Context(), &oip.ServerLiveRequest{}); err != nil || !live.Live {
		t.Error(live, err)
	}
	if ready, err := client.ServerReady(t.Context(), &oip.ServerReadyRequest{}); err != nil || !ready.Ready {
		t.Error(ready, err)
	}
	for name, want := range map[string]bool{"bag": true, "nosuch": false} {
		if ready, err := client.ModelReady(t.Context(), &oip.ModelReadyRequest{Name: name}); err != nil ||
			ready.Ready != want {
			t.Error(name, ready, err)
		}
	}
	if m, err := client.ServerMetadata(t.Context(), &oip.ServerMetadataRequest{}); err != nil || m.Name != "miplc" ||
		!slices.Equal(m.Extensions, extensions) {
		t.Error(m, err)
	}
	if m, err := client.ModelMetadata(t.Context(), &oip.ModelMetadataRequest{Name: "batch", Version: "1"}); err != nil ||
		len(m.Inputs) != 2 || len(m.Outputs) != 3 {
		t.Error(m, err)
	}
	probe, err := grpc_health_v1.NewHealthClient(s.dial(t)).Check(t.Context(), &grpc_health_v1.HealthCheckRequest{
		Service: "inference.GRPCInferenceService"})
	if err != nil || probe.Status != grpc_health_v1.HealthCheckResponse_SERVING {
		t.Error(probe, err)
	}
}

func TestWrongMessages(t *testing.T) {
	s := start(t)
	client := oip.NewGRPCInferenceServiceClient(s.dial(t))
	change := func(raw bool, f func(*oip.ModelInferRequest)) *oip.ModelInferRequest {
		m := message(randomBag(2, 1), raw)
		f(m)
		return m
	}
	nan, long := []byte{0, 0, 0xc0, 0x7f}, strings.Repeat("ä", 100_000)
	attention := &oip.ModelInferRequest_InferRequestedOutputTensor{Name: "attention"}
	for _, c := range []struct {
		m    *oip.ModelInferRequest
		code codes.Code
		want string
	}{
		{&oip.ModelInferRequest{}, codes.InvalidArgument, "several models"},
		{change(true, func(m *oip.ModelInferRequest) { m.ModelName = "x" }), codes.NotFound, "no model"},
		{change(true, func(m *oip.ModelInferRequest) { m.ModelVersion = "x" }), codes.NotFound, "no version"},
		{change(true, func(m *oip.ModelInferRequest) { m.RawInputContents[0] = m.RawInputContents[0][1:] }),
			codes.InvalidArgument, "has 23 bytes, its shape [2 3] needs 24"},
		{change(true, func(m *oip.ModelInferRequest) { copy(m.RawInputContents[0][8:], nan) }), codes.InvalidArgument,
			"feature 3 of instance 1 is NaN"},
		{change(true, func(m *oip.ModelInferRequest) { m.RawInputContents = append(m.RawInputContents, nil) }),
			codes.InvalidArgument, "raw contents of 2"},
		{change(false, func(m *oip.ModelInferRequest) { m.Inputs[0].Contents = nil }), codes.InvalidArgument, "has 0 bytes"},
		{change(false, func(m *oip.ModelInferRequest) { m.Inputs[0].Shape[0] = 1 << 40 }), codes.InvalidArgument, "shape"},
		{change(false, func(m *oip.ModelInferRequest) { m.Inputs[0].Shape[0] = 5001 }), codes.InvalidArgument,
			"accepts at most 5000"},
		{change(true, func(m *oip.ModelInferRequest) { m.Outputs = append(m.Outputs, attention, attention) }),
			codes.InvalidArgument, `"attention" is requested twice`},
		{change(true, func(m *oip.ModelInferRequest) { m.ModelName = long }), codes.NotFound, "no model"},
		{change(true, func(m *oip.ModelInferRequest) { m.ModelVersion = long }), codes.NotFound, "no version"},
		{change(true, func(m *oip.ModelInferRequest) { m.Inputs[0].Name = long }), codes.InvalidArgument, "no input"},
		{change(true, func(m *oip.ModelInferRequest) { m.Inputs[0].Datatype = long }), codes.InvalidArgument, "datatype"},
		{change(true, func(m *oip.ModelInferRequest) { m.Inputs[0].Shape = make([]int64, 100_000) }), codes.InvalidArgument,
			"has shape [0 0 0"},
		{change(true, func(m *oip.ModelInferRequest) {
			m.Inputs[0].Contents = &oip.InferTensorContents{Fp32Contents: make([]float32, 6)}
		}), codes.InvalidArgument, "both contents and raw contents"},
		{change(false, func(m *oip.ModelInferRequest) {
			m.Inputs[0].Contents = &oip.InferTensorContents{Int64Contents: make([]int64, 6)}
		}), codes.InvalidArgument, "contents of another type"},
		{change(true, func(m *oip.ModelInferRequest) {
			m.Inputs[0].Parameters = map[string]*oip.InferParameter{"shared_memory_region": {}}
		}), codes.InvalidArgument, "shared_memory_region, an extension"},
		{change(true, func(m *oip.ModelInferRequest) {
			m.Inputs = slices.Repeat(m.Inputs, 10_000)
		}), codes.InvalidArgument, "too many fields"},
		{change(true, func(m *oip.ModelInferRequest) {
			m.Outputs = slices.Repeat([]*oip.ModelInferRequest_InferRequestedOutputTensor{attention}, 10_000)
		}), codes.InvalidArgument, "too many fields"},
		{change(true, func(m *oip.ModelInferRequest) { m.Inputs = slices.Repeat(m.Inputs, 17) }), codes.InvalidArgument,
			"more than 16 inputs"},
		{change(true, func(m *oip.ModelInferRequest) {
			m.Outputs = slices.Repeat([]*oip.ModelInferRequest_InferRequestedOutputTensor{attention}, 17)
		}), codes.InvalidArgument, "more than 16 outputs"},
		{change(true, func(m *oip.ModelInferRequest) { m.Id = long }), codes.InvalidArgument,
			"id is longer than 65536 bytes"},
		{change(true, func(m *oip.ModelInferRequest) { m.RawInputContents = make([][]byte, 100_000) }), codes.InvalidArgument,
			"more than 16 raw contents"},
		{message(randomBag(120_000, 1), true), codes.ResourceExhausted, "larger than 1 MiB, the limit"},
	} {
		_, err := client.ModelInfer(t.Context(), c.m)
		if status.Code(err) != c.code || !strings.Contains(err.Error(), c.want) || len(err.Error()) > maxError+100 {
			t.Errorf("%.1200v, want %v with %q", err, c.code, c.want)
		}
	}
}

// A decoded message uses at most the memory that is reserved for it, whatever a client sends.
func TestDecodedSize(t *testing.T) {
	tag := func(number protowire.Number, contents []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), contents)
	}
	entry := func(i int) []byte { // of a map
		return tag(4, tag(1, []byte{byte(i), byte(i >> 8), byte(i >> 16)}))
	}
	for name, part := range map[string]func(i int) []byte{
		"inputs": func(int) []byte { return tag(5, nil) },
		"inputs in full": func(int) []byte {
			return tag(5, slices.Concat(tag(1, nil), tag(3, []byte{0}), tag(4, nil), tag(5, nil)))
		},
		"outputs":            func(int) []byte { return tag(6, nil) },
		"raw contents":       func(int) []byte { return tag(7, nil) },
		"short raw contents": func(int) []byte { return tag(7, []byte{1}) },
		"parameters": func(i int) []byte {
			return tag(4, tag(1, []byte{byte(i & 127), byte(i >> 7 & 127),
				byte(i >> 14)}))
		},
		"input parameters":  func(i int) []byte { return tag(5, entry(i&127)) },
		"typed bytes":       func(int) []byte { return tag(5, tag(5, tag(8, nil))) },
		"booleans":          func(int) []byte { return tag(5, tag(5, tag(1, make([]byte, 1000)))) },
		"integers":          func(int) []byte { return tag(5, tag(5, tag(3, make([]byte, 1000)))) },
		"unpacked integers": func(int) []byte { return tag(5, tag(5, []byte{3 << 3, 0})) },
		"shape":             func(int) []byte { return tag(5, tag(3, make([]byte, 1000))) },
		"shape in parts":    func(int) []byte { return tag(5, slices.Repeat(tag(3, []byte{0}), 1000)) },
		"FP32":              func(int) []byte { return tag(5, tag(5, tag(6, make([]byte, 4000)))) },
		"unknown":           func(int) []byte { return tag(100, nil) },
	} {
		var message []byte
		for i := 0; len(message) < 1<<18; i++ {
			message = append(message, part(i)...)
		}
		var m oip.ModelInferRequest
		bound, err := decodedSize(message, m.ProtoReflect().Descriptor(), math.MaxInt64)
		if err != nil {
			t.Fatal(name, err)
		}
		before := heap()
		if err := (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(message, &m); err != nil {
			t.Fatal(name, err)
		}
		used := heap() - before
		goruntime.KeepAlive(&m)
		goruntime.KeepAlive(message)
		t.Logf("%-20s %5.1f times the message, bound %5.1f", name, float64(used)/float64(len(message)),
			float64(bound)/float64(len(message)))
		if used > bound+1<<16 {
			t.Errorf("%s: the decoded message uses %d bytes, the bound is %d", name, used, bound)
		}
	}
}

// heap returns the bytes in use.
func heap() int64 {
	var m goruntime.MemStats
	goruntime.GC()
	goruntime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestToken(t *testing.T) {
	s := start(t, func(o *Config) { o.Tokens = tokensOf(t, "secret") })
	client := oip.NewGRPCInferenceServiceClient(s.dial(t))
	for path, want := range map[string]int{"/v2/health/ready": 200, "/v2/models/bag/ready": 200, "/v2": 401,
		"/v2/models/bag": 401, "/metrics": 401} {
		if code, text := s.ask(t, "GET", path, ""); code != want {
			t.Errorf("%s: status %d: %s", path, code, text)
		}
	}
	if _, err := client.ServerReady(t.Context(), &oip.ServerReadyRequest{}); err != nil {
		t.Error(err)
	}
	for header, want := range map[string]codes.Code{"": codes.Unauthenticated, "Bearer other": codes.Unauthenticated,
		"Basic secret": codes.Unauthenticated, "Bearer secret": codes.OK} {
		ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", header)
		if _, err := client.ModelInfer(ctx, message(randomBag(1, 1), true)); status.Code(err) != want {
			t.Errorf("%q: %v", header, err)
		}
		err := s.allowed(header)
		if status.Code(err) != want {
			t.Errorf("%q: %v", header, err)
		}
	}
}

// A call without the token is rejected at its head, and its message is not read.
func TestTokenBeforeMessage(t *testing.T) {
	s := start(t, func(o *Config) { o.Tokens = tokensOf(t, "secret") })
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	stream, err := s.dial(t).NewStream(ctx, &grpc.StreamDesc{ClientStreams: true},
		oip.GRPCInferenceService_ModelInfer_FullMethodName)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.RecvMsg(&oip.ModelInferResponse{}); status.Code(err) != codes.Unauthenticated {
		t.Error(err)
	}
}

// A client that watches the health of a server is notified of the shutdown, if LameDuck leaves time for
// it, and does not delay it.
func TestWatchedHealth(t *testing.T) {
	s := start(t, func(o *Config) { o.LameDuck = time.Second })
	watch, err := grpc_health_v1.NewHealthClient(s.dial(t)).Watch(context.Background(),
		&grpc_health_v1.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []grpc_health_v1.HealthCheckResponse_ServingStatus{grpc_health_v1.HealthCheckResponse_SERVING,
		grpc_health_v1.HealthCheckResponse_NOT_SERVING} {
		got, err := watch.Recv()
		if err != nil || got.Status != want {
			t.Fatal(got, err)
		}
		s.end()
	}
}
