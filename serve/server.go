// Package serve answers for models over the network: the Open Inference Protocol v2 over
// HTTP and gRPC, and plain JSON of one bag at /predict.
package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/miplc/miplc/internal/workers"
	"github.com/miplc/miplc/runtime"
)

const (
	serverName = "miplc"
	maxStreams = 64       // requests at a time on one connection of HTTP/2
	maxHeader  = 16 << 10 // bytes of the head of a request

	// http2Buffer is the bytes of bodies that a connection of HTTP/2 may send before the
	// server reads them.
	http2Buffer = 128 << 10

	// firstRequest is how long the end waits for the first request of a connection:
	// http.Server.Shutdown takes one that has said nothing for longer for idle.
	firstRequest = 5 * time.Second
)

// extensions of the protocol that the server has.
var extensions = []string{"binary_tensor_data"}

// Options direct a server. All but TLS, Tokens, Hosts, Reload, Strict, Examples and Features must be
// set.
type Options struct {
	Version     string // of the server, for its metadata
	Log         *slog.Logger
	TLS         *tls.Config // nil: plain connections
	Tokens      *Tokens     // one of which clients must bear; nil: none is needed
	Hosts       []string    // names in the header Host of requests, without ports; none or "*": any
	Batching    Batching
	Bytes       int64         // most bytes of a request
	Held        int64         // bytes of memory for all requests in flight, decoded ones included
	Runs        int64         // bytes of memory for all runs of models in parallel
	Decoders    int           // large requests that are decoded in parallel
	Instances   int           // most instances of a request
	Connections int           // most connections of HTTP, and of gRPC; an idle one is closed for a new one, else it waits
	Timeout     time.Duration // most time for a request to arrive, to be predicted, to be taken
	Reload      time.Duration // how often the models are looked at for new ones; 0: never
	Strict      bool          // all models must open at the start
	Examples    []Example     // bags that the page offers
	Features    []string      // names of the features of the examples; nil: unknown
	LameDuck    time.Duration // how long requests are still taken after the end was asked for
	Drain       time.Duration // how long requests under way are waited for after that
}

// Server serves models.
type Server struct {
	o            Options
	models       *models
	metrics      *metrics
	admission    *admission
	calls        atomic.Int64 // of gRPC in flight
	rpc          *listener    // of gRPC; nil: none
	pendingConns pendingConns
	draining     atomic.Bool
}

// New makes a server of all models at a path: a model file; a folder that holds
// model.onnx; or a folder of models, each as NAME.onnx, NAME/model.onnx or
// NAME/1/model.onnx, where numbers are versions. Those that do not open are logged; if none
// opens, or one does not and Strict is set, that is an error. Close frees the models.
func New(root string, open func(path string) (*runtime.Model, error), o Options) (*Server, error) {
	s := &Server{o: o, metrics: newMetrics(), admission: newAdmission(o.Held, o.Decoders), pendingConns: pendingConns{conns: map[net.Conn]bool{}}}
	s.models = &models{root: root, open: open, batch: o.Batching, memory: newRunMemory(o.Runs), metrics: s.metrics, log: o.Log, loaded: map[string][]*version{}}
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

// Close frees the models; no Serve may be under way.
func (s *Server) Close() { s.models.close() }

// Models returns the names of the models, sorted.
func (s *Server) Models() []string { return s.models.names() }

// Listeners are what a server listens on. GRPC and Admin, for health and metrics over HTTP
// without TLS, may be nil.
type Listeners struct {
	HTTP, GRPC, Admin net.Listener
}

// Serve serves until the context ends. Then it reports that it is not ready, goes on for
// LameDuck, stops accepting connections, and returns when the requests in flight are
// answered. An error says that some were not within Drain.
func (s *Server) Serve(ctx context.Context, on Listeners) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	ending, end := context.WithCancel(context.Background())
	defer end()
	web := listen(on.HTTP, s.o.Connections)
	if on.GRPC != nil {
		s.rpc = listen(on.GRPC, s.o.Connections)
	}
	httpServer, admin := s.newHTTP(), s.newAdmin()
	grpcServer, readiness := s.newGRPC(ending)
	var group workers.Group
	start := func(serve func() error) {
		group.Go(func() {
			if err := serve(); !s.draining.Load() {
				stop(err)
			}
		})
	}
	if s.rpc != nil {
		start(func() error { return grpcServer.Serve(s.rpc) })
	}
	if s.o.TLS == nil {
		start(func() error { return httpServer.Serve(web) })
	} else {
		start(func() error { return httpServer.ServeTLS(web, "", "") })
	}
	if on.Admin != nil {
		start(func() error { return admin.Serve(listen(on.Admin, adminConnections)) })
	}
	group.Go(func() { s.watchModels(ctx) })

	<-ctx.Done()
	s.draining.Store(true)
	readiness.Shutdown()
	s.o.Log.Info("ending: no longer ready", "for", s.o.LameDuck)
	time.Sleep(s.o.LameDuck)
	end()
	s.stopAccepting(web)
	err := s.drain(httpServer, grpcServer)
	admin.Close() // its probes are answered to the end
	group.Wait()
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		err = errors.Join(cause, err)
	}
	return err
}

// stopAccepting closes the listeners when all connections that the kernel has accepted
// are taken.
func (s *Server) stopAccepting(web *listener) {
	var group workers.Group
	group.Go(web.drain)
	if s.rpc != nil {
		group.Go(s.rpc.drain)
	}
	group.Wait()
}

// drain closes what listens and waits for the requests under way, of both protocols at a
// time, and for those of connections that were taken just now.
func (s *Server) drain(web *http.Server, rpc *grpc.Server) error {
	timeUp, cancel := context.WithTimeout(context.Background(), s.o.Drain)
	defer cancel()
	var group workers.Group
	group.Go(func() {
		defer context.AfterFunc(timeUp, rpc.Stop)()
		rpc.GracefulStop()
	})
	first, cancelFirst := context.WithTimeout(timeUp, firstRequest)
	defer cancelFirst()
	s.pendingConns.wait(first)
	if err := web.Shutdown(timeUp); err != nil {
		web.Close()
	}
	group.Wait()
	if timeUp.Err() != nil {
		return errors.New("requests were still under way when the time to end was up")
	}
	return nil
}

func (s *Server) newHTTP() *http.Server {
	return &http.Server{
		Handler:           s.pendingConns.handler(s.handler()),
		ConnContext:       s.pendingConns.add,
		ConnState:         s.pendingConns.state,
		TLSConfig:         s.o.TLS.Clone(),
		ReadHeaderTimeout: s.o.Timeout,
		ReadTimeout:       s.o.Timeout,
		WriteTimeout:      s.whole(),
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    maxHeader,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: maxStreams, MaxReceiveBufferPerConnection: http2Buffer, MaxReceiveBufferPerStream: http2Buffer},
		ErrorLog:          slog.NewLogLogger(s.o.Log.Handler(), slog.LevelDebug),
	}
}

// whole returns the most time from the head of a request until its answer is taken: it may
// arrive, be predicted and be taken in Timeout each.
func (s *Server) whole() time.Duration { return 3 * s.o.Timeout }

// watchModels looks for new models until the context ends.
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

func (s *Server) modelReady(name, number string) error {
	if !s.ready() {
		return status.Error(codes.Unavailable, "the server is ending")
	}
	_, done, err := s.models.use(name, number)
	if err != nil { // without the names in it: probes need no token
		return status.Error(status.Code(err), "there is no such model, or no such version of it")
	}
	done()
	return nil
}
