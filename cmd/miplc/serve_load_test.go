// The server stays within its memory and answers probes under hostile requests and large bags.

package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/miplc/miplc/runtime/serve/oip"
)

// maxServerMemory is the maximum memory that the server may use at any time.
const maxServerMemory = 1 << 30

// loadScale returns the number of hostile requests, their size, and the number of
// connections with large bodies: small in ordinary tests, those of docs/serving.md if
// MIPLC_TEST_LOAD is set.
func loadScale() (requests, size, connections int) {
	if os.Getenv("MIPLC_TEST_LOAD") != "" {
		return 200, 64<<20 - 1024, 64
	}
	return 12, 8 << 20, 8
}

// hostile returns the body of an infer request whose decoding needs much more memory or time than
// its size suggests.
func hostile(kind, size int) (path, body string) {
	const infer = "/v2/models/demipl-3x4/infer"
	fill := func(begin, middle, end string) string {
		return begin + strings.Repeat(middle, (size-len(begin)-len(end))/len(middle)) + end
	}
	switch kind % 8 {
	case 0:
		return infer, fill(`{"inputs":[`, `{},`, `{}]}`)
	case 1:
		return infer, fill(`{"inputs":[{"name":"instances","datatype":"FP32","shape":[1,3],"data":[1,2,3]}],"outputs":[`,
			`{},`, `{}]}`)
	case 2:
		return infer, fill(`{"inputs":[{"name":"instances","datatype":"FP32","shape":[100000,3],"data":[`, `0,`, `0]}]}`)
	case 3:
		return infer, fill(`{"inputs":[{"name":"instances","datatype":"FP32","shape":[`, `1,`, `1],"data":[0]}]}`)
	case 4:
		return "/predict", fill(`{"instances":[`, `[0,0,0],`, `[0,0,0]]}`)
	case 5:
		return "/predict", fill(`{"instances":`, `[`, ``)
	case 6:
		return infer, fill(`{"parameters":{`, `"a":{},`, `"b":0},"inputs":[]}`)
	}
	return infer, fill(`{"id":"`, `x`, `"}`)
}

// emptyInputs returns a gRPC message whose generated decoder needs 70 times its size.
func emptyInputs(size int) *emptypb.Empty {
	const inputs protowire.Number = 5
	one := protowire.AppendBytes(protowire.AppendTag(nil, inputs, protowire.BytesType), nil)
	m := &emptypb.Empty{}
	m.ProtoReflect().SetUnknown(bytes.Repeat(one, size/len(one)))
	return m
}

// Hostile requests over both protocols use bounded memory, and probes are answered throughout.
func TestServeHostileRequests(t *testing.T) {
	requests, size, _ := loadScale()
	s := startLoaded(t)
	rpc, err := grpc.NewClient(s.rpc, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer rpc.Close()
	var group sync.WaitGroup
	jobs := make(chan int)
	var refused [600]atomic.Int64
	for range 16 {
		group.Go(func() {
			for i := range jobs {
				if i%9 == 8 {
					var got oip.ModelInferResponse
					if err := rpc.Invoke(t.Context(), oip.GRPCInferenceService_ModelInfer_FullMethodName, emptyInputs(size),
						&got); err == nil {
						t.Error("a message of empty inputs was accepted")
					}
					continue
				}
				path, body := hostile(i, size)
				code, err := s.post(path, body, 0)
				if err != nil {
					refused[0].Add(1) // cut off: the body did not arrive within the timeout
					continue
				}
				if code < 400 || code >= 500 && code != 503 && code != 504 { // 504: the body did not arrive within the timeout
					t.Errorf("request %d: status %d", i, code)
					continue
				}
				refused[code].Add(1)
			}
		})
	}
	for i := range requests {
		jobs <- i
	}
	close(jobs)
	group.Wait()
	for code := range refused {
		if n := refused[code].Load(); n > 0 {
			t.Logf("%d requests of %d bytes got status %d (0: cut off)", n, size, code)
		}
	}
	s.check(t)
}

// Many connections with large bodies each get an answer or 503 within the timeout.
func TestServeLargeBodies(t *testing.T) {
	_, _, connections := loadScale()
	s := startLoaded(t)
	const size = 12 << 20
	row := "[0.12345678901234567890123456789012345678901234567890,0.12345678901234567890123456789012345678901234567890," +
		"0.12345678901234567890123456789012345678901234567890],"
	body := `{"instances":[` + strings.Repeat(row, size/len(row)) + `[0,0,0]]}`
	var group sync.WaitGroup
	var ok, busy atomic.Int64
	for range connections {
		group.Go(func() {
			code, err := s.post("/predict", body, 10*time.Second+time.Second/2)
			switch {
			case err != nil || code != 200 && code != 503:
				t.Errorf("status %d, %v", code, err)
			case code == 200:
				ok.Add(1)
			default:
				busy.Add(1)
			}
		})
	}
	group.Wait()
	t.Logf("%d connections with %d bytes: %d got 200, %d got 503", connections, len(body), ok.Load(), busy.Load())
	if ok.Load() == 0 {
		t.Error("no request was answered")
	}
	s.check(t)
}

// loaded is a server in its own process, and another process that requests its probes.
type loaded struct {
	address, rpc string
	pid          int
	prober       *exec.Cmd
	stop         io.Closer     // standard input of prober
	probed       *bytes.Buffer // its standard output
}

func init() { programs["prober"] = prober }

// late is what prober prints for a probe without an answer within 100 ms.
const late = "late"

// prober requests a URL every 20 ms until standard input ends and prints a word for each request. It runs in its own
// process, because a client in the process of the large requests would wait for their garbage collection.
func prober() {
	over := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(over)
	}()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 100 * time.Millisecond}
	for {
		select {
		case <-over:
			return
		case <-time.After(20 * time.Millisecond):
		}
		resp, err := client.Get(os.Args[1])
		switch {
		case os.IsTimeout(err):
			fmt.Println(late)
		case err != nil:
			fmt.Println(err)
			os.Exit(1)
		default:
			resp.Body.Close()
			fmt.Println("answered")
		}
	}
}

