// The listener for operators: health and metrics, apart from the clients.

package serve

import (
	"net/http"
	"strings"
)

// adminConnections is the maximum number of connections of the listener for health and metrics.
const adminConnections = 256

// adminHandler serves health and metrics for any host and without a token. Operators use this
// listener, which is reachable when all connections of the other one are in use.
func (s *Server) adminHandler() http.Handler {
	var routes []route
	for _, r := range s.routes() {
		if r.path != "/metrics" && !strings.HasPrefix(r.path, "/v2/health/") && !strings.HasSuffix(r.path, "/ready") {
			continue
		}
		r.public = true
		routes = append(routes, r)
	}
	return s.mux(routes, nil,
		"this listener answers GET /metrics, /v2/health/live, /v2/health/ready and /v2/models/NAME/ready")
}
