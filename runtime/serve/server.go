// Package serve is the prediction server: the Open Inference Protocol v2 over HTTP and gRPC, and
// plain JSON of one bag at /predict.
package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/netutil"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/miplc/miplc/internal/resources"
	"github.com/miplc/miplc/runtime"
)

const (
	serverName = "miplc"
	maxStreams = 64       // concurrent requests on one HTTP/2 connection
	maxHeader  = 16 << 10 // bytes of the header of a request

	// http2Buffer is the number of bytes of bodies that an HTTP/2 connection may send before the
	// server reads them.
	http2Buffer = 128 << 10
)

// extensions are the supported extensions of the protocol.
var extensions = []string{"binary_tensor_data"}

// Config configures New. All must be set except TLS, Tokens, Hosts, Strict, Examples and
// Features. Batching.Delay, Reload and LameDuck may be 0.
type Config struct {
	Version         string // of the server, for its metadata
	Log             *slog.Logger
	TLS             *tls.Config // nil: plain connections
	Tokens          *Tokens     // valid bearer tokens; nil: none is needed
	Hosts           []string    // allowed host names in requests, without ports; none or "*": any
	Batching        Batching
	MaxRequestBytes int64         // maximum size of a request
	RequestMemory   int64         // bytes of memory for all requests in flight, decoded ones included
	RunMemory       int64         // bytes of memory for all concurrent runs of models
	Decoders        int           // number of large requests that are decoded concurrently
	MaxInstances    int           // maximum number of instances in a request
	MaxConnections  int           // maximum number of HTTP connections, and of gRPC connections; others wait
	Timeout         time.Duration // maximum time from the header of a request to its prediction, see answerTimeout
	Reload          time.Duration // interval of checks for new models; 0: never
	Strict          bool          // fail if a model cannot be opened at the start
	Examples        []Example     // bags that the web page can show
	Features        []string      // names of the features of the examples; nil: unknown
	LameDuck        time.Duration // how long requests are still accepted after the context has ended
	Drain           time.Duration // how long to wait for requests in progress after that
}

// Server serves models.
type Server struct {
	o         Config
	models    *models
	metrics   *metrics
	admission *admission
	calls     atomic.Int64 // gRPC calls in flight
	draining  atomic.Bool
}

// New returns a server of all models at a path: a model file; a folder that contains model.onnx; or
// a folder of models, each as NAME.onnx, NAME/model.onnx or NAME/1/model.onnx, where numbers are
// versions. Models that cannot be opened are logged; it is an error if none can be opened, or if
// one cannot and Strict is set. Close frees the models.
func New(root string, open func(path string) (*runtime.Model, error), o Config) (*Server, error) {
	s := &Server{o: o, metrics: newMetrics(), admission: newAdmission(o.RequestMemory, o.Decoders)}
	s.models = &models{root: root, open: open, batching: o.Batching, metrics: s.metrics,
		memory: newMemoryPool(o.RunMemory, "--max-run-memory"), log: o.Log, loaded: map[string][]*openVersion{}}
	if _, err := s.models.reload(); err != nil && (o.Strict || len(s.models.names()) == 0) {
		s.Close()
		return nil, err
	}
	if err := s.checkExamples(); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Close frees the models. Serve must have returned.
func (s *Server) Close() { s.models.close() }

// Models returns the names of the models, sorted.
func (s *Server) Models() []string { return s.models.names() }

// Listeners are the listeners of a server. GRPC may be nil, and so may Admin, which serves health
// and metrics over HTTP without TLS.
type Listeners struct {
	HTTP, GRPC, Admin net.Listener
}

// Serve serves until the context ends. Then it reports not ready, keeps serving for LameDuck, stops
// accepting connections, and returns when the requests in flight are answered. It returns an error
// if some were not answered within Drain. If a listener fails, Serve answers the requests in flight and returns the
// error, without LameDuck.
func (s *Server) Serve(ctx context.Context, listeners Listeners) error {
	serving, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	ending, end := context.WithCancel(context.Background())
	defer end()
	httpListener := netutil.LimitListener(listeners.HTTP, s.o.MaxConnections)
	httpServer, adminServer := s.newHTTP(s.handler()), s.newHTTP(s.adminHandler())
	closeIdleAtLimit(httpServer, s.o.MaxConnections)
	grpcServer, readiness := s.newGRPC(ending)
	var group resources.Group
	start := func(serve func() error) {
		group.Go(func() {
			if err := serve(); !s.draining.Load() {
				stop(err)
			}
		})
	}
	if listeners.GRPC != nil {
		start(func() error { return grpcServer.Serve(netutil.LimitListener(listeners.GRPC, s.o.MaxConnections)) })
	}
	if s.o.TLS == nil {
		start(func() error { return httpServer.Serve(httpListener) })
	} else {
		start(func() error { return httpServer.ServeTLS(httpListener, "", "") })
	}
	if listeners.Admin != nil {
		start(func() error { return adminServer.Serve(netutil.LimitListener(listeners.Admin, adminConnections)) })
	}
	group.Go(func() { s.watchModels(serving) })

	<-serving.Done()
	s.draining.Store(true)
	readiness.Shutdown()
	if ctx.Err() != nil { // else a listener has failed
		s.o.Log.Info("shutting down: not ready", "for", s.o.LameDuck)
		time.Sleep(s.o.LameDuck)
	}
	end()
	err := s.stop(httpServer, grpcServer)
	adminServer.Close() // probes are answered until the end
	group.Wait()
	if cause := context.Cause(serving); !errors.Is(cause, context.Canceled) {
		err = errors.Join(cause, err)
	}
	return err
}

// stop stops the servers of both protocols. It closes their listeners and waits for the requests in
// flight, and up to five seconds for the first request of a connection.
func (s *Server) stop(httpServer *http.Server, grpcServer *grpc.Server) error {
	timeUp, cancel := context.WithTimeout(context.Background(), s.o.Drain)
	defer cancel()
	var group resources.Group
	group.Go(func() {
		defer context.AfterFunc(timeUp, grpcServer.Stop)()
		grpcServer.GracefulStop()
	})
	if err := httpServer.Shutdown(timeUp); err != nil {
		httpServer.Close()
	}
	group.Wait()
	if timeUp.Err() != nil {
		return errors.New("requests were still under way when the time to end was up")
	}
	return nil
}

func (s *Server) newHTTP(h http.Handler) *http.Server {
	return &http.Server{
		Handler:           h,
		TLSConfig:         s.o.TLS.Clone(),
		ReadHeaderTimeout: s.o.Timeout,
		ReadTimeout:       s.o.Timeout,
		WriteTimeout:      s.answerTimeout(),
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    maxHeader,
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: maxStreams,
			MaxReceiveBufferPerConnection: http2Buffer, MaxReceiveBufferPerStream: http2Buffer},
		ErrorLog: slog.NewLogLogger(s.o.Log.Handler(), slog.LevelDebug),
	}
}