func startLoaded(t *testing.T) *loaded {
	process := serveProcess(t, "--admin", "127.0.0.1:0")
	s := &loaded{address: process.web, rpc: process.rpc, pid: process.pid, probed: &bytes.Buffer{}}
	s.prober = exec.Command("prober", "http://"+process.admin+"/v2/health/live")
	s.prober.Stdout, s.prober.SysProcAttr = s.probed, ownSession()
	var err error
	if s.stop, err = s.prober.StdinPipe(); err == nil {
		err = s.prober.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if ownSession() != nil {
		preferred(t, s.pid)
		preferred(t, s.prober.Process.Pid)
	}
	return s
}

// preferred makes Linux prefer the session of a process to all others, so that other programs do
// not delay its threads. These compete with each other as usual.
func preferred(t *testing.T, pid int) {
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/autogroup", pid), []byte("-20"), 0); err != nil {
		t.Logf("the probes compete with other programs: %v", err)
	}
}

// post sends a request. The error is that of the client if the answer is not complete within a time; 0: none.
func (s *loaded) post(path, body string, within time.Duration) (code int, err error) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: within}
	resp, err := client.Post("http://"+s.address+path, "application/json", strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}

// check ends the probes and looks at the largest memory that the server has used.
func (s *loaded) check(t *testing.T) {
	t.Helper()
	s.stop.Close()
	if err := s.prober.Wait(); err != nil {
		t.Errorf("probes: %v, %s", err, s.probed)
	}
	probes := strings.Fields(s.probed.String())
	missed := strings.Count(s.probed.String(), late)
	t.Logf("%d probes, %d without an answer within 100 ms", len(probes), missed)
	if missed > 0 && ownSession() != nil {
		t.Errorf("%d of %d probes had no answer within 100 ms", missed, len(probes))
	}
	used := peakMemory(t, s.pid)
	t.Logf("the server used up to %d MiB", used>>20)
	if used > maxServerMemory {
		t.Errorf("the server used %d MiB of memory", used>>20)
	}
	if server, err := os.FindProcess(s.pid); err == nil {
		_ = server.Kill()
	}
}

// Models that predict large bags one after the other use the memory of one model.
func TestServeModelsShareMemory(t *testing.T) {
	dir := t.TempDir()
	if out, err := exec.Command("miplc", "build", "dsmil", "--set", "data.shape=[4]", "--set", "data.classes=3", "-o",
		filepath.Join(dir, "built")).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	models := []string{"a", "b", "c", "d", "e", "f"}
	for _, name := range models {
		if err := os.CopyFS(filepath.Join(dir, "models", name), os.DirFS(filepath.Join(dir, "built"))); err != nil {
			t.Fatal(err)
		}
	}
	s := serveModels(t, filepath.Join(dir, "models"), strings.Join(models, ","), "--timeout", "1m")
	body := `{"instances":[` + strings.Repeat("[0,0,0,0],", 99_999) + `[0,0,0,0]]}`
	first := 0
	for _, name := range models {
		resp, err := http.Post("http://"+s.web+"/predict?model="+name, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: status %d, %v", name, resp.StatusCode, err)
		}
		resp.Body.Close()
		used := peakMemory(t, s.pid)
		if first == 0 {
			first = used
		} else if used > first+250<<20 {
			t.Fatalf("%d MiB after model %s, %d MiB after the first", used>>20, name, first>>20)
		}
	}
}

// peakMemory returns the largest memory that a process has used, in bytes.
func peakMemory(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Skipf("the memory of a process is not known here: %v", err)
	}
	kib, err := strconv.Atoi(regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindStringSubmatch(string(text))[1])
	if err != nil {
		t.Fatal(err)
	}
	return kib << 10
}
