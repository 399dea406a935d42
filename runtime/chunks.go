package runtime

import (
	"context"
	"fmt"
	"math"

	"github.com/miplc/miplc/internal/chunks"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/footprint"
	"github.com/miplc/miplc/internal/memory"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/internal/onnxpb"
)

const (
	// chunkMemory is the memory of the values of a chunk. Smaller chunks are slower, because each
	// reads all parameters again.
	chunkMemory = 64 << 20

	// maxDivided is the size of a file above which bags are not predicted in chunks, because the
	// model keeps a copy of the file for it.
	maxDivided = 64 << 20
)

// divided is a graph that runs on chunks of the instances of a bag.
type divided struct {
	plan       *chunks.Plan        // without its graphs
	head, tail []byte              // the graphs as ONNX files
	headBytes  int64               // memory of a run of the head on a chunk
	estimate   *footprint.Estimate // of the tail
	chunk      int                 // instances of a chunk
}

// chunkSession is a session that can predict in chunks.
type chunkSession interface {
	// runChunks predicts one bag of n instances.
	runChunks(ctx context.Context, d *divided, n int, read rowReader, to *Prediction) error
}

// rowReader returns instances from number from to number to, without that. It may reuse memory.
type rowReader func(from, to int) ([]float32, error)

// divide returns the parts of a graph, nil if it cannot be divided or would not take less memory.
func (o *options) divide(pb *onnxpb.ModelProto, instance []int, session Session, size int) (*divided, error) {
	if _, can := session.(chunkSession); !can || size > maxDivided || !o.session.OnCPU() {
		return nil, nil
	}
	plan := chunks.New(pb, instance)
	if plan == nil {
		return nil, nil
	}
	head := footprint.New(plan.Head.GetGraph(), instance, true)
	d := &divided{plan: plan, estimate: footprint.New(plan.Tail.GetGraph(), instance, true), chunk: max(1, head.UpTo(chunkMemory, math.MaxInt64, o.maxInstances))}
	var err error
	if d.headBytes, _, err = head.Run(d.chunk, 1); err != nil {
		return nil, nil
	}
	if d.head, err = onnxpb.Marshal(plan.Head); err != nil {
		return nil, err
	}
	if d.tail, err = onnxpb.Marshal(plan.Tail); err != nil {
		return nil, err
	}
	plan.Head, plan.Tail = nil, nil // their parameters are in the files
	return d, nil
}

// bytes returns the memory for n instances, without the instances themselves.
func (d *divided) bytes(n int) int64 {
	tail, _, err := d.estimate.Run(n, 1)
	if err != nil {
		return math.MaxInt64
	}
	values := 0
	for _, r := range d.plan.Rows {
		values += r.Width()
	}
	return max(tail, d.headBytes+4*int64(n)*int64(values))
}

// inChunks reports whether a bag of n instances is predicted in chunks.
func (o *opened) inChunks(n int) bool {
	if o.divided == nil || n <= o.divided.chunk {
		return false
	}
	all, _, err := o.estimate.Run(n, 1)
	return err == nil && o.divided.bytes(n) < all
}

// PredictRows predicts a bag of n instances that need not be in memory. It calls read in order, to
// fill the slice with whole instances from number from (counted from 0), in the layout of
// Bag.Instances. The numbers must be the same as in Bag.Instances, and the result is that of Predict.
// If the graph cannot be divided, or if the bag is small, read gets a slice for all instances. The
// errors of read are returned unchanged.
func (m *Model) PredictRows(ctx context.Context, n int, read func(to []float32, from int) error) (Prediction, error) {
	var p Prediction
	o, err := m.acquire()
	if err != nil {
		return p, err
	}
	defer o.using.RUnlock()
	ctx, span := o.startSpan(ctx, 1, n)
	err = o.predictRows(ctx, n, read, &p)
	endSpan(span, err)
	return p, err
}

