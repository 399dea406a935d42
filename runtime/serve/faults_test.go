// Stalled, hostile and numerous clients do not keep others from being served, and a shutdown loses no accepted request.

package serve

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	goruntime "runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/resources"
	"github.com/miplc/miplc/runtime"
	"github.com/miplc/miplc/runtime/serve/oip"
)

const oneBag = `{"instances": [[1, 2, 3]]}`

// well requests a prediction, as other clients do while one client misbehaves.
func (s *service) well(t *testing.T) {
	t.Helper()
	if code, text := s.ask(t, "POST", "/predict?model=bag", oneBag); code != 200 {
		t.Errorf("status %d: %s", code, text)
	}
}

// connect opens a connection and sends the first bytes of a request.
func (s *service) connect(t *testing.T, text string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", s.web)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	return conn
}

// A client that stalls before or during the head or the body loses its connection. If the head has
// arrived, the client gets an answer with the reason.
func TestStalledClients(t *testing.T) {
	s := start(t, func(o *Config) { o.Timeout = 300 * time.Millisecond })
	for sent, want := range map[string]string{
		"":                             "",
		"POST /predict HTTP/1.1\r\nHo": "",
		"POST /predict?model=bag HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{": "did not arrive in time",
	} {
		conn := s.connect(t, sent)
		s.well(t)
		if err := conn.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil { // before it would end as idle
			t.Fatal(err)
		}
		told, err := io.ReadAll(conn)
		if err != nil && !errors.Is(err, syscall.ECONNRESET) || !strings.Contains(string(told), want) {
			t.Errorf("%q: %v, %q", sent, err, told)
		}
	}
	s.well(t)
}

// Stalled gRPC clients, other protocols and truncated messages are handled as well.
func TestStalledGRPC(t *testing.T) {
	s := start(t, func(o *Config) { o.Timeout = 300 * time.Millisecond })
	const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	for _, sent := range []string{"", preface[:10], "GET / HTTP/1.1\r\n\r\n",
		preface + "\xff\xff\xff\xff\xff\xff\xff\xff\xff"} {
		conn, err := net.Dial("tcp", s.rpc)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, sent); err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, conn); err != nil && !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("%q: %v", sent, err)
		}
	}
	// This message is valid for gRPC and invalid for the protocol.
	var got oip.ModelInferResponse
	broken := message(randomBag(1, 1), true)
	broken.ProtoReflect().SetUnknown([]byte{0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f})
	err := s.dial(t).Invoke(t.Context(), oip.GRPCInferenceService_ModelInfer_FullMethodName, broken, &got)
	if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "cannot be decoded") {
		t.Error(err)
	}
	// The same is true for a message without tensors. Both errors are counted.
	unnamed := &oip.ModelReadyRequest{}
	unnamed.ProtoReflect().SetUnknown([]byte{0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f})
	err = s.dial(t).Invoke(t.Context(), oip.GRPCInferenceService_ModelReady_FullMethodName, unnamed,
		&oip.ModelReadyResponse{})
	if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "cannot be decoded") {
		t.Error(err)
	}
	_, counted := s.ask(t, "GET", "/metrics", "")
	for _, method := range []string{"ModelInfer", "ModelReady"} {
		if !strings.Contains(counted, `miplc_requests_total{code="InvalidArgument",method="`+method+`",protocol="grpc"} 1`) {
			t.Errorf("a message of %s that cannot be decoded is not counted", method)
		}
	}
	if _, err := oip.NewGRPCInferenceServiceClient(s.dial(t)).ModelInfer(t.Context(), message(randomBag(1, 1),
		true)); err != nil {
		t.Error(err)
	}
	// This call never sends its message.
	silent, err := s.dial(t).NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true},
		oip.GRPCInferenceService_ModelInfer_FullMethodName)
	if err != nil {
		t.Fatal(err)
	}
	if err := silent.RecvMsg(&got); status.Code(err) != codes.DeadlineExceeded {
		t.Error(err)
	}
}

