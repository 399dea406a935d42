// Admission of requests: those in flight share a bounded amount of memory.

package serve

import (
	"context"
	"sync/atomic"

	"golang.org/x/sync/semaphore"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/miplc/miplc/internal/resources"
)

const (
	// smallRequest is the maximum size in bytes of a request that uses the memory for small
	// requests, unless it unpacks to more, and is decoded without waiting for large ones.
	smallRequest = 64 << 10

	// smallShare is the share of the memory that only small requests use: 1/smallShare.
	smallShare = 8

	// maxQueue bounds the requests that wait for memory: together they need at most maxQueue times
	// the available memory. Later ones would be rejected after a long wait, so they are rejected at
	// once.
	maxQueue = 4

	// requestOverhead is added to the memory of each request for costs that do not depend on its
	// size: connection buffers, headers of request and answer.
	requestOverhead = 16 << 10
)

// admission bounds the memory of all requests in flight, and how many large ones are
// decoded in parallel.
type admission struct {
	small, large *memoryPool
	decoders     *semaphore.Weighted
}

// memoryPool is an amount of memory that requests, or runs of all models, reserve before they allocate it.
type memoryPool struct {
	*semaphore.Weighted
	size   int64
	bound  string       // what sets the size
	queued atomic.Int64 // bytes that requests wait for
	larger *memoryPool  // for requests that need more than size; nil: none
}

func newAdmission(bytes int64, decoders int) *admission {
	small := bytes / smallShare
	a := &admission{newMemoryPool(small, "--max-held"), newMemoryPool(bytes-small, "--max-held"),
		semaphore.NewWeighted(int64(decoders))}
	a.small.larger = a.large // a small file may be a large image
	return a
}

func newMemoryPool(bytes int64, flag string) *memoryPool {
	return &memoryPool{Weighted: semaphore.NewWeighted(bytes), size: bytes,
		bound: "the limit of this server, " + flag}
}

// pool returns the pool for a request of the given size.
func (a *admission) pool(requestBytes int64) *memoryPool {
	if requestBytes <= smallRequest {
		return a.small
	}
	return a.large
}

// reserve reserves bytes, or waits for them until the context ends. It returns an error with code
// Unavailable if too many requests already wait or the time is up.
func (p *memoryPool) reserve(ctx context.Context, bytes int64) (*reservation, error) {
	if err := p.check(bytes); err != nil {
		return nil, err
	}
	if !p.TryAcquire(bytes) {
		defer p.queued.Add(-bytes)
		if p.queued.Add(bytes) > maxQueue*p.size || p.Acquire(ctx, bytes) != nil {
			return nil, errBusyMemory
		}
	}
	return &reservation{pool: p, bytes: bytes}, nil
}

// check returns an error if a request needs more memory than the pool has.
func (p *memoryPool) check(bytes int64) error {
	budget := resources.Budget{Bytes: float64(p.size), Bound: p.bound}
	if err := budget.Check("the request", float64(bytes), "send fewer instances"); err != nil {
		return status.Error(codes.ResourceExhausted, err.Error())
	}
	return nil
}

var errBusyMemory = status.Error(codes.Unavailable,
	"busy: the requests in flight use all the memory that they may; try again later")

// reservation is the memory of one request. It is not safe for concurrent use.
type reservation struct {
	pool  *memoryPool
	bytes int64
}

// resize changes the reserved bytes. It does not wait for more memory, because requests that wait
// while they have memory could wait for each other.
func (r *reservation) resize(bytes int64) error {
	switch more := bytes - r.bytes; {
	case bytes > r.pool.size && r.pool.larger != nil:
		return r.resizeAsLarge(bytes)
	case bytes > r.pool.size:
		return r.pool.check(bytes)
	case more > 0 && !r.pool.TryAcquire(more):
		return errBusyMemory
	case more < 0:
		r.pool.Release(-more)
	}
	r.bytes = bytes
	return nil
}

// resizeAsLarge is resize for a request that turns out not to be small: it no longer uses the memory for
// small requests.
func (r *reservation) resizeAsLarge(bytes int64) error {
	if r.pool.larger == nil {
		return r.resize(bytes)
	}
	all := &reservation{pool: r.pool.larger}
	if err := all.resize(bytes); err != nil {
		return err
	}
	r.release()
	*r = *all
	return nil
}

// release returns all memory.
func (r *reservation) release() {
	if r.pool != nil {
		_ = r.resize(0) // less memory is never refused
	}
}

// releaseAfter returns all memory when a run that uses it has ended, which may be after the request.
func (r *reservation) releaseAfter(ended <-chan struct{}) {
	moved := *r
	*r = reservation{}
	new(resources.Group).Go(func() {
		<-ended
		moved.release()
	})
}

// decoding waits until a request of the given size may be decoded. The caller must call done
// afterwards. Small requests do not wait.
func (a *admission) decoding(ctx context.Context, requestBytes int64) (done func(), err error) {
	if requestBytes <= smallRequest {
		return func() {}, nil
	}
	if err := a.decoders.Acquire(ctx, 1); err != nil {
		return nil, status.Error(codes.Unavailable, "busy: too many large requests wait to be decoded; try again later")
	}
	return func() { a.decoders.Release(1) }, nil
}
