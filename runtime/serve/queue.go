// The queue of a model, in which bags of several requests wait and are combined into one run.

package serve

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/miplc/miplc/internal/contract"
	"github.com/miplc/miplc/internal/resources"
	"github.com/miplc/miplc/runtime"
)

// Batching defines how bags wait for a model and are combined.
type Batching struct {
	MaxBags    int           // maximum number of bags in a run; 1: no combining
	Delay      time.Duration // maximum time that a bag waits for others although it could run
	Runs       int           // number of concurrent runs
	MaxWaiting int           // maximum number of waiting requests; more are rejected
}

// job has the bags of one request, which wait for their predictions.
type job struct {
	ctx         context.Context
	since       time.Time
	count       int           // number of bags
	bags        []runtime.Bag // nil if the request ended before a run took them
	taken       atomic.Bool   // by a run, or by the request that ended
	predictions []runtime.Prediction
	err         error
	running     atomic.Bool // a run with its bags has started
	done        chan struct{}
}

// queue passes the bags of many requests to one model, several per run if the model's signature
// allows it.
type queue struct {
	model    *runtime.Model
	batching Batching
	memory   *memoryPool
	waiting  chan *job
	left     chan *job // jobs that a run took but had no room for; they come first
	runners  resources.Group

	runBags, waited, instances prometheus.Observer
}

func newQueue(name string, model *runtime.Model, batching Batching, memory *memoryPool, m *metrics) *queue {
	if model.Info().Contract != contract.ContractBatch {
		batching.MaxBags = 1
	}
	q := &queue{
		model: model, batching: batching, memory: memory, waiting: make(chan *job, batching.MaxWaiting),
		left:    make(chan *job, batching.Runs), // each runner leaves one at most
		runBags: m.runBags.WithLabelValues(name), waited: m.waited.WithLabelValues(name),
		instances: m.instances.WithLabelValues(name),
	}
	for range batching.Runs {
		q.runners.Go(func() {
			for first := q.first(); first != nil; first = q.first() {
				q.run(q.gather(first))
			}
		})
	}
	return q
}

// close must be called after the last predict has returned.
func (q *queue) close() {
	close(q.waiting)
	q.runners.Wait()
	_ = q.model.Close() // the error could only be ignored
}

// predict predicts the bags of one request, in order. If a run still uses the bags when ctx has ended, busy is closed
// at its end.
func (q *queue) predict(ctx context.Context, bags []runtime.Bag) (all []runtime.Prediction, busy <-chan struct{},
	err error) {
	for i := range bags { // bags share a run only if there is enough memory
		if err := q.memory.check(q.model.RunBytes(bags[i : i+1])); err != nil {
			return nil, nil, err
		}
	}
	j := &job{ctx: ctx, since: time.Now(), count: len(bags), bags: bags, done: make(chan struct{})}
	select {
	case q.waiting <- j:
	default:
		return nil, nil, status.Errorf(codes.Unavailable, "busy: %d requests wait for this model already; try again later",
			cap(q.waiting))
	}
	select {
	case <-j.done:
		return j.predictions, nil, j.err
	case <-ctx.Done():
		busy = j.done
		if j.taken.CompareAndSwap(false, true) {
			j.bags, busy = nil, nil // the request returns their memory, but the job stays in the queue
		}
		if errors.Is(ctx.Err(), context.DeadlineExceeded) && !j.running.Load() {
			return nil, busy, errBusyRuns
		}
		return nil, busy, ctx.Err()
	}
}

var errBusyRuns = status.Error(codes.Unavailable,
	"busy: the request waited for a run of the model for all of its time; try again later")

// first returns the next job, or waits for it; nil from a closed queue.
func (q *queue) first() *job {
	select {
	case j := <-q.left:
		return j
	default:
	}
	select {
	case j := <-q.left:
		return j
	case j := <-q.waiting:
		return j
	}
}

// gather returns first and the waiting jobs, up to the maximum number of bags, and waits for more up to the delay.
func (q *queue) gather(first *job) []*job {
	jobs, bags := []*job{first}, first.count
	var late <-chan time.Time
	if q.batching.MaxBags > bags && q.batching.Delay > 0 {
		late = time.After(q.batching.Delay)
	}
	for bags < q.batching.MaxBags {
		j := q.next(late)
		if j == nil {
			break
		}
		if bags+j.count > q.batching.MaxBags {
			q.left <- j
			break
		}
		jobs, bags = append(jobs, j), bags+j.count
	}
	return jobs
}

// next returns a job that waits or arrives before late; nil if there is none.
func (q *queue) next(late <-chan time.Time) *job {
	select {
	case j := <-q.left:
		return j
	default:
	}
	select {
	case j := <-q.waiting: // nil from a closed queue
		return j
	default:
	}
	if late == nil {
		return nil
	}
	select {
	case j := <-q.left:
		return j
	case j := <-q.waiting:
		return j
	case <-late:
		return nil
	}
}

// run predicts jobs in one run. If that fails, it predicts each separately, so that no job gets the
// error of another.
func (q *queue) run(jobs []*job) {
	var live []*job
	var bags []runtime.Bag
	for _, j := range jobs {
		if j.ctx.Err() != nil || !j.taken.CompareAndSwap(false, true) {
			continue // predict returns the error
		}
		live, bags = append(live, j), append(bags, j.bags...)
		q.waited.Observe(time.Since(j.since).Seconds())
	}
	for _, b := range bags {
		q.instances.Observe(float64(b.N))
	}
	if len(live) > 1 {
		ctx, cancel := longest(live)
		all, err := q.predictAll(ctx, bags, live)
		cancel()
		if err == nil {
			for _, j := range live {
				j.predictions, all = all[:len(j.bags)], all[len(j.bags):]
				close(j.done)
			}
			return
		}
	}
	for _, j := range live {
		j.predictions, j.err = q.predictAll(j.ctx, j.bags, []*job{j})
		close(j.done)
	}
}

// longest returns a context that ends at the last deadline of the jobs.
func longest(jobs []*job) (context.Context, context.CancelFunc) {
	var last time.Time
	for _, j := range jobs {
		if end, _ := j.ctx.Deadline(); end.After(last) { // each request has one
			last = end
		}
	}
	return context.WithDeadline(context.Background(), last)
}

// predictAll predicts the bags of jobs when the other runs leave enough memory.
func (q *queue) predictAll(ctx context.Context, bags []runtime.Bag, jobs []*job) ([]runtime.Prediction, error) {
	if bytes := q.model.RunBytes(bags); bytes > 0 {
		if err := q.memory.check(bytes); err != nil {
			return nil, err
		}
		if q.memory.Acquire(ctx, bytes) != nil {
			return nil, errBusyRuns
		}
		defer q.memory.Release(bytes)
	}
	for _, j := range jobs {
		j.running.Store(true)
	}
	q.runBags.Observe(float64(len(bags)))
	all := make([]runtime.Prediction, len(bags))
	err := resources.Try(func() (err error) {
		if len(bags) == 1 {
			all[0], err = q.model.Predict(ctx, bags[0])
		} else {
			_, err = q.model.PredictBatch(ctx, bags, all)
		}
		return err
	})
	return all, err
}
