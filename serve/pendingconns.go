package serve

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"
)

// pendingConns are the HTTP connections that were accepted but have not sent a request
// yet. http.Server closes them without an answer when it shuts down.
type pendingConns struct {
	mu    sync.Mutex
	conns map[net.Conn]bool
}

// connKey is the context key of the connection of a request.
type connKey struct{}

// add registers a connection. It is the ConnContext hook of an http.Server.
func (p *pendingConns) add(ctx context.Context, c net.Conn) context.Context {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns[c] = true
	return context.WithValue(ctx, connKey{}, c)
}

// state is the ConnState hook of an http.Server.
func (p *pendingConns) state(c net.Conn, state http.ConnState) {
	httpState(c, state)
	if state == http.StateClosed {
		p.remove(c)
	}
}

func (p *pendingConns) remove(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

// handler wraps h so that the first request of a connection removes it from the pending ones.
func (p *pendingConns) handler(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.remove(r.Context().Value(connKey{}).(net.Conn))
		h.ServeHTTP(w, r)
	})
}

// wait waits until no connection is pending or the context ends. No connections may be added
// afterwards.
func (p *pendingConns) wait(ctx context.Context) {
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for p.any() {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (p *pendingConns) any() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conns) > 0
}
