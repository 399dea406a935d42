package serve

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"
)

// unheard are the connections of HTTP that were taken and have brought no request yet.
// http.Server hangs up on them without an answer once it shuts down.
type unheard struct {
	mu    sync.Mutex
	conns map[net.Conn]bool
}

// unheardKey is that of the connection in the context of its requests.
type unheardKey struct{}

// taken is the ConnContext of an http.Server.
func (u *unheard) taken(ctx context.Context, c net.Conn) context.Context {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.conns[c] = true
	return context.WithValue(ctx, unheardKey{}, c)
}

// state is the ConnState of an http.Server.
func (u *unheard) state(c net.Conn, state http.ConnState) {
	httpState(c, state)
	if state == http.StateClosed {
		u.heard(c)
	}
}

func (u *unheard) heard(c net.Conn) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.conns, c)
}

// handler is a handler whose requests end the silence of their connection.
func (u *unheard) handler(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u.heard(r.Context().Value(unheardKey{}).(net.Conn))
		h.ServeHTTP(w, r)
	})
}

// wait waits until all connections were heard or the context ends. No more may be taken.
func (u *unheard) wait(ctx context.Context) {
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for u.any() {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (u *unheard) any() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.conns) > 0
}
