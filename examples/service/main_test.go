//go:build unix

// The example of a service answers requests and replaces its model while it runs.

package main

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/miplc/miplc/internal/testkit/enginetest"
)

// TestMain runs the service if TestService starts this program as a child process.
func TestMain(m *testing.M) {
	if os.Getenv("RUN_SERVICE") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// TestService uses the service like its users: it sends requests, replaces the model, writes a broken
// one, and ends the service.
func TestService(t *testing.T) {
	model := filepath.Join(t.TempDir(), "model.onnx")
	place := func(file string) {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(model+".new", data, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(model+".new", model); err != nil {
			t.Fatal(err)
		}
	}
	place("../../runtime/testdata/demipl-3x4.onnx")
	free, err := net.ListenTCP("tcp", nil)
	if err != nil {
		t.Fatal(err)
	}
	port := strconv.Itoa(free.Addr().(*net.TCPAddr).Port)
	free.Close()

	service := exec.Command(os.Args[0], model)
	service.Env = append(os.Environ(), "RUN_SERVICE=1", "PORT="+port, "HEALTH=/up", "ONNXRUNTIME_SHARED_LIBRARY_PATH="+
		enginetest.Library(t))
	pipe, err := service.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := service.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { service.Process.Kill() })
	log := bufio.NewScanner(pipe)
	logged := func(want string) {
		t.Helper()
		if !log.Scan() || !strings.Contains(log.Text(), want) {
			t.Fatalf("the service logged %q, want %q", log.Text(), want)
		}
	}
	address := "http://localhost:" + port
	ask := func(body string) string {
		t.Helper()
		answer, err := http.Post(address+"/predict", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.Status[:4] + string(text)
	}

	logged("model opened")
	for { // until it listens; the test times out if it never does
		if answer, err := http.Get(address + "/up"); err == nil {
			answer.Body.Close()
			if answer.StatusCode != http.StatusOK {
				t.Fatalf("the service is not healthy: %s", answer.Status)
			}
			break
		}
	}
	bag := "[[0.2, -1.0, 0.7], [1.5, 0.3, -0.4]]"
	first := ask(bag)
	for body, want := range map[string]string{
		bag:             `200 {"label":0,"class":"class 0","probabilities":[0.96`,
		"[[0.2, -1]]":   "400 the bag does not have the shape that the model needs",
		"[]":            "400 the bag has no instances",
		`{"bag": null}`: "400 json: cannot unmarshal",
	} {
		if got := ask(body); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
	hangUp := func(file, want string) {
		t.Helper()
		place(file)
		if err := service.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		logged(want)
	}
	hangUp("main.go", "model not reloaded: the one in use stays")
	if got := ask(bag); got != first {
		t.Errorf("after a broken file: %s, want %s", got, first)
	}
	hangUp("../../runtime/testdata/saturated-3x4.onnx", "model reloaded")
	if got := ask(bag); got == first || !strings.HasPrefix(got, "200 ") {
		t.Errorf("after a new model: %s", got)
	}
	if err := service.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	logged("model closed")
	if err := service.Wait(); err != nil {
		t.Errorf("the service ended with %v", err)
	}
}
