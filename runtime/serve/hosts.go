// The host names for which requests are answered, which protects a local server from web pages.

package serve

import (
	"net"
	"net/http"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
)

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

// checkHost rejects a request for another host name. Without it, a web page could assign the
// address 127.0.0.1 to the name of its own site; the browser would then send requests here and let
// the page read the answers.
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
