// The web page on which users try a model, with its example bags.

package serve

import (
	"embed"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/runtime"
)

//go:embed page openapi.json
var files embed.FS

// Example is a bag that the web page can show.
type Example struct {
	Instances []float32 // [N, ...] row-major, as in runtime.Bag
	N         int       // at least 1
	Class     string    // its true class; "" if unknown
	Coords    []float32 // [N, 2], x before y; nil if unknown
}

// checkExamples rejects examples that no model can predict, because all models have another number
// of features or other feature names.
func (s *Server) checkExamples() error {
	if len(s.o.Examples) == 0 {
		return nil
	}
	have := len(s.o.Examples[0].Instances) / s.o.Examples[0].N
	var problems []string
	for _, name := range s.models.names() {
		v, done, err := s.models.use(name, "")
		if err != nil {
			continue
		}
		want, columns := ndarray.Size(v.info.InputShape), v.info.Columns
		done()
		if want != have {
			problems = append(problems, fmt.Sprintf("%s expects %d", name, want))
			continue
		}
		if columns == nil || len(columns.Features) == 0 || s.o.Features == nil ||
			slices.Equal(columns.Features, s.o.Features) {
			return nil
		}
		for i, feature := range columns.Features {
			if feature != s.o.Features[i] {
				problems = append(problems, fmt.Sprintf("feature %d of %s is %q and that of the bags is %q", i+1, name,
					feature, s.o.Features[i]))
				break
			}
		}
	}
	return fmt.Errorf("the example bags have instances of %d values, but %s", have, strings.Join(problems, ", "))
}

// getFile returns a handler that sends an embedded file.
func getFile(name string) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		w.Header().Set("Content-Security-Policy",
			"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "+
				"base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		http.ServeFileFS(w, r, files, name)
		return nil
	}
}

// modelInfo is the description of a model for the page and other programs.
type modelInfo struct {
	Name     string   `json:"name"`
	Versions []string `json:"versions"`
	Findings []string `json:"findings,omitempty"` // weaknesses that the training found, the most harmful first
	runtime.Info
}

// getModels sends the newest version of each model and the number of example bags.
func (s *Server) getModels(w http.ResponseWriter, _ *http.Request) error {
	all := []modelInfo{}
	for _, name := range s.models.names() {
		if v, done, err := s.models.use(name, ""); err == nil { // it may have been removed just now
			all = append(all, modelInfo{name, s.models.versions(name), v.findings, v.info})
			done()
		}
	}
	return writeJSON(w, http.StatusOK, map[string]any{"models": all, "bags": len(s.o.Examples)})
}

// getBag sends an example bag, counted from 1, in the form that /predict accepts.
func (s *Server) getBag(w http.ResponseWriter, r *http.Request) error {
	if len(s.o.Examples) == 0 {
		return status.Error(codes.NotFound, "there are no bags; the server needs --bags to show some")
	}
	n, err := strconv.Atoi(r.PathValue("number"))
	if err != nil || n < 1 || n > len(s.o.Examples) {
		return status.Errorf(codes.NotFound, "there is no bag %.40q; they count from 1 to %d", r.PathValue("number"),
			len(s.o.Examples))
	}
	e := s.o.Examples[n-1]
	instances := slices.Collect(slices.Chunk(e.Instances, len(e.Instances)/e.N))
	return writeJSON(w, http.StatusOK, struct {
		Instances [][]float32 `json:"instances"`
		Class     string      `json:"class,omitempty"`
		Coords    [][]float32 `json:"coords,omitempty"`
	}{instances, e.Class, slices.Collect(slices.Chunk(e.Coords, 2))})
}
