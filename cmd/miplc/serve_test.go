// The server as a process: its threads, connections, shutdown under load, and wrong usage.

package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/miplc/miplc/internal/onnxruntime"
	"github.com/miplc/miplc/internal/testkit/enginetest"
)

var servingAt = regexp.MustCompile(`msg=serving models=(\S*) http=(\S+)(?: grpc=(\S+))?(?: admin=(\S+))?\n`)

// serving is a `miplc serve` in its own process.
type serving struct {
	web, rpc, admin string // addresses; admin only if a flag asks for it
	pid             int
	end             func(os.Signal) (code int, out string) // sends a signal and waits
}

// serveModel starts `miplc serve` of a model of 3 features and returns the address of HTTP
// and a function that sends a signal and returns how the process ended.
func serveModel(t *testing.T, flags ...string) (address string, end func(os.Signal) (code int, out string)) {
	t.Helper()
	s := serveProcess(t, flags...)
	return s.web, s.end
}

func serveProcess(t *testing.T, flags ...string) *serving {
	t.Helper()
	return serveModels(t, "../../runtime/testdata/demipl-3x4.onnx", "demipl-3x4", flags...)
}

// serveModels starts `miplc serve` of the models at a path, whose names are listed.
func serveModels(t *testing.T, path, names string, flags ...string) *serving {
	t.Helper()
	t.Setenv(onnxruntime.EnvLibrary, enginetest.Library(t))
	var out bytes.Buffer
	cmd := exec.Command("miplc", append([]string{"serve", path, "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0"},
		flags...)...)
	cmd.Stdout, cmd.SysProcAttr = &out, ownSession()
	pipe, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	errs := bufio.NewReader(pipe)
	line := func(of *regexp.Regexp) []string {
		for {
			text, err := errs.ReadString('\n')
			if found := of.FindStringSubmatch(text); found != nil {
				return found
			}
			if err != nil {
				t.Fatalf("%v: the output is %q", err, text)
			}
		}
	}
	found := line(servingAt)
	if found[1] != names {
		t.Fatalf("it serves %s", found[1])
	}
	s := &serving{web: found[2], rpc: found[3], admin: found[4], pid: cmd.Process.Pid}
	s.end = func(signal os.Signal) (int, string) {
		if err := cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		logged, err := io.ReadAll(errs)
		if err != nil {
			t.Error(err)
		}
		_ = cmd.Wait() // the exit code is checked
		return cmd.ProcessState.ExitCode(), out.String() + string(logged)
	}
	return s
}

// predictOnce requests a prediction. It reports whether the server tells the client to close the
// connection.
func predictOnce(client *http.Client, address string) (leave bool, err error) {
	resp, err := client.Post("http://"+address+"/predict", "application/json",
		strings.NewReader(`{"instances": [[1, 2, 3], [4, 5, 6]]}`))
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && (resp.StatusCode != 200 || !strings.Contains(string(text), `"attention"`)) {
		err = fmt.Errorf("status %d: %s", resp.StatusCode, text)
	}
	return resp.Close, err
}

// SIGTERM under load loses no request of clients that close connections when the server tells them
// to. The command reports it and exits with 0.
func TestServeEndsInOrder(t *testing.T) {
	address, end := serveModel(t)
	var group sync.WaitGroup
	begun := make(chan bool, 100)
	for i := range 8 {
		group.Go(func() {
			client := &http.Client{Transport: &http.Transport{}}
			for n := 0; ; n++ {
				leave, err := predictOnce(client, address)
				if err != nil {
					t.Errorf("client %d, request %d: %v", i, n, err)
				}
				if err != nil || leave {
					return
				}
				select {
				case begun <- true:
				default:
				}
			}
		})
	}
	for range cap(begun) {
		<-begun
	}
	code, out := end(syscall.SIGTERM)
	if code != 0 || !strings.Contains(out, "all accepted requests are answered") {
		t.Errorf("exit code %d\n%s", code, out)
	}
	group.Wait()
}

