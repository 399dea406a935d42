// Models and certificates are added, replaced and removed without a failed request, and bad files do no harm.

package serve

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/miplc/miplc/internal/contract"
	"github.com/miplc/miplc/internal/fileio"
	"github.com/miplc/miplc/internal/onnxpb"
	"github.com/miplc/miplc/internal/testkit/enginetest"
	"github.com/miplc/miplc/runtime"
	"github.com/miplc/miplc/runtime/serve/oip"
)

// The page shows what the training of a model found, if the summary beside the file is of this file.
func TestFindingsBesideTheModel(t *testing.T) {
	s := start(t)
	const finding = `"findings":["the training accuracy is far above: train less","few test bags"]`
	if _, text := s.ask(t, "GET", "/models", ""); strings.Contains(text, "findings") {
		t.Errorf("findings without a summary: %s", text)
	}
	hash, err := fileio.SHA256(bagModel)
	if err != nil {
		t.Fatal(err)
	}
	for sum, want := range map[string]bool{hash: true, "of another file": false} {
		dir := t.TempDir()
		put(t, filepath.Join(dir, modelFileName), bagModel)
		summary := fmt.Sprintf(`{"model_sha256": %q, "findings": [{"text": "the training accuracy is far above", "advice": `+
			`"train less"}, {"text": "few test bags"}]}`, sum)
		if err := os.WriteFile(filepath.Join(dir, "summary.json"), []byte(summary), 0o644); err != nil {
			t.Fatal(err)
		}
		server, err := New(dir, func(path string) (*runtime.Model, error) { return runtime.Open(path) }, s.o)
		if err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		server.handler().ServeHTTP(w, httptest.NewRequest("GET", "/models", nil))
		if strings.Contains(w.Body.String(), finding) != want {
			t.Errorf("summary of %s: %s", sum, w.Body)
		}
	}
}

func TestScan(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{"a.onnx", "run/model.onnx", "many/1/model.onnx", "many/12/model.onnx",
		"many/x/model.onnx", "many/01/model.onnx", "many/+1/model.onnx", "many/config.pbtxt", "empty/notes.txt",
		".hidden/model.onnx"} {
		put(t, filepath.Join(dir, path), bagModel)
	}
	for root, want := range map[string]string{
		".":              "a 1 a.onnx, many 1 many/1/model.onnx, many 12 many/12/model.onnx, run 1 run/model.onnx",
		"a.onnx":         "a 1 a.onnx",
		"run":            "run 1 run/model.onnx",
		"run/model.onnx": "run 1 run/model.onnx",
		"empty":          "contains no model",
		"nosuch":         "there is no model",
	} {
		places, err := scan(filepath.Join(dir, root))
		var got []string
		for _, p := range places {
			rel, _ := filepath.Rel(dir, p.path)
			got = append(got, p.name+" "+(&openVersion{modelFile: p}).versionText()+" "+filepath.ToSlash(rel))
		}
		if err != nil {
			got = []string{err.Error()}
		}
		if text := strings.Join(got, ", "); text != want && !(err != nil && strings.Contains(text, want)) {
			t.Errorf("%s: %s\nwant %s", root, text, want)
		}
	}
	put(t, filepath.Join(dir, "a", "model.onnx"), bagModel)
	if _, err := scan(dir); err == nil || !strings.Contains(err.Error(), "are both the model a") {
		t.Error(err)
	}
}

// touch changes the time of a file by more than the resolution of the file system.
func touch(t *testing.T, path string) {
	t.Helper()
	if err := os.Chtimes(path, time.Time{}, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
}

// sameSize changes the content of a model file without changing its size or time.
func sameSize(t *testing.T, path string) {
	t.Helper()
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(data, []byte("miplc.engine")) // metadata: the model stays valid
	if at < 0 {
		t.Fatal("no metadata")
	}
	copy(data[at+len("miplc.engine")+2:], "N")
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, time.Time{}, before.ModTime()); err != nil {
		t.Fatal(err)
	}
	if after, err := os.Stat(path); err != nil || after.Size() != before.Size() ||
		!after.ModTime().Equal(before.ModTime()) {
		t.Fatal(after, err)
	}
}

