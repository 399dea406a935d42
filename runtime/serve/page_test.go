// The page and openapi.json describe the service as it is, and load nothing from elsewhere.

package serve

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/miplc/miplc/internal/contract"
	"github.com/miplc/miplc/runtime"
)

// openapi.json describes all routes and which of them need a token.
func TestOpenAPI(t *testing.T) {
	s := start(t)
	code, text := s.ask(t, "GET", "/openapi.json", "")
	doc := decode[struct {
		Paths map[string]map[string]struct {
			Security   *[]any
			Parameters []struct{ Name, In string }
		}
	}](t, text)
	var described []string
	for path, methods := range doc.Paths {
		for method, op := range methods {
			described = append(described, strings.ToUpper(method)+" "+path)
			var named []string
			for _, p := range op.Parameters {
				if p.In == "path" {
					named = append(named, "{"+p.Name+"}")
				}
			}
			if want := regexp.MustCompile(`\{\w+\}`).FindAllString(path, -1); !slices.Equal(named, want) {
				t.Errorf("%s %s describes %v", method, path, named)
			}
		}
	}
	var there []string
	for _, r := range s.routes() {
		if r.path == "/{$}" || strings.HasPrefix(r.path, "/page.") {
			continue // for people
		}
		there = append(there, r.method+" "+r.path)
		if public := doc.Paths[r.path][strings.ToLower(r.method)].Security != nil; public != r.public {
			t.Errorf("%s: described as public: %v, actually: %v", r.path, public, r.public)
		}
	}
	slices.Sort(described)
	slices.Sort(there)
	if code != 200 || !slices.Equal(described, there) {
		t.Errorf("status %d, described:\n%s\nserved:\n%s", code, strings.Join(described, "\n"), strings.Join(there, "\n"))
	}
	for _, ref := range regexp.MustCompile(`"#/components/(\w+)/(\w+)"`).FindAllStringSubmatch(text, -1) {
		if !strings.Contains(text, `"`+ref[2]+`": {`) {
			t.Errorf("%s is not described", ref[0])
		}
	}
}

// The page loads its resources only from this server.
func TestPage(t *testing.T) {
	s := start(t, func(o *Config) {
		o.Examples = []Example{{Instances: []float32{1, 2, 3, 4, 5, 6}, N: 2, Class: "wren", Coords: []float32{0, 256, 128,
			256}}}
		o.Tokens = tokensOf(t, "secret")
	})
	_, page := s.ask(t, "GET", "/", "")
	for _, found := range regexp.MustCompile(`(?:src|href)="([^"]+)"`).FindAllStringSubmatch(page, -1) {
		if strings.HasPrefix(found[1], "data:") {
			continue
		}
		if code, text := s.ask(t, "GET", "/"+found[1], ""); code != 200 && found[1] != "metrics" || text == "" {
			t.Errorf("%s: status %d", found[1], code)
		}
	}
	get := func(path, want string) {
		t.Helper()
		req := httptest.NewRequest("GET", path, nil)
		req.Header.Set("Authorization", "Bearer secret")
		w := httptest.NewRecorder()
		s.handler().ServeHTTP(w, req)
		if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: status %d: %s", path, w.Code, w.Body)
		}
	}
	get("/bags/1", `{"instances":[[1,2,3],[4,5,6]],"class":"wren","coords":[[0,256],[128,256]]}`)
	get("/models", `"bags":1`)
	get("/models", `"name":"bag","versions":["1"],"contract":"bag/1"`)
	get("/metrics", `miplc_model_loaded{model="bag",version="1"} 1`)
}

// The schema of an answer describes every key of the answer.
func TestOpenAPIDescribesAnswers(t *testing.T) {
	s := start(t, func(o *Config) {
		o.Examples = []Example{{Instances: []float32{1, 2, 3}, N: 1, Class: "a", Coords: []float32{1, 2}}}
	})
	_, text := s.ask(t, "GET", "/openapi.json", "")
	doc := decode[map[string]any](t, text)
	for _, c := range []struct{ method, path, route, body string }{
		{"GET", "/models", "/models", ""},
		{"GET", "/bags/1", "/bags/{number}", ""},
		{"GET", "/v2", "/v2", ""},
		{"GET", "/v2/health/ready", "/v2/health/ready", ""},
		{"GET", "/v2/models/bag", "/v2/models/{model}", ""},
		{"GET", "/v2/models/bag/ready", "/v2/models/{model}/ready", ""},
		{"POST", "/predict?model=bag", "/predict", `{"instances": [[1, 2, 3]]}`},
		{"POST", "/v2/models/bag/infer", "/v2/models/{model}/infer",
			`{"id": "1", "inputs": [{"name": "instances", "datatype": "FP32", "shape": [1, 3], "data": [1, 2, 3]}]}`},
	} {
		code, text := s.ask(t, c.method, c.path, c.body)
		if code != 200 {
			t.Errorf("%s: status %d", c.path, code)
			continue
		}
		of := at(doc, "paths", c.route, strings.ToLower(c.method), "responses", "200", "content", "application/json",
			"schema")
		for _, missing := range undescribed(doc, of, decode[any](t, text), c.path) {
			t.Errorf("not described: %s", missing)
		}
	}
	schema := func(name string) any { return map[string]any{"$ref": "#/components/schemas/" + name} }
	withEncoder := asJSON(map[string]any{"models": []modelInfo{
		{Info: runtime.Info{Metadata: contract.Metadata{Encoder: &contract.Encoder{EncoderInput: contract.EncoderInput{
			Mean: []float64{0}, Std: []float64{1}}}}}}}})
	for _, missing := range undescribed(doc, schema("Models"), decode[any](t, withEncoder), "/models") {
		t.Errorf("not described: %s", missing)
	}
	if at(doc, "components", "schemas", "Bag", "properties", "images") == nil ||
		at(doc, "components", "schemas", "Bag", "required") != nil {
		t.Error("a bag of images is not described")
	}
}

// at returns a value inside nested objects, nil if there is none.
func at(v any, keys ...string) any {
	for _, k := range keys {
		object, _ := v.(map[string]any)
		v = object[k]
	}
	return v
}

// undescribed returns the keys of an answer that a schema does not describe.
func undescribed(doc map[string]any, schema, answer any, path string) (missing []string) {
	if ref, ok := at(schema, "$ref").(string); ok {
		schema = at(doc, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
	}
	if schema == nil {
		return []string{path}
	}
	switch answer := answer.(type) {
	case map[string]any:
		if at(schema, "additionalProperties") != nil {
			return nil
		}
		for key, v := range answer {
			missing = append(missing, undescribed(doc, at(schema, "properties", key), v, path+"."+key)...)
		}
	case []any:
		for _, v := range answer {
			missing = append(missing, undescribed(doc, at(schema, "items"), v, path+"[]")...)
		}
	}
	return missing
}
