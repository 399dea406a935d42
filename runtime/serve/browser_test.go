// The web page predicts features and images in a real browser.

package serve

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/miplc/miplc/internal/testkit/testsupport"
)

// In Chromium, the page opens with a prediction, and predicts features, and image files for a model with an encoder or
// one that cuts images.
func TestPageInBrowser(t *testing.T) {
	browser := testsupport.Browser(t)
	s := start(t, func(o *Config) { o.RequestMemory = 256 << 20 })
	put(t, filepath.Join(s.dir, "images.onnx"), "../testdata/images-3x4.onnx")
	putClasses(t, filepath.Join(s.dir, "classes.onnx"))
	putModel(t, filepath.Join(s.dir, "rows.onnx"), 9, "row")
	if _, err := s.models.reload(); err != nil {
		t.Fatal(err)
	}
	report := make(chan string, 1)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /report", func(_ http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		report <- string(text)
	})
	mux.HandleFunc("GET /test", func(w http.ResponseWriter, r *http.Request) {
		http.ServeFile(w, r, "testdata/page_test.html")
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { s.handler().ServeHTTP(framed{w}, r) })
	server := httptest.NewServer(mux)
	defer server.Close()
	profile, err := os.MkdirTemp("", "miplc-page")
	if err != nil {
		t.Fatal(err)
	}
	window := exec.Command(browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		"--user-data-dir="+profile, server.URL+"/test")
	if err := window.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		window.Process.Kill()
		window.Wait()
		os.RemoveAll(profile) // its other processes may still write there
	}()
	const want = `opens with a random bag: true
image files offered: false
Prediction: class 2, 2 instances, 0 images
attention of 5 lists, 5 different, chosen: true, map: true
image files offered: true
Prediction: class 0, 3 instances, 3 images
image files offered: true
Attention of 8 instances, all 0.1250, 8 instances, 0 images`
	select {
	case got := <-report:
		if got != want {
			t.Errorf("the page reports:\n%s\nwant:\n%s", got, want)
		}
	case <-time.After(time.Minute):
		t.Fatal("the page did not report within a minute")
	}
}

// framed allows the test to show the page in a frame.
type framed struct{ http.ResponseWriter }

func (f framed) WriteHeader(code int) {
	f.Header().Del("Content-Security-Policy")
	f.ResponseWriter.WriteHeader(code)
}
