package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/peer"
)

const (
	// minIdle is how long a connection may be idle before it may be closed in favour of a waiting
	// one.
	minIdle = time.Second

	// drainPause is how long the kernel's queue must be empty before a draining listener is closed.
	// Handshakes must complete within this time.
	drainPause = 100 * time.Millisecond

	// admitPoll is how often a connection that waits for room looks for it.
	admitPoll = 100 * time.Millisecond

	// maxDrain bounds the time for emptying the kernel's queue on systems where new connections
	// cannot be kept out of it.
	maxDrain = 5 * time.Second
)

// listener accepts a limited number of connections. When the limit is reached, it closes the
// connection that has been idle longest, or lets the new connection wait if none is idle.
type listener struct {
	net.Listener
	limit    int
	draining atomic.Bool
	until    time.Time // end of draining
	drained  chan struct{}
	changed  chan struct{} // a connection became idle or was closed

	mu   sync.Mutex
	open map[string]*conn // by remote address
}

// conn is an open connection.
type conn struct {
	net.Conn
	of     *listener
	busy   atomic.Int32 // requests in flight
	since  atomic.Int64 // when the last request ended, or the connection was opened
	served atomic.Bool  // a request of it has reached its handler
}

// Listen listens on a TCP address. It disables multipath TCP, Go's default, because the kernel does
// not filter its sockets: connections could be reset when the server ends.
func Listen(address string) (net.Listener, error) {
	config := net.ListenConfig{}
	config.SetMultipathTCP(false)
	return config.Listen(context.Background(), "tcp", address)
}

func listen(l net.Listener, limit int) *listener {
	return &listener{Listener: l, limit: limit, drained: make(chan struct{}), changed: make(chan struct{}, 1), open: map[string]*conn{}}
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	for waited := false; ; {
		if l.draining.Load() {
			if waited = true; time.Now().After(l.until) {
				l.Close()
				return nil, net.ErrClosed
			}
			l.wakeIn(drainPause)
		}
		c, err := l.Listener.Accept()
		switch {
		case err == nil:
			return l.admit(c), nil
		case !l.draining.Load():
			return nil, err
		case errors.Is(err, os.ErrDeadlineExceeded) && (!waited || pending(l.Listener)):
			waited = true // the deadline may have passed before the queue was checked
		default:
			l.Close()
			return nil, net.ErrClosed
		}
	}
}

// drain accepts the connections that the kernel has already accepted and closes the listener when
// there are no more. Closing it earlier would reset these connections. drain returns when Accept
// has ended.
func (l *listener) drain() {
	l.until = time.Now().Add(maxDrain)
	refuseConnections(l.Listener)
	l.draining.Store(true)
	l.wakeIn(drainPause)
	<-l.drained
}

// wakeIn makes a blocked Accept return after d.
func (l *listener) wakeIn(d time.Duration) {
	if timed, ok := l.Listener.(interface{ SetDeadline(time.Time) error }); ok {
		_ = timed.SetDeadline(time.Now().Add(d))
	} else {
		l.Listener.Close()
	}
}

// Close implements net.Listener.
func (l *listener) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.drained:
		return nil
	default:
	}
	close(l.drained)
	return l.Listener.Close()
}

// admit waits until there is room for a connection.
func (l *listener) admit(accepted net.Conn) net.Conn {
	c := &conn{Conn: accepted, of: l}
	c.since.Store(time.Now().UnixNano())
	for !l.add(c) {
		select {
		case <-l.changed:
		case <-time.After(admitPoll):
		}
	}
	return c
}

// add adds a connection if there is room. Otherwise it tries to make room for the next attempt.
func (l *listener) add(c *conn) bool {
	l.mu.Lock()
	if len(l.open) < l.limit || l.draining.Load() {
		l.open[c.RemoteAddr().String()] = c
		l.mu.Unlock()
		return true
	}
	idle := l.longestIdle()
	l.mu.Unlock()
	if idle != nil {
		idle.Close()
	}
	return false
}

// longestIdle returns the connection to close for another one. Connections that are between
// requests come before those that have not sent a request. The lock must be held.
func (l *listener) longestIdle() (idle *conn) {
	before := func(a, b *conn) bool {
		if a.served.Load() != b.served.Load() {
			return a.served.Load()
		}
		return a.since.Load() < b.since.Load()
	}
	now := time.Now()
	for _, c := range l.open {
		mayGo := c.served.Load() || now.UnixNano()-c.since.Load() > int64(minIdle)
		if c.busy.Load() == 0 && mayGo && (idle == nil || before(c, idle)) {
			idle = c
		}
	}
	return idle
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.of.mu.Lock()
	if key := c.RemoteAddr().String(); c.of.open[key] == c {
		delete(c.of.open, key)
	}
	c.of.mu.Unlock()
	c.of.wake()
	return c.Conn.Close()
}

// CloseWrite ends the sending direction. http.Server uses it so that an answer arrives before the
// connection to a client that is still sending is closed.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

func (l *listener) wake() {
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// markServed wraps h so that it marks the connection of each request as served.
func (l *listener) markServed(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c := l.from(r.RemoteAddr); c != nil {
			c.served.Store(true)
		}
		h.ServeHTTP(w, r)
	})
}

// from returns the open connection of a remote address; nil: none.
func (l *listener) from(address string) *conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open[address]
}

// waitUntilServed waits until every connection is served or the context ends. http.Server closes the
// others without an answer when it shuts down. No connections may be added meanwhile.
func (l *listener) waitUntilServed(ctx context.Context) {
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for l.anyUnserved() {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (l *listener) anyUnserved() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.open {
		if !c.served.Load() {
			return true
		}
	}
	return false
}

// begin and end mark the start and the end of a request, or of all requests of a connection.
func (c *conn) begin() { c.busy.Add(1) }

func (c *conn) end() {
	c.since.Store(time.Now().UnixNano())
	if c.busy.Add(-1) == 0 {
		c.of.wake()
	}
}

// httpState is the ConnState hook of an http.Server.
func httpState(of net.Conn, state http.ConnState) {
	if secure, ok := of.(*tls.Conn); ok {
		of = secure.NetConn()
	}
	c, ok := of.(*conn)
	if !ok {
		return
	}
	switch state {
	case http.StateActive:
		c.begin()
	case http.StateIdle:
		c.end()
	}
}

// beginCall marks the connection of a gRPC call as busy until the context of the call ends.
func (l *listener) beginCall(ctx context.Context) {
	from, ok := peer.FromContext(ctx)
	if l == nil || !ok {
		return
	}
	if c := l.from(from.Addr.String()); c != nil {
		c.served.Store(true)
		c.begin()
		context.AfterFunc(ctx, c.end)
	}
}
