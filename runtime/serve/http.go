// The HTTP service: its routes, those of the listener for operators, the checks that they share, and the status of
// errors.

package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// route is one path of the HTTP service.
type route struct {
	method, path string
	public       bool // needs no token, for probes and browsers
	handle       func(http.ResponseWriter, *http.Request) error
}

// probe reports whether operators probe the path, at the address of the server, with which the header Host is no name.
// The answer is nothing that a web page could misuse.
func (r *route) probe() bool {
	return strings.HasPrefix(r.path, "/v2/health/") || strings.HasSuffix(r.path, "/ready")
}

// routes returns the routes of the service, which openapi.json describes.
func (s *Server) routes() []route {
	const model, exact = "/v2/models/{model}", "/v2/models/{model}/versions/{version}"
	return []route{
		{"GET", "/v2", false, s.getServer},
		{"GET", "/v2/health/live", true, s.getLive},
		{"GET", "/v2/health/ready", true, s.getReady},
		{"GET", model, false, s.getModel},
		{"GET", exact, false, s.getModel},
		{"GET", model + "/ready", true, s.getModelReady},
		{"GET", exact + "/ready", true, s.getModelReady},
		{"POST", model + "/infer", false, s.postInfer},
		{"POST", exact + "/infer", false, s.postInfer},
		{"POST", "/predict", false, s.postPredict},
		{"GET", "/models", false, s.getModels},
		{"GET", "/bags/{number}", false, s.getBag},
		{"GET", "/metrics", false, s.getMetrics},
		{"GET", "/openapi.json", true, getFile("openapi.json")},
		{"GET", "/{$}", true, getFile("page/index.html")},
		{"GET", "/page.js", true, getFile("page/page.js")},
		{"GET", "/page.css", true, getFile("page/page.css")},
	}
}

// handler returns the handler of all routes.
func (s *Server) handler() http.Handler {
	return s.mux(s.routes(), s.checkHost, "/openapi.json lists all paths")
}

// mux returns the handler of routes. Other methods of their paths are an error, and so are other paths;
// known says which there are. If check is not nil, it runs first, except for probes.
func (s *Server) mux(routes []route, check func(*http.Request) error, known string) http.Handler {
	mux := http.NewServeMux()
	anyMethod := func(path string, handle func(http.ResponseWriter, *http.Request) error) {
		mux.Handle(path, s.serve(route{"ANY", path, true, handle}, check))
	}
	for _, route := range routes {
		first := check
		if route.probe() {
			first = nil
		}
		mux.Handle(route.method+" "+route.path, s.serve(route, first))
		anyMethod(route.path, func(w http.ResponseWriter, r *http.Request) error {
			w.Header().Set("Allow", route.method)
			return status.Errorf(codes.Unimplemented, "%.200s accepts only %s", r.URL.Path, route.method)
		})
	}
	anyMethod("/", func(http.ResponseWriter, *http.Request) error {
		return status.Error(codes.NotFound, "unknown path; "+known)
	})
	return mux
}

// serve returns the handler of a route with the common checks. If check is not nil, it runs first.
func (s *Server) serve(route route, check func(*http.Request) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.draining.Load() {
			w.Header().Set("Connection", "close") // the next request will use another server
		}
		body := &watchedBody{ReadCloser: r.Body, left: r.ContentLength, ended: r.Body == http.NoBody}
		r.Body = body
		err := s.call(r.Context(), "http", route.method+" "+route.path, func(ctx context.Context) error {
			if check != nil {
				if err := check(r); err != nil {
					return err
				}
			}
			if !route.public {
				if err := s.allowed(r.Header.Get("Authorization")); err != nil {
					return err
				}
			}
			return route.handle(w, r.WithContext(ctx))
		})
		if err != nil {
			refuse(w, body, err)
		}
	})
}

// refuse answers with an error. If the body has not been read, it discards the rest until the
// deadline: clients that read the answer only after sending everything would otherwise see a broken
// connection.
func refuse(w http.ResponseWriter, body *watchedBody, err error) {
	if body.ended {
		fail(w, err)
		return
	}
	w.Header().Set("Connection", "close")
	control := http.NewResponseController(w)
	_ = control.EnableFullDuplex() // http.Server supports it
	fail(w, err)
	_ = control.Flush() // like the body, it may end with the connection
	_, _ = io.Copy(io.Discard, body.ReadCloser)
}

// watchedBody is the body of a request that records whether it was read to its end.
type watchedBody struct {
	io.ReadCloser
	left  int64 // bytes that were not read; negative: unknown
	ended bool
}

func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.left -= int64(n)
	b.ended = b.ended || err == io.EOF || b.left == 0 // over HTTP/2, io.EOF comes alone
	return n, err
}