// maxSilence is how long a connection may be silent while the server has the maximum number of connections.
const maxSilence = 2 * time.Second

// closeIdleAtLimit makes a server close idle connections, and those that have sent nothing for maxSilence, while it
// has the maximum number of connections, so that they do not shut out others. HTTP/2 connections are closed only by
// IdleTimeout.
func closeIdleAtLimit(server *http.Server, limit int) {
	var mu sync.Mutex
	open, silent := map[net.Conn]bool{}, map[net.Conn]time.Time{}
	closeSilent := func() {
		mu.Lock()
		defer mu.Unlock()
		for conn, since := range silent {
			if len(open) >= limit && time.Since(since) >= maxSilence {
				conn.Close()
			}
		}
	}
	server.ConnState = func(conn net.Conn, state http.ConnState) {
		mu.Lock()
		defer mu.Unlock()
		delete(silent, conn)
		switch state {
		case http.StateNew:
			open[conn], silent[conn] = true, time.Now()
		case http.StateClosed, http.StateHijacked:
			delete(open, conn)
		default:
			return
		}
		server.SetKeepAlivesEnabled(len(open) < limit)
		if len(open) >= limit {
			time.AfterFunc(maxSilence, closeSilent)
		}
	}
}

// answerTimeout returns the maximum time from the header of a request until its answer is sent. Clients
// may be slow to read a large answer.
func (s *Server) answerTimeout() time.Duration { return 3 * s.o.Timeout }

// watchModels checks for new models until the context ends.
func (s *Server) watchModels(ctx context.Context) {
	if s.o.Reload == 0 {
		return
	}
	ticker := time.NewTicker(s.o.Reload)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		changed, err := s.models.reload()
		if changed > 0 {
			s.metrics.reloads.WithLabelValues("changed").Inc()
		}
		if err != nil {
			s.metrics.reloads.WithLabelValues("failed").Inc()
			if s.models.scanError != "" {
				s.o.Log.Error("the models cannot be looked for", "error", err)
			}
		}
	}
}

func (s *Server) ready() bool { return !s.draining.Load() }

func (s *Server) modelReady(name, version string) error {
	if !s.ready() {
		return status.Error(codes.Unavailable, "the server is ending")
	}
	_, done, err := s.models.use(name, version)
	if err != nil { // without file names, because probes need no token
		return status.Error(status.Code(err), "there is no such model, or no such version of it")
	}
	done()
	return nil
}
