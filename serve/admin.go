package serve

import (
	"log/slog"
	"net/http"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// adminConnections is the maximum number of connections of the listener for health and metrics.
const adminConnections = 256

// adminHandler serves health and metrics for any host and without a token. Operators use this
// listener, which is reachable when all connections of the other one are in use.
func (s *Server) adminHandler() http.Handler {
	mux := http.NewServeMux()
	for _, r := range s.routes() {
		if r.path != "/metrics" && !strings.HasPrefix(r.path, "/v2/health/") && !strings.HasSuffix(r.path, "/ready") {
			continue
		}
		r.public = true
		mux.Handle(r.method+" "+r.path, s.serve(r, nil))
	}
	mux.Handle("/", s.serve(anyMethod("/", func(http.ResponseWriter, *http.Request) error {
		return status.Error(codes.NotFound, "unknown path; this listener answers GET /metrics, /v2/health/live, /v2/health/ready and /v2/models/NAME/ready")
	}), nil))
	return mux
}

func (s *Server) newAdmin() *http.Server {
	return &http.Server{
		Handler:           s.adminHandler(),
		ConnState:         httpState,
		ReadHeaderTimeout: s.o.Timeout,
		ReadTimeout:       s.o.Timeout,
		WriteTimeout:      s.whole(),
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(s.o.Log.Handler(), slog.LevelDebug),
	}
}