// A head that is too long is rejected before it is buffered.
func TestLongHead(t *testing.T) {
	s := start(t)
	long := strings.Repeat("x", 100<<10)
	conn := s.connect(t, "GET /v2 HTTP/1.1\r\nHost: a\r\nX: "+long[:2*maxHeader]+"\r\n\r\n")
	if told, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil ||
		told.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Error(told, err)
	}
	ctx := metadata.AppendToOutgoingContext(t.Context(), "x", long)
	if _, err := oip.NewGRPCInferenceServiceClient(s.dial(t)).ServerLive(ctx, &oip.ServerLiveRequest{}); err == nil {
		t.Error("a head of 100 kB over gRPC is accepted")
	}
}

// A client that sends requests and does not read the answers is disconnected.
func TestSlowReader(t *testing.T) {
	s := start(t, func(o *Config) { o.Timeout = 300 * time.Millisecond })
	body := asJSON(map[string]any{"instances": nested(randomBag(5000, 1))})
	request := fmt.Sprintf("POST /predict?model=bag HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	conn := s.connect(t, request)
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	var err error
	for err == nil {
		_, err = io.WriteString(conn, request)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("after 30 s, the server still waits for a client that does not read")
	}
	s.well(t)
}

// At the connection limit, idle connections make room, and otherwise a new connection waits until another closes.
// The admin listener still answers health checks.
func TestConnectionLimit(t *testing.T) {
	s := start(t, func(o *Config) { o.MaxConnections = 3 })
	const live = "GET /v2/health/live HTTP/1.1\r\nHost: a\r\n\r\n"
	for range 5 { // idle connections make room
		conn := s.connect(t, live)
		if err := conn.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if _, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil {
			t.Fatalf("idle connections shut others out: %v", err)
		}
	}
	for range 3 { // so do silent ones, but later
		defer s.connect(t, "").Close()
	}
	late := s.connect(t, live)
	if err := late.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := http.ReadResponse(bufio.NewReader(late), nil); err != nil {
		t.Fatalf("silent connections shut others out: %v", err)
	}
	var open []net.Conn
	for range 3 { // these have begun a request
		open = append(open, s.connect(t, "GET /v2"))
	}
	answered := make(chan error, 1)
	waiting := s.connect(t, live)
	go func() {
		_, err := http.ReadResponse(bufio.NewReader(waiting), nil)
		answered <- err
	}()
	select {
	case err := <-answered:
		t.Fatalf("answered beyond the limit, %v", err)
	case <-time.After(300 * time.Millisecond):
	}
	for path, want := range map[string]int{"/v2/health/live": 200, "/v2/health/ready": 200, "/v2/models/bag/ready": 200,
		"/metrics": 200, "/v2": 404, "/predict": 404} {
		resp, err := http.Get(s.admin + path)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != want || want == 404 && !strings.HasPrefix(string(text), `{"error":"unknown path`) {
			t.Errorf("admin %s: status %d, %s", path, resp.StatusCode, text)
		}
	}
	if resp, err := http.Post(s.admin+"/metrics", "", nil); err != nil || resp.StatusCode != 405 ||
		resp.Header.Get("Allow") != "GET" {
		t.Errorf("admin, wrong method: %v, %v", resp, err)
	}
	open[0].Close()
	if err := <-answered; err != nil {
		t.Error(err)
	}
}

// A bag of a million instances is rejected with a reason, or predicted if the limits allow it.
func TestMillionInstances(t *testing.T) {
	big := randomBag(1_000_000, 1)
	small := start(t)
	client := oip.NewGRPCInferenceServiceClient(small.dial(t))
	if _, err := client.ModelInfer(t.Context(), message(big, true)); status.Code(err) != codes.ResourceExhausted {
		t.Error(err)
	}
	text := `{"instances": [` + strings.Repeat("[0,0,0],", big.N-1) + `[0,0,0]]}`
	if code, said := small.ask(t, "POST", "/predict?model=bag", text); code != 413 {
		t.Error(code, said)
	}
	small.well(t)

	s := start(t, func(o *Config) { o.MaxRequestBytes, o.MaxInstances, o.Timeout = 64<<20, big.N, time.Hour })
	client = oip.NewGRPCInferenceServiceClient(s.dial(t))
	got, err := client.ModelInfer(t.Context(), message(big, true))
	if err != nil {
		// the client's own limit
		if status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "received message larger") {
			t.Fatal(err)
		}
	} else if len(got.RawOutputContents[1]) != 4*big.N {
		t.Errorf("%d bytes of attention", len(got.RawOutputContents[1]))
	}
	if code, said := s.ask(t, "POST", "/predict?model=bag", text); code != 200 {
		t.Errorf("status %d: %.200s", code, said)
	} else if a := decode[bagAnswer](t, said); len(a.Attention) != big.N {
		t.Errorf("attention of %d instances", len(a.Attention))
	}
}