// A model that cannot be opened does not prevent others from being served, unless the options
// require it.
func TestBrokenModel(t *testing.T) {
	enginetest.Library(t)
	dir := t.TempDir()
	put(t, filepath.Join(dir, "good.onnx"), bagModel)
	if err := os.WriteFile(filepath.Join(dir, "bad.onnx"), []byte("no model"), 0o644); err != nil {
		t.Fatal(err)
	}
	open := func(path string) (*runtime.Model, error) { return runtime.Open(path) }
	o := Config{Log: slog.New(slog.DiscardHandler), Batching: Batching{MaxBags: 1, Runs: 1, MaxWaiting: 1},
		RequestMemory: 1 << 20, RunMemory: 1 << 20, Decoders: 1}
	s, err := New(dir, open, o)
	if err != nil || !slices.Equal(s.Models(), []string{"good"}) {
		t.Fatal(err)
	}
	s.Close()
	o.Strict = true
	if _, err := New(dir, open, o); err == nil || !strings.Contains(err.Error(), "bad.onnx") {
		t.Error(err)
	}
	if err := os.Remove(filepath.Join(dir, "good.onnx")); err != nil {
		t.Fatal(err)
	}
	o.Strict = false
	if _, err := New(dir, open, o); err == nil || !strings.Contains(err.Error(), "bad.onnx") {
		t.Error(err)
	}
}

// Models are added, replaced and removed under load without a failed request. An invalid file does
// not replace the old model.
func TestReload(t *testing.T) {
	s := start(t)
	stop, failed := make(chan struct{}), make(chan string, 4)
	for range cap(failed) {
		go func() {
			for {
				select {
				case <-stop:
					failed <- ""
					return
				default:
				}
				if code, text := s.ask(t, "POST", "/predict?model=bag", `{"instances": [[1, 2, 3]]}`); code != 200 {
					failed <- text
					return
				}
			}
		}()
	}
	reload := func(changed int, wrong string) {
		t.Helper()
		n, err := s.models.reload()
		if n != changed || (err == nil) != (wrong == "") || err != nil && !strings.Contains(err.Error(), wrong) {
			t.Errorf("%d changed, %v; want %d, %q", n, err, changed, wrong)
		}
	}
	bag := filepath.Join(s.dir, "bag.onnx")
	reload(0, "")
	for range 5 {
		touch(t, bag)
		reload(0, "") // the content is the same
		put(t, bag, otherModel)
		reload(1, "")
		put(t, bag, bagModel)
		reload(1, "")
	}
	sameSize(t, bag)
	reload(1, "")
	put(t, bag, batchModel)
	reload(0, "it has the signature batch/1, the model in use bag/1")
	put(t, bag, "../testdata/demipl-38x13.onnx")
	reload(0, "it takes instances of shape [38], the model in use of [3]")
	reload(0, "") // it is reported once
	if err := os.WriteFile(bag, []byte("no model"), 0o644); err != nil {
		t.Fatal(err)
	}
	reload(0, "bag.onnx: "+runtime.ErrContract.Error())
	reload(0, "")
	put(t, filepath.Join(s.dir, "versioned", "2", modelFileName), batchModel)
	put(t, filepath.Join(s.dir, "versioned", "10", modelFileName), bagModel)
	if err := os.Remove(filepath.Join(s.dir, "batch.onnx")); err != nil {
		t.Fatal(err)
	}
	reload(3, "")
	if log := s.log.String(); !strings.Contains(log, `msg="model loaded" model=versioned version=10`) ||
		!strings.Contains(log, "sha256=") || strings.Count(log, "cut short") != 1 {
		t.Errorf("the log is\n%s", log)
	}
	if got := s.Models(); !slices.Equal(got, []string{"bag", "versioned"}) {
		t.Error(got)
	}
	for path, want := range map[string]string{"/v2/models/versioned": `"versions":["2","10"]`,
		"/v2/models/versioned/versions/2": `"bag_of"`, "/v2/models/batch": "no model"} {
		if _, text := s.ask(t, "GET", path, ""); !strings.Contains(text, want) {
			t.Errorf("%s: %s", path, text)
		}
	}
	close(stop)
	for range cap(failed) {
		if text := <-failed; text != "" {
			t.Error(text)
		}
	}
}

