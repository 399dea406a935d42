package serve

import (
	"io"

	"golang.org/x/sync/semaphore"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// held is the body of a request, which takes its bytes from what the server may hold as
// they come: a client that announces much and sends little takes little.
type held struct {
	io.ReadCloser
	of    *semaphore.Weighted
	bytes int64
	ended bool // all of it has come
}

func (h *held) Read(p []byte) (int, error) {
	n, err := h.ReadCloser.Read(p)
	h.ended = h.ended || err == io.EOF
	if busy := h.take(int64(n)); busy != nil {
		return 0, busy
	}
	return n, err
}

// take takes n bytes more.
func (h *held) take(n int64) error {
	if !h.of.TryAcquire(n) {
		return status.Error(codes.Unavailable, "busy: the requests under way take all the memory that they may; try again later")
	}
	h.bytes += n
	return nil
}

// release gives all back that was taken.
func (h *held) release() {
	h.of.Release(h.bytes)
	h.bytes = 0
}