// A wrong request that was read completely does not end its connection. The body of a request over
// HTTP/2 returns its end only after its last bytes.
func TestConnectionAfterError(t *testing.T) {
	s := start(t)
	for body, want := range map[string]string{`{"instances": [[1]]}`: "", strings.Repeat("x", 2<<20): "close"} {
		answer := httptest.NewRecorder()
		s.Server.handler().ServeHTTP(answer, httptest.NewRequest("POST", "/predict?model=bag", strings.NewReader(body)))
		if got := answer.Header().Get("Connection"); got != want || answer.Code/100 != 4 {
			t.Errorf("%.30s: status %d, Connection %q, want %q", body, answer.Code, got, want)
		}
	}
}

// A client that reads the answer only after it sent the whole body of a rejected request receives
// that answer. If the server closed the connection earlier, it would look like a network error.
func TestRefusedBodies(t *testing.T) {
	s := start(t, func(o *Config) { o.Tokens = tokensOf(t, "secret") })
	const size = 12 << 20 // more than the buffers of a connection
	body := strings.Repeat("x", size)
	whole := fmt.Sprintf("Content-Length: %d\r\n\r\n%s", size, body)
	chunked := fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", size, body)
	const token = "Host: a\r\nAuthorization: Bearer secret\r\n"
	for request, want := range map[string]int{
		"POST /predict?model=bag HTTP/1.1\r\n" + token + whole:    413,
		"POST /predict?model=bag HTTP/1.1\r\n" + token + chunked:  413,
		"POST /predict?model=bag HTTP/1.1\r\nHost: a\r\n" + whole: 401,
	} {
		told, err := http.ReadResponse(bufio.NewReader(s.connect(t, request)), nil)
		if err != nil || told.StatusCode != want {
			t.Errorf("%.60q: want %d: %v, %v", request, want, told, err)
		}
	}
}