// A model with the same features in another order is rejected.
func TestReloadComparesFeatures(t *testing.T) {
	s := start(t)
	path := filepath.Join(s.dir, "bag.onnx")
	for _, c := range []struct{ features, wrong string }{
		{`"size","weight","age"`, ""}, // the first model has no names
		{`"weight","size","age"`, `its features are ["weight" "size" "age"], those of the model in use ["size" "weight" ` +
			`"age"]`},
	} {
		pb, err := onnxpb.Read(bagModel)
		if err != nil {
			t.Fatal(err)
		}
		pb.SetMetadata(contract.KeyColumns, `{"features":[`+c.features+`]}`)
		content, err := onnxpb.Marshal(pb)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := s.models.reload(); (err == nil) != (c.wrong == "") || err != nil &&
			!strings.Contains(err.Error(), c.wrong) {
			t.Errorf("features %s: %v", c.features, err)
		}
	}
}

// A file whose name is not a valid model name, and one that makes the program panic, are reported
// as invalid, and the server keeps running.
func TestReloadOfHostileFiles(t *testing.T) {
	s := start(t)
	whole := s.models.open
	s.models.open = func(path string) (*runtime.Model, error) {
		if filepath.Base(path) == "fall.onnx" {
			panic("fallen")
		}
		return whole(path)
	}
	for _, name := range []string{"fall", "\xff", "good"} {
		put(t, filepath.Join(s.dir, name+".onnx"), bagModel)
	}
	n, err := s.models.reload()
	if err == nil || !strings.Contains(err.Error(), "fallen") ||
		!strings.Contains(err.Error(), `\xff.onnx" gives the model the name`) {
		t.Error(err)
	}
	if got := s.Models(); n != 1 || !slices.Equal(got, []string{"bag", "batch", "good"}) {
		t.Error(n, got)
	}
}

// certify writes a certificate for 127.0.0.1 with its key.
func certify(t *testing.T, dir, name string) *x509.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{name},
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{"cert.pem": {Type: "CERTIFICATE", Bytes: der},
		"key.pem": {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(filepath.Join(dir, file), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
		touch(t, filepath.Join(dir, file))
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

// Both protocols support TLS and reload a changed certificate without a restart.
func TestTLS(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	certify(t, dir, "first.test")
	s := start(t, func(o *Config) {
		var err error
		if o.TLS, err = TLS(cert, key, o.Log); err != nil {
			t.Fatal(err)
		}
	})
	trusting := func(name string, of *x509.Certificate) *tls.Config {
		pool := x509.NewCertPool()
		pool.AddCert(of)
		return &tls.Config{RootCAs: pool, ServerName: name}
	}
	check := func(config *tls.Config) {
		t.Helper()
		client := http.Client{Transport: &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}}
		resp, err := client.Get("https://" + s.web + "/v2/health/ready")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != 200 || resp.ProtoMajor != 2 {
			t.Errorf("status %d over HTTP/%d", resp.StatusCode, resp.ProtoMajor)
		}
		conn := s.dial(t, grpc.WithTransportCredentials(credentials.NewTLS(config)))
		if _, err := oip.NewGRPCInferenceServiceClient(conn).ModelInfer(t.Context(), message(randomBag(2, 1),
			true)); err != nil {
			t.Error(err)
		}
	}
	second := certify(t, dir, "second.test")
	time.Sleep(reloadAge)
	check(trusting("second.test", second))
	if err := os.WriteFile(key, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	time.Sleep(reloadAge)
	check(trusting("second.test", second))
	if n := strings.Count(s.log.String(), "the previous one stays in use"); n != 1 {
		t.Errorf("%d lines about the certificate in the log:\n%s", n, s.log)
	}
	if _, err := TLS(cert, key, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "key.pem") {
		t.Error(err)
	}
}
