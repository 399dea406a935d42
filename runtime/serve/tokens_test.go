// Only clients with a valid token get answers, and tokens can be exchanged while the server runs.

package serve

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/miplc/miplc/runtime/serve/oip"
)

// tokensOf writes tokens to files and opens them.
func tokensOf(t *testing.T, list ...string) *Tokens {
	t.Helper()
	var files []string
	for _, token := range list {
		file := filepath.Join(t.TempDir(), "token")
		if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	tokens, err := ReadTokens(files)
	if err != nil {
		t.Fatal(err)
	}
	return tokens
}

// A token that cannot be sent in a header is rejected when its file is read.
func TestTokenFiles(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	for text, want := range map[string]string{
		"a\nb": "line break", "a\r\nb": "line break", "a\x00b": "byte 2", "\x00": "byte 1", "a b": "byte 2",
		"\u00e9": "byte 1", "a\x7f": "byte 2",
		"": "no token", " \n": "no token", "s3cret!~/+=": "", "\n s3cret \r\n": "",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := ReadTokens([]string{file})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want ...%s...", text, err, want)
		}
	}
}

// Several tokens can be valid at the same time. A changed file is read again. If it cannot be read,
// the old token stays valid.
func TestTokenRotation(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(other, []byte("other"), 0o600); err != nil {
		t.Fatal(err)
	}
	tokens, err := ReadTokens([]string{file, other})
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, func(o *Config) { o.Tokens = tokens })
	check := func(when string, valid, invalid []string) {
		t.Helper()
		tokens.mu.Lock()
		tokens.read = time.Time{} // as if reloadAge had passed
		tokens.mu.Unlock()
		for _, token := range valid {
			if err := s.allowed("Bearer " + token); err != nil {
				t.Errorf("%s: %s: %v", when, token, err)
			}
		}
		for _, token := range invalid {
			if err := s.allowed("Bearer " + token); status.Code(err) != codes.Unauthenticated {
				t.Errorf("%s: %s: %v", when, token, err)
			}
		}
	}
	check("at first", []string{"old", "other"}, []string{"new", "oldother", ""})
	if err := os.WriteFile(file, []byte("new"), 0o600); err != nil {
		t.Fatal(err)
	}
	check("rotated", []string{"new", "other"}, []string{"old"})
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	check("removed", []string{"new", "other"}, []string{"old"})
}

// Without a token a client does not learn which models and versions are served.
func TestNamesNeedToken(t *testing.T) {
	s := start(t, func(o *Config) { o.Tokens = tokensOf(t, "secret") })
	client := oip.NewGRPCInferenceServiceClient(s.dial(t))
	for _, route := range s.routes() {
		path := strings.NewReplacer("{model}", "nosuch", "{version}", "7", "{number}", "1", "{$}", "").Replace(route.path)
		for _, path := range []string{path, strings.Replace(path, "nosuch", "bag", 1)} {
			code, text := s.ask(t, route.method, path, "")
			if path != "/openapi.json" && path != "/" && path != "/page.js" && path != "/page.css" &&
				strings.Contains(strings.ReplaceAll(text, `"name":"bag"`, ""), "batch") {
				t.Errorf("%s %s: %d %s", route.method, path, code, text)
			}
		}
	}
	for _, name := range []string{"", "nosuch"} {
		if _, err := client.ModelReady(t.Context(), &oip.ModelReadyRequest{Name: name}); err != nil &&
			strings.Contains(err.Error(), "batch") {
			t.Errorf("ModelReady of %q: %v", name, err)
		}
	}
}
