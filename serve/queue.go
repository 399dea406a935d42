package serve

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/miplc/miplc/export/contract"
	"github.com/miplc/miplc/internal/workers"
	"github.com/miplc/miplc/runtime"
)

// Batching directs how bags wait for a model and are put together.
type Batching struct {
	Bags     int           // most bags of one run; 1: each bag by itself
	Delay    time.Duration // most time that a bag waits for others when it could be run
	Parallel int           // runs side by side
	Waiting  int           // most requests that wait; what comes then is refused
}

// job is the bags of one request, which wait for their predictions.
type job struct {
	ctx         context.Context
	since       time.Time
	bags        []runtime.Bag
	predictions []runtime.Prediction
	err         error
	done        chan struct{}
}

// queue brings the bags of many requests to one model, several to a run where the
// model's signature takes several.
type queue struct {
	model   *runtime.Model
	batch   Batching
	waiting chan *job
	runners workers.Group

	runBags, waited, instances prometheus.Observer
}

func newQueue(name string, model *runtime.Model, batch Batching, m *metrics) *queue {
	if model.Info().Contract != contract.ContractBatch {
		batch.Bags = 1
	}
	q := &queue{
		model: model, batch: batch, waiting: make(chan *job, batch.Waiting),
		runBags: m.runBags.WithLabelValues(name), waited: m.waited.WithLabelValues(name), instances: m.instances.WithLabelValues(name),
	}
	for range batch.Parallel {
		q.runners.Go(func() {
			for first := range q.waiting {
				q.run(q.gather(first))
			}
		})
	}
	return q
}

// close must come after the last predict has returned.
func (q *queue) close() {
	close(q.waiting)
	q.runners.Wait()
	_ = q.model.Close() // nothing is left to do about it
}

// predict predicts the bags of one request, in order.
func (q *queue) predict(ctx context.Context, bags []runtime.Bag) ([]runtime.Prediction, error) {
	j := &job{ctx: ctx, since: time.Now(), bags: bags, done: make(chan struct{})}
	select {
	case q.waiting <- j:
	default:
		return nil, status.Errorf(codes.Unavailable, "busy: %d requests wait for this model already; try again later", cap(q.waiting))
	}
	select {
	case <-j.done:
		return j.predictions, j.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// gather takes the jobs that wait, and waits for more up to the delay.
func (q *queue) gather(first *job) []*job {
	jobs, bags := []*job{first}, len(first.bags)
	var late <-chan time.Time
	if q.batch.Bags > bags && q.batch.Delay > 0 {
		late = time.After(q.batch.Delay)
	}
	for bags < q.batch.Bags {
		j := q.next(late)
		if j == nil {
			break
		}
		jobs, bags = append(jobs, j), bags+len(j.bags)
	}
	return jobs
}

// next is a job that waits, or that comes until it is late; nil: there is none.
func (q *queue) next(late <-chan time.Time) *job {
	select {
	case j := <-q.waiting: // nil of a closed queue
		return j
	default:
	}
	if late == nil {
		return nil
	}
	select {
	case j := <-q.waiting:
		return j
	case <-late:
		return nil
	}
}

// run predicts jobs together. Where that fails each is predicted by itself, so that
// none gets the error of another.
func (q *queue) run(jobs []*job) {
	var live []*job
	var bags []runtime.Bag
	for _, j := range jobs {
		if j.err = j.ctx.Err(); j.err != nil {
			close(j.done)
			continue
		}
		live, bags = append(live, j), append(bags, j.bags...)
		q.waited.Observe(time.Since(j.since).Seconds())
	}
	for _, b := range bags {
		q.instances.Observe(float64(b.N))
	}
	if len(live) > 1 {
		if all, err := q.predictAll(context.Background(), bags); err == nil {
			for _, j := range live {
				j.predictions, all = all[:len(j.bags)], all[len(j.bags):]
				close(j.done)
			}
			return
		}
	}
	for _, j := range live {
		j.predictions, j.err = q.predictAll(j.ctx, j.bags)
		close(j.done)
	}
}

func (q *queue) predictAll(ctx context.Context, bags []runtime.Bag) ([]runtime.Prediction, error) {
	q.runBags.Observe(float64(len(bags)))
	all := make([]runtime.Prediction, len(bags))
	err := workers.Try(func() error {
		if len(bags) == 1 {
			return q.model.PredictInto(ctx, bags[0], &all[0])
		}
		return q.model.PredictBatchInto(ctx, bags, all)
	})
	return all, err
}
