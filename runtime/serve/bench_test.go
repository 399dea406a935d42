// The time of a request in JSON, without the network.

package serve

import (
	"net/http/httptest"
	"strings"
	"testing"
)

// BenchmarkInferJSON measures one JSON request to infer, without the network.
func BenchmarkInferJSON(b *testing.B) {
	s := start(b)
	bag := randomBag(80, 1)
	body := asJSON(map[string]any{"inputs": []any{map[string]any{"name": "instances", "datatype": "FP32",
		"shape": []int{80, 3}, "data": bag.Instances}}})
	handler := s.handler()
	b.ReportAllocs()
	for b.Loop() {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest("POST", "/v2/models/bag/infer", strings.NewReader(body)))
		if w.Code != 200 {
			b.Fatal(w.Body)
		}
	}
}