// The queue of a model is bounded. Further requests are rejected, and each answer belongs to its
// request.
func TestBusy(t *testing.T) {
	s := start(t)
	v, done, err := s.models.use("bag", "")
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	q := &queue{waiting: make(chan *job, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := q.predict(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	full := &openVersion{modelFile: v.modelFile, info: v.info, queue: q}
	if _, err := full.predict(&request{ctx: t.Context(), memory: &reservation{}},
		nil); status.Code(err) != codes.Unavailable ||
		!strings.Contains(err.Error(), "busy") {
		t.Error(err)
	}
}

// Requests in flight cannot reserve more memory than the limit. A request waits for others and is
// rejected after its timeout. Small requests are served meanwhile.
func TestMemoryLimit(t *testing.T) {
	const size = 250_000
	s := start(t, func(o *Config) { o.RequestMemory, o.Timeout = 1_000_000, 2*time.Second })
	stalled := s.connect(t, fmt.Sprintf("POST /predict?model=bag HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n  ",
		size))
	for s.admission.large.TryAcquire(500_000) { // until its memory is reserved
		s.admission.large.Release(500_000)
		time.Sleep(time.Millisecond)
	}
	s.well(t)
	large := `{"instances": [` + strings.Repeat("[0,0,0.00000000],", 4999) + `[0,0,0]]` + strings.Repeat(" ", size) + `}`
	if code, text := s.ask(t, "POST", "/predict?model=bag", large); code != 413 || !strings.Contains(text, "memory") {
		t.Errorf("a request that needs more than the limit: status %d: %s", code, text)
	}
	large = large[:len(large)-size-1] + "}"
	if code, text := s.ask(t, "POST", "/predict?model=bag", large); code != 200 {
		t.Errorf("a request after one that stalled: status %d: %s", code, text)
	}
	if told, err := http.ReadResponse(bufio.NewReader(stalled), nil); err != nil || told.StatusCode != 504 {
		t.Errorf("the request that stalled: %v, %v", told, err)
	}
	if err := s.admission.large.Acquire(t.Context(), s.admission.large.size); err != nil { // other requests use all of it
		t.Fatal(err)
	}
	if code, text := s.ask(t, "POST", "/predict?model=bag", large); code != 503 || !strings.Contains(text, "memory") {
		t.Errorf("status %d: %s", code, text)
	}
	client := oip.NewGRPCInferenceServiceClient(s.dial(t))
	if _, err := client.ModelInfer(t.Context(), message(randomBag(10_000, 1), true)); status.Code(
		err) != codes.Unavailable {
		t.Error(err)
	}
	s.well(t)
	s.admission.large.Release(s.admission.large.size)
	for _, p := range []*memoryPool{s.admission.small, s.admission.large} {
		for !p.TryAcquire(p.size) { // all memory is released
			time.Sleep(time.Millisecond)
		}
	}
}

// A request with all its memory is answered although others wait for memory: what it reserves before it
// is read suffices for its values and its answer.
func TestMemoryOfAnswer(t *testing.T) {
	const n, waiting = 20_000, 850_000
	s := start(t, func(o *Config) { o.RequestMemory, o.MaxInstances = 3_000_000, n })
	bag := randomBag(n, 1)
	raw := string(ndarray.AppendBytes(nil, bag.Instances))
	head := fmt.Sprintf(`{"inputs": [{"name": "instances", "datatype": "FP32", "shape": [%d, 3], "parameters": `+
		`{"binary_data_size": %d}}]}`, n, len(raw))
	text := `{"instances": ` + strings.ReplaceAll(fmt.Sprint(nested(randomBag(9000, 1))), " ", ",") + "}"
	for name, c := range map[string]struct{ path, header, body string }{
		"raw":  {"/v2/models/bag/infer", fmt.Sprintf("%s: %d\r\n", jsonLength, len(head)), head + raw},
		"JSON": {"/predict?model=bag", "", text},
	} {
		first := s.connect(t, fmt.Sprintf("POST %s HTTP/1.1\r\nHost: a\r\n%sContent-Length: %d\r\n\r\n%s", c.path, c.header,
			len(c.body), c.body[:1000]))
		for s.admission.large.TryAcquire(s.admission.large.size) { // until its memory is reserved
			s.admission.large.Release(s.admission.large.size)
			time.Sleep(time.Millisecond)
		}
		other := s.connect(t, fmt.Sprintf("POST /predict?model=bag HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n",
			waiting))
		for s.admission.large.queued.Load() == 0 {
			time.Sleep(time.Millisecond)
		}
		if _, err := io.WriteString(first, c.body[1000:]); err != nil {
			t.Fatal(err)
		}
		told, err := http.ReadResponse(bufio.NewReader(first), nil)
		if err != nil || told.StatusCode != 200 {
			t.Errorf("%s: %v, %v", name, told, err)
		}
		first.Close()
		other.Close()
		for !s.admission.large.TryAcquire(s.admission.large.size) { // until all memory is released
			time.Sleep(time.Millisecond)
		}
		s.admission.large.Release(s.admission.large.size)
	}
}

// A body of unknown length may have the size of any other. As soon as it is not small, it leaves the
// memory for small requests to those.
func TestChunkedBodies(t *testing.T) {
	const limit = 1 << 20
	s := start(t, func(o *Config) { o.MaxRequestBytes, o.RequestMemory = limit, 4*limit })
	const head = "POST /predict?model=bag HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
	text := oneBag + strings.Repeat(" ", limit-len(oneBag))
	const size = 100_000
	s.connect(t, fmt.Sprintf("%s%x\r\n%s\r\n", head, size, text[:size]))
	// until its memory is reserved
	for end := time.Now().Add(10 * time.Second); s.admission.large.TryAcquire(s.admission.large.size); {
		s.admission.large.Release(s.admission.large.size)
		if time.Sleep(time.Millisecond); time.Now().After(end) {
			t.Fatal("a large body uses the memory for small requests")
		}
	}
	if p := s.admission.small; p.TryAcquire(p.size) {
		p.Release(p.size)
	} else {
		t.Error("a large body still has memory for small requests")
	}
	whole := s.connect(t, fmt.Sprintf("%s%x\r\n%s\r\n0\r\n\r\n", head, limit, text))
	if told, err := http.ReadResponse(bufio.NewReader(whole), nil); err != nil || told.StatusCode != 200 {
		t.Errorf("a body of the maximum size: %v, %v", told, err)
	}
}

// A bag whose run needs more memory than the limit is rejected. One that needs more than is free
// waits, and is rejected after its timeout.
func TestRunMemory(t *testing.T) {
	s := start(t, func(o *Config) {
		o.RunMemory, o.MaxInstances, o.MaxRequestBytes, o.Timeout = 4<<20, 200_000, 8<<20, 5*time.Second
	})
	bag := func(n int) string {
		return `{"instances": [` + strings.Repeat("[0,0,0],", n-1) + `[0,0,0]]}`
	}
	if code, text := s.ask(t, "POST", "/predict?model=bag", bag(75_000)); code != 413 ||
		!strings.Contains(text, "fewer instances") {
		t.Errorf("status %d: %.200s", code, text)
	}
	memory := s.models.memory
	if err := memory.Acquire(t.Context(), memory.size); err != nil {
		t.Fatal(err)
	}
	if code, text := s.ask(t, "POST", "/predict?model=bag", bag(40_000)); code != 503 ||
		!strings.Contains(text, "waited for a run") {
		t.Errorf("status %d: %.200s", code, text)
	}
	s.well(t)
	memory.Release(memory.size)
	if code, text := s.ask(t, "POST", "/predict?model=bag", bag(40_000)); code != 200 {
		t.Errorf("status %d: %.200s", code, text)
	}
}

// Probes of Kubernetes have the address of the pod as Host.
func TestProbesOfOtherHosts(t *testing.T) {
	s := start(t, func(o *Config) { o.Hosts = []string{"models.example.org"} })
	for path, want := range map[string]int{"/v2/health/live": 200, "/v2/health/ready": 200, "/v2/models/bag/ready": 200,
		"/v2/models/bag": 421, "/metrics": 421, "/": 421} {
		req, err := http.NewRequest("GET", s.url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = "10.0.0.7:8080"
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s: status %d, want %d", path, resp.StatusCode, want)
		}
	}
}

// The server reads only JSON and raw tensors, which a web page cannot send without permission of
// the server, and only requests to a host that it answers for.
func TestBrowsers(t *testing.T) {
	s := start(t, func(o *Config) { o.Hosts = LocalHosts("127.0.0.1:0") })
	for _, c := range []struct {
		host, kind, origin string
		want               int
	}{
		{"", "application/json", "", 200},
		{"", "application/json; charset=utf-8", "http://localhost", 200},
		{"", "application/octet-stream", "", 200},
		{"", "", "", 200},
		{"", "", "null", 415},
		{"", "text/plain", "", 415},
		{"", "application/x-www-form-urlencoded", "", 415},
		{"localhost:1234", "application/json", "", 200},
		{"LOCALHOST", "application/json", "", 200},
		{"[::1]:80", "application/json", "", 200},
		{"evil.example:8080", "application/json", "", 421},
		{"127.0.0.1.evil.example", "application/json", "", 421},
	} {
		for path, body := range map[string]string{"/predict?model=bag": oneBag,
			"/v2/models/bag/infer": `{"inputs": [{"name": "instances", "datatype": "FP32", "shape": [1, 3], "data": [1, 2, ` +
				`3]}]}`} {
			req, err := http.NewRequest("POST", s.url+path, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			req.Host = c.host
			for name, value := range map[string]string{"Content-Type": c.kind, "Origin": c.origin} {
				if value != "" {
					req.Header.Set(name, value)
				}
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != c.want {
				t.Errorf("%s %+v: status %d", path, c, resp.StatusCode)
			}
		}
	}
	for listen, want := range map[string]string{":8080": "[*]", "0.0.0.0:1": "[*]", "[::]:1": "[*]", "10.0.0.1:1": "[*]",
		"localhost:1": "[localhost 127.0.0.1 ::1]", "127.0.0.2:1": "[localhost 127.0.0.1 ::1 127.0.0.2]"} {
		if got := fmt.Sprint(LocalHosts(listen)); got != want {
			t.Errorf("%s: %s, want %s", listen, got, want)
		}
	}
}

// The cause of an internal error is written only to the log, because it may contain file names.
func TestInternalErrors(t *testing.T) {
	var log bytes.Buffer
	s := start(t, func(o *Config) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	w := httptest.NewRecorder()
	s.serve(route{"GET", "/x", true, func(http.ResponseWriter, *http.Request) error {
		return errors.New("/home/secret.cc:12 failed")
	}}, nil).ServeHTTP(w, httptest.NewRequest("GET", "/x", nil))
	if w.Code != 500 || strings.Contains(w.Body.String(), "secret") || !strings.Contains(log.String(), "secret.cc:12") {
		t.Errorf("status %d: %s; log: %s", w.Code, w.Body, &log)
	}
}

// Waiting bags of different requests are combined into runs up to the limit.
func TestGather(t *testing.T) {
	q := &queue{batching: Batching{MaxBags: 5}, waiting: make(chan *job, 10)}
	for _, bags := range []int{1, 2, 1, 3, 1} {
		q.waiting <- &job{count: bags}
	}
	q.left = make(chan *job, 1)
	var got []int
	for len(q.waiting)+len(q.left) > 0 {
		got = append(got, len(q.gather(q.first())))
	}
	if fmt.Sprint(got) != "[3 2]" { // of 4 bags each: all 5 jobs have 8, and the fourth has no room beside the first three
		t.Errorf("jobs of the runs: %v", got)
	}
}

// A request that ends while it waits returns its memory, so its bags are freed too, though it stays in
// the queue. A run ignores it.
func TestEndedInQueue(t *testing.T) {
	q := &queue{batching: Batching{MaxBags: 1}, memory: newMemoryPool(1, ""), waiting: make(chan *job, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, busy, err := q.predict(ctx, []runtime.Bag{randomBag(1, 1)}); !errors.Is(err, context.Canceled) || busy != nil {
		t.Error(busy, err)
	}
	ended := <-q.waiting
	if ended.bags != nil {
		t.Error("the queue still refers to the bags")
	}
	q.run([]*job{ended})
}

// A request that ends while a run uses its bags returns its memory only after the run.
func TestEndedInRun(t *testing.T) {
	q := &queue{memory: newMemoryPool(1, ""), waiting: make(chan *job, 1)}
	pool := newMemoryPool(10, "")
	memory, err := pool.reserve(t.Context(), 10)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var ended resources.Group
	ended.Go(func() {
		defer memory.release()
		v := &openVersion{queue: q}
		if _, err := v.predict(&request{ctx: ctx, memory: memory}, nil); !errors.Is(err, errClientGone) {
			t.Error(err)
		}
	})
	j := <-q.waiting
	j.taken.Store(true) // as a run does
	cancel()
	ended.Wait()
	if pool.TryAcquire(1) {
		t.Error("the memory was returned while the run uses it")
	}
	close(j.done)
	if err := pool.Acquire(t.Context(), 10); err != nil { // waits for the memory
		t.Error(err)
	}
}

// A wrong request does not affect the others in its run.
func TestWrongAmongOthers(t *testing.T) {
	s := start(t, func(o *Config) { o.Batching.Delay, o.Batching.Runs = 50*time.Millisecond, 1 })
	v, done, err := s.models.use("batch", "")
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	var group sync.WaitGroup
	for i := range 24 {
		group.Go(func() {
			bag := randomBag(1+i%5, uint64(i))
			if i%6 == 0 {
				bag.Instances = bag.Instances[1:]
			}
			got, err := v.predict(&request{ctx: t.Context(), memory: &reservation{}}, []runtime.Bag{bag})
			want, wantErr := s.direct["batch"].Predict(t.Context(), bag)
			if wantErr != nil {
				if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), wantErr.Error()) {
					t.Errorf("%d: %v, want %v", i, err, wantErr)
				}
			} else if err != nil {
				t.Errorf("%d: %v", i, err)
			} else if err := same(got[0], want); err != nil {
				t.Errorf("%d: %v", i, err)
			}
		})
	}
	group.Wait()
}

// A server whose listener fails ends with the error at once: nobody can reach it in the time before a shutdown.
func TestListenerFails(t *testing.T) {
	var o Config
	s := start(t, func(c *Config) { o = *c })
	o.LameDuck = time.Hour
	for name, which := range map[string]int{"HTTP": 0, "gRPC": 1} {
		server, err := New(s.dir, func(path string) (*runtime.Model, error) { return runtime.Open(path) }, o)
		if err != nil {
			t.Fatal(err)
		}
		listeners := []net.Listener{local(t), local(t)}
		listeners[which].Close()
		ended := make(chan error, 1)
		go func() { ended <- server.Serve(t.Context(), Listeners{HTTP: listeners[0], GRPC: listeners[1]}) }()
		select {
		case err := <-ended:
			if !errors.Is(err, net.ErrClosed) {
				t.Errorf("%s: error %v, want that of the listener", name, err)
			}
			server.Close()
		case <-time.After(time.Minute):
			t.Errorf("%s: the server goes on without the listener", name)
		}
	}
}

// A server that shuts down under load answers all requests that it accepted: from clients that keep
// their connections until they are told to close them, from clients that check readiness and open
// a connection for each request, and from gRPC clients.
func TestDrain(t *testing.T) {
	s := start(t, func(o *Config) { o.LameDuck = 3 * time.Second })
	rpc := oip.NewGRPCInferenceServiceClient(s.dial(t))
	kept := &http.Client{Transport: &http.Transport{}}
	single := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	var group sync.WaitGroup
	under := make(chan bool, 100)
	load := func(client string, ask func() (leave bool, err error)) {
		group.Go(func() {
			for n := 0; ; n++ {
				leave, err := ask()
				if err != nil {
					t.Errorf("%s, request %d: %v", client, n, err)
				}
				if err != nil || leave {
					return
				}
				select {
				case under <- true:
				default:
				}
			}
		})
	}
	ask := func(client *http.Client, method, path string) (*http.Response, error) {
		req, err := http.NewRequest(method, s.url+path, strings.NewReader(oneBag))
		if err != nil {
			return nil, err
		}
		resp, err := client.Do(req)
		if err != nil {
			return nil, err
		}
		defer resp.Body.Close()
		_, err = io.Copy(io.Discard, resp.Body)
		return resp, err
	}
	predict := func(client *http.Client) (leave bool, err error) {
		resp, err := ask(client, "POST", "/predict?model=batch")
		if err != nil {
			return false, err
		}
		if resp.StatusCode != 200 {
			err = errors.New(resp.Status)
		}
		return resp.Close, err
	}
	for range 4 {
		load("kept connection", func() (bool, error) { return predict(kept) })
		load("single connections", func() (bool, error) {
			if resp, err := ask(single, "GET", "/v2/health/ready"); err != nil || resp.StatusCode == 503 {
				return true, err
			}
			_, err := predict(single)
			return false, err
		})
		load("gRPC", func() (bool, error) {
			_, err := rpc.ModelInfer(t.Context(), message(randomBag(3, 1), true))
			if status.Code(err) == codes.Unavailable && notSent.MatchString(err.Error()) {
				return true, nil
			}
			return false, err
		})
	}
	for range cap(under) {
		<-under
	}
	s.end()
	group.Wait()
}

// A connection that was opened before the shutdown is served until LameDuck has passed, and told to close.
func TestDrainNewConnection(t *testing.T) {
	s := start(t, func(o *Config) { o.LameDuck = 3 * time.Second })
	conn := s.connect(t, "")
	s.end()
	for s.ready() {
		time.Sleep(time.Millisecond)
	}
	if _, err := fmt.Fprintf(conn, "POST /predict?model=bag HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s",
		len(oneBag), oneBag); err != nil {
		t.Fatal(err)
	}
	if told, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || told.StatusCode != 200 || !told.Close {
		t.Errorf("%v, %v", told, err)
	}
}

// notSent matches the errors of gRPC calls that did not reach the server.
var notSent = regexp.MustCompile("(?i)error while dialing|server preface")

// A run does not wait for a bag that another run took from the queue.
func TestGatherLoses(t *testing.T) {
	defer goruntime.GOMAXPROCS(goruntime.GOMAXPROCS(8))
	q := &queue{batching: Batching{MaxBags: 8}, waiting: make(chan *job, 1)}
	for range 100_000 {
		q.waiting <- &job{}
		begin, ended := make(chan bool), make(chan int, 8)
		for range cap(ended) {
			go func() {
				<-begin
				ended <- len(q.gather(&job{}))
			}()
		}
		close(begin)
		for range cap(ended) {
			select {
			case <-ended:
			case <-time.After(10 * time.Second):
				t.Fatal("a run waits for a bag that another run took")
			}
		}
	}
}
