// Metrics have the names that Prometheus wants, and exist before the first event.

package serve

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
)

// Figures are named as Prometheus wants them, are there before the first event, and count
// requests that no route takes.
func TestMetrics(t *testing.T) {
	s := start(t)
	s.well(t)
	s.ask(t, "GET", "/nowhere", "")
	s.ask(t, "DELETE", "/models", "")
	_, text := s.ask(t, "GET", "/metrics", "")
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	for _, want := range []string{
		`miplc_reloads_total{result="changed"} 0`,
		`miplc_reloads_total{result="failed"} 0`,
		`miplc_requests_total{code="OK",method="POST /predict",protocol="http"} 1`,
		`miplc_requests_total{code="NotFound",method="ANY /",protocol="http"} 1`,
		`miplc_requests_total{code="Unimplemented",method="ANY /models",protocol="http"} 1`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
}