func (o *opened) predictRows(ctx context.Context, n int, read func(to []float32, from int) error, p *Prediction) error {
	if err := o.checkCount(n); err != nil {
		return err
	}
	d := ndarray.Size(o.info.InputShape)
	if !o.inChunks(n) {
		if err := memory.Check("the bag of "+diag.Count(n, "instance"), 4*float64(n)*float64(d)); err != nil {
			return fmt.Errorf("%w: %w", ErrTooLarge, err)
		}
		bag := Bag{Instances: make([]float32, n*d), N: n}
		if err := read(bag.Instances, 0); err != nil {
			return err
		}
		return o.predict(ctx, bag, p)
	}
	buffer := make([]float32, o.divided.chunk*d)
	err := o.runChunks(ctx, n, func(from, to int) ([]float32, error) {
		x := buffer[:(to-from)*d]
		if err := read(x, from); err != nil {
			return nil, err
		}
		return x, notFinite(x, d, from)
	}, p)
	if err != nil {
		return err
	}
	return o.name(p)
}

// runChunks predicts a bag of n instances, which have been checked.
func (o *opened) runChunks(ctx context.Context, n int, read rowReader, p *Prediction) error {
	p.makeRoom(len(o.info.Classes), n, o.info.ClassAttention)
	if err := o.options.checkMemory(o.divided.bytes(n)); err != nil {
		return err
	}
	err := o.session.(chunkSession).runChunks(ctx, o.divided, n, read, p)
	if ended := ctx.Err(); err != nil && ended != nil {
		return ended
	}
	return err
}

// pooled combines the results of an attention pooling on parts of a bag. A part with the weights
// w_i = exp(s_i) of its instances has the result sum of w_i x_i / sum of w_i. The result for the bag
// is the mean of these, weighted with the sums of w_i.
type pooled struct {
	means, width int
	largest, sum []float64 // by mean: the largest score, and the sum of exp(s - largest)
	total        []float64 // [means, width]: sum of exp(s_i - largest) x_i
}

func newPooled(p chunks.Pool) *pooled {
	c := &pooled{means: int(p.Shape[0]), width: int(p.Shape[1])}
	c.largest, c.sum, c.total = make([]float64, c.means), make([]float64, c.means), make([]float64, c.means*c.width)
	for j := range c.largest {
		c.largest[j] = math.Inf(-1)
	}
	return c
}

// add adds a part with its scores [n, means] and its result [means, width].
func (c *pooled) add(scores, result []float32) {
	for j := range c.means {
		most := math.Inf(-1)
		for i := j; i < len(scores); i += c.means {
			most = max(most, float64(scores[i]))
		}
		if math.IsInf(most, -1) {
			continue // all weights are 0
		}
		sum := 0.0
		for i := j; i < len(scores); i += c.means {
			sum += math.Exp(float64(scores[i]) - most)
		}
		largest := max(c.largest[j], most)
		before, now := math.Exp(c.largest[j]-largest), math.Exp(most-largest)*sum
		c.largest[j], c.sum[j] = largest, c.sum[j]*before+now
		for i, v := range result[j*c.width : (j+1)*c.width] {
			at := &c.total[j*c.width+i]
			*at = *at*before + float64(v)*now
		}
	}
}

// result returns the result for all parts.
func (c *pooled) result() []float32 {
	x := make([]float32, len(c.total))
	for i, v := range c.total {
		x[i] = float32(v / c.sum[i/c.width])
	}
	return x
}

// checkCount reports a number of instances that cannot be predicted.
func (o *opened) checkCount(n int) error {
	switch {
	case n < 0:
		return fmt.Errorf("%w: it claims %s", ErrBagShape, diag.Count(n, "instance"))
	case n == 0:
		return ErrEmptyBag
	case n > o.options.maxInstances:
		return fmt.Errorf("%w: it has %d instances, at most %d are accepted; WithMaxInstances sets the limit", ErrTooLarge, n, o.options.maxInstances)
	}
	return nil
}
