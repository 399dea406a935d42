// Package serve answers for models over the network: the Open Inference Protocol v2 over
// HTTP and gRPC, and plain JSON of one bag at /predict.
package serve

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/miplc/miplc/internal/workers"
)

const serverName = "miplc"

// extensions of the protocol that the server has.
var extensions = []string{"binary_tensor_data"}

// Options direct a server. All bounds must be set.
type Options struct {
	Version   string // of the server, for its metadata
	Log       *slog.Logger
	Bytes     int64         // most bytes of a request
	Instances int           // most instances of a request
	Timeout   time.Duration // most time for a request to arrive, to be predicted, to be taken
	Reload    time.Duration // how often the models are looked at for new ones; 0: never
	LameDuck  time.Duration // how long requests are still taken after the end was asked for
	Drain     time.Duration // how long requests under way are waited for after that
}

// Server serves models.
type Server struct {
	models   *Models
	o        Options
	draining atomic.Bool
}

// New makes a server of models, which stay the caller's to close.
func New(models *Models, o Options) *Server { return &Server{models: models, o: o} }

// Serve serves HTTP on a listener until the context ends. Then it says that it is not
// ready, goes on for LameDuck, takes no more connections, and returns when the requests
// under way are answered; an error says that some were not within Drain.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	web := &http.Server{
		Handler:           s.handler(),
		ReadHeaderTimeout: s.o.Timeout,
		ReadTimeout:       s.o.Timeout,
		WriteTimeout:      3 * s.o.Timeout,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(s.o.Log.Handler(), slog.LevelDebug),
	}
	var group workers.Group
	failed := make(chan error, 1)
	group.Go(func() { failed <- web.Serve(listener) })
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	group.Go(func() { s.reload(ctx) })
	var err error
	select {
	case err = <-failed: // the listener broke
		stop()
	case <-ctx.Done():
		s.draining.Store(true)
		s.o.Log.Info("ending: no longer ready", "for", s.o.LameDuck)
		time.Sleep(s.o.LameDuck)
		err = s.drain(web)
	}
	group.Wait()
	return err
}

func (s *Server) drain(web *http.Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), s.o.Drain)
	defer cancel()
	err := web.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = errors.Join(errors.New("requests were still under way when the time to end was up"), web.Close())
	}
	return err
}

// reload looks for new models until the context ends.
func (s *Server) reload(ctx context.Context) {
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
			s.o.Log.Info("models reloaded", "changed", changed, "models", s.models.Names())
		}
		if err != nil {
			s.o.Log.Error("models not reloaded: those that were loaded stay", "error", err)
		}
	}
}

func (s *Server) ready() bool { return !s.draining.Load() }

func (s *Server) modelReady(name, number string) error {
	if !s.ready() {
		return status.Error(codes.Unavailable, "the server is ending")
	}
	_, done, err := s.models.use(name, number)
	if err == nil {
		done()
	}
	return err
}
