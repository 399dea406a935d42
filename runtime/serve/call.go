// Parts that all requests share: a deadline, the count in the metrics, and an error that the client can read.

package serve

import (
	"context"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/miplc/miplc/internal/resources"
)

// maxError is the maximum length in bytes of an error text, which may quote the client.
const maxError = 1000

// call answers one request of a protocol: it calls answer with a deadline, counts the request, and
// gives every error and panic a code.
func (s *Server) call(ctx context.Context, protocol, method string, answer func(context.Context) error) error {
	begin := time.Now()
	s.metrics.underway.Inc()
	defer s.metrics.underway.Dec()
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	err := resources.Try(func() error { return answer(ctx) })
	if _, hasCode := status.FromError(err); !hasCode {
		s.o.Log.Error("request failed", "protocol", protocol, "method", method, "error", err)
		// The reason may contain file names of this machine.
		err = status.Error(codes.Internal, "the server failed on this request; its log says why")
	}
	if text := status.Convert(err).Message(); len(text) > maxError {
		err = status.Error(status.Code(err), strings.ToValidUTF8(text[:maxError], "")+" ...")
	}
	s.metrics.requests.WithLabelValues(protocol, method, status.Code(err).String()).Inc()
	s.metrics.seconds.WithLabelValues(protocol, method).Observe(time.Since(begin).Seconds())
	return err
}

// invalid returns the error of a wrong request.
func invalid(format string, args ...any) error {
	return status.Errorf(codes.InvalidArgument, format, args...)
}

var errClientGone = status.Error(codes.Canceled, "the client closed the connection")
