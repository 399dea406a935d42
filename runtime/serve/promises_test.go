// What clients use of the service: paths, fields of JSON and names of metrics.

package serve

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/miplc/miplc/internal/testkit/testsupport"
)

// Paths and fields of openapi.json, which describes the service as it is, and metrics remain from version to
// version.
func TestPromisedService(t *testing.T) {
	s := start(t)
	s.well(t)
	_, text := s.ask(t, "GET", "/openapi.json", "")
	doc := decode[map[string]any](t, text)
	var lines []string
	for path, methods := range doc["paths"].(map[string]any) {
		for method, operation := range methods.(map[string]any) {
			name := strings.ToUpper(method) + " " + path
			lines = append(lines, name)
			lines = append(lines, described(name, operation)...)
		}
	}
	lines = append(lines, described("", at(doc, "components", "schemas"))...)
	_, text = s.ask(t, "GET", "/metrics", "")
	for _, found := range regexp.MustCompile(`(?m)^# TYPE (miplc_.+)$`).FindAllStringSubmatch(text, -1) {
		lines = append(lines, "metric "+found[1])
	}
	testsupport.CheckPromises(t, "service", lines)
}

// described returns the parameters, the status codes and the fields with their types in a part of openapi.json.
func described(path string, part any) (lines []string) {
	switch part := part.(type) {
	case []any:
		for _, p := range part {
			lines = append(lines, described(path, p)...)
		}
	case map[string]any:
		if name, in := part["name"], part["in"]; in != nil {
			lines = append(lines, fmt.Sprintf("%s, parameter %v in the %v", path, name, in))
		}
		for key, inner := range part {
			switch key {
			case "type":
				lines = append(lines, fmt.Sprintf("%s: %v", path, inner))
			case "$ref":
				lines = append(lines, fmt.Sprintf("%s is %v", path, inner))
			case "description", "summary", "title", "example", "examples":
			default:
				lines = append(lines, described(strings.TrimSpace(path+" "+key), inner)...)
			}
		}
	}
	return lines
}