// The server adds one thread for each parallel run to GOMAXPROCS, unless the user set it, so that runs do
// not take the threads of requests.
func TestServeHasRoomForRuns(t *testing.T) {
	for _, c := range []struct{ env, want string }{{"", fmt.Sprint(runtime.GOMAXPROCS(0) + 5)}, {"3", "3"}} {
		t.Setenv("GOMAXPROCS", c.env)
		address, end := serveModel(t, "--parallel", "5", "--lame-duck", "0s")
		resp, err := http.Get("http://" + address + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || !strings.Contains(string(text), "\ngo_sched_gomaxprocs_threads "+c.want+"\n") {
			t.Errorf("GOMAXPROCS=%q: %v: not %s threads\n%s", c.env, err, c.want, text)
		}
		end(syscall.SIGTERM)
	}
}

// A server with 10,000 open connections still answers requests and shuts down.
func TestServe10000Connections(t *testing.T) {
	const many = 10_000
	if files := maxFiles(); files < many+1000 {
		t.Skipf("a process may have %d open files here, %d connections need more (ulimit -n)", files, many)
	}
	address, end := serveModel(t, "--max-connections", fmt.Sprint(many+10), "--lame-duck", "0s", "--timeout", "20s")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for i := range many {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
		defer conn.Close()
		if i%1000 == 0 {
			if _, err := predictOnce(client, address); err != nil {
				t.Fatalf("with %d connections: %v", i+1, err)
			}
		}
	}
	if _, err := predictOnce(client, address); err != nil {
		t.Errorf("with %d connections: %v", many, err)
	}
	if code, out := end(syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d\n%s", code, out)
	}
}

// Wrong usage is reported before the server starts.
func TestServeUsage(t *testing.T) {
	t.Setenv(onnxruntime.EnvLibrary, enginetest.Library(t))
	dir := t.TempDir()
	model := "../../runtime/testdata/demipl-3x4.onnx"
	if err := os.WriteFile(dir+"/empty.txt", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/two.txt", []byte("one\ntwo\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/long.txt", bytes.Repeat([]byte("x"), 1<<17), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/wide.csv", []byte("bag,label,candidates,f1,f2,f3,f4\n1,0,0 1,1,2,3,4\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{dir, 1, "contains no model"},
		{"nosuch", 1, "nosuch"},
		{model + " --tls-cert a.pem", 2, "--tls-cert and --tls-key need each other"},
		{model + " --tls-cert a.pem --tls-key b.pem", 1, "the certificate a.pem with the key b.pem"},
		{model + " --max-bytes 2GiB", 2, "--max-held must be at least 4 times --max-bytes (2 GiB)"},
		{model + " --token-file " + dir + "/empty.txt", 1, "there is no token in it"},
		{model + " --token-file nosuch", 1, "--token-file: open nosuch"},
		{model + " --token-file " + dir + "/two.txt", 1, "the token has a line break"},
		{model + " --token-file " + dir + "/long.txt", 1, "more than 4096 bytes"},
		{model + " --http=", 2, "--http needs an address"},
		{model + " --http 127.0.0.1:x", 1, "127.0.0.1:x: listen tcp"},
		{model + " --http 127.0.0.1:0 --grpc 127.0.0.1:x", 1, "127.0.0.1:x: listen tcp"},
		{model + " --timeout 0s", 2, "it must be between 1ms and 24h"},
		{model + " --batch 0", 2, "it must be between 1 and 4096"},
		{model + " --parallel 100000", 2, "it must be between 1 and 256"},
		{model + " --waiting 1000000000", 2, "it must be between 1 and 1048576"},
		{model + " --bags " + dir + "/wide.csv", 1, "instances of 4 values, but demipl-3x4 expects 3"},
		{model + " --max-bytes many", 2, "write a size such as"},
		{model + " --backend onnxgo", 2, `did you mean "onnx-go"`},
	} {
		out, err := exec.Command("miplc", append([]string{"serve"}, strings.Fields(c.args)...)...).CombinedOutput()
		if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != c.code ||
			!strings.Contains(string(out), c.want) {
			t.Errorf("miplc serve %s: %v, want exit code %d and %q\n%s", c.args, err, c.code, c.want, out)
		}
	}
}