// httpError is an error with an HTTP status that has no corresponding gRPC code.
type httpError struct {
	http int
	code codes.Code
	text string
}

func (e *httpError) Error() string              { return e.text }
func (e *httpError) GRPCStatus() *status.Status { return status.New(e.code, e.text) }

// httpStatus maps gRPC codes of errors to HTTP statuses.
var httpStatus = map[codes.Code]int{
	codes.InvalidArgument:   http.StatusBadRequest,
	codes.Unauthenticated:   http.StatusUnauthorized,
	codes.NotFound:          http.StatusNotFound,
	codes.Unimplemented:     http.StatusMethodNotAllowed,
	codes.ResourceExhausted: http.StatusRequestEntityTooLarge,
	codes.Unavailable:       http.StatusServiceUnavailable,
	codes.DeadlineExceeded:  http.StatusGatewayTimeout,
	codes.Canceled:          499, // the client closed the connection
}

func fail(w http.ResponseWriter, err error) {
	of := status.Convert(err)
	code := httpStatus[of.Code()]
	if special := (*httpError)(nil); errors.As(err, &special) {
		code = special.http
	}
	switch code {
	case 0:
		code = http.StatusInternalServerError
	case http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", "1")
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	_ = writeJSON(w, code, map[string]string{"error": of.Message()}) // strings can always be encoded
}

func writeJSON(w http.ResponseWriter, code int, v any) error {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(text.Len()))
	w.WriteHeader(code)
	_, _ = w.Write(text.Bytes()) // the client may have gone
	return nil
}

func (s *Server) getServer(w http.ResponseWriter, _ *http.Request) error {
	return writeJSON(w, http.StatusOK,
		map[string]any{"name": serverName, "version": s.o.Version, "extensions": extensions})
}

func (s *Server) getMetrics(w http.ResponseWriter, r *http.Request) error {
	promhttp.HandlerFor(s.metrics.registry, promhttp.HandlerOpts{}).ServeHTTP(w, r)
	return nil
}

func (s *Server) getLive(w http.ResponseWriter, _ *http.Request) error {
	return writeJSON(w, http.StatusOK, map[string]bool{"live": true})
}

func (s *Server) getReady(w http.ResponseWriter, _ *http.Request) error {
	if !s.ready() {
		return status.Error(codes.Unavailable, "the server is ending")
	}
	return writeJSON(w, http.StatusOK, map[string]bool{"live": true, "ready": true})
}

func (s *Server) getModelReady(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("model")
	if err := s.modelReady(name, r.PathValue("version")); err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, map[string]any{"name": name, "ready": true})
}

func (s *Server) getModel(w http.ResponseWriter, r *http.Request) error {
	m, err := s.modelMetadata(r.PathValue("model"), r.PathValue("version"))
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, m)
}

// adminConnections is the maximum number of connections of the listener for health and metrics.
const adminConnections = 256

// adminHandler serves health and metrics for any host and without a token. Operators use this
// listener, which is reachable when all connections of the other one are in use.
func (s *Server) adminHandler() http.Handler {
	var routes []route
	for _, r := range s.routes() {
		if r.path != "/metrics" && !r.probe() {
			continue
		}
		r.public = true
		routes = append(routes, r)
	}
	return s.mux(routes, nil,
		"this listener answers GET /metrics, /v2/health/live, /v2/health/ready and /v2/models/NAME/ready")
}

// anyHost in Config.Hosts permits every name.
const anyHost = "*"

// LocalHosts returns the names by which clients reach a server that listens on an address, if only
// this machine can reach it. Otherwise the names are not known, and it returns "*", any host.
func LocalHosts(listen string) []string {
	host, _, err := net.SplitHostPort(listen)
	if ip := net.ParseIP(host); err != nil || host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return []string{anyHost}
	}
	names := []string{"localhost", "127.0.0.1", "::1"}
	if !slices.Contains(names, host) {
		names = append(names, host)
	}
	return names
}

// checkHost rejects a request for another host name. This prevents DNS rebinding: a web page makes the name of its
// site point to 127.0.0.1, and reads the answers of this server through the browser of its visitor.
func (s *Server) checkHost(r *http.Request) error {
	name := r.Host
	if host, _, err := net.SplitHostPort(name); err == nil {
		name = host
	}
	name = strings.TrimSuffix(strings.Trim(name, "[]"), ".")
	permitted := func(host string) bool { return host == anyHost || strings.EqualFold(host, name) }
	if len(s.o.Hosts) == 0 || slices.ContainsFunc(s.o.Hosts, permitted) {
		return nil
	}
	return &httpError{http.StatusMisdirectedRequest, codes.InvalidArgument,
		"the header Host of the request is not an allowed host; add it to --allowed-hosts of the server"}
}
