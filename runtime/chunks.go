// Large bags in bounded memory: a model that pools its instances predicts them in chunks.

package runtime

import (
	"context"
	"fmt"
	"math"

	"github.com/miplc/miplc/internal/contract"
	"github.com/miplc/miplc/internal/diag"
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

// chunkedGraph is a graph that runs on chunks of the instances of a bag.
type chunkedGraph struct {
	division   *division           // without its graphs
	head, tail []byte              // the graphs as ONNX files
	headBytes  int64               // memory of a run of the head on a chunk
	estimate   *contract.Footprint // of the tail
	chunk      int                 // instances of a chunk
}

// chunkSession is a session that can predict in chunks.
type chunkSession interface {
	// runChunks predicts one bag of n instances.
	runChunks(ctx context.Context, d *chunkedGraph, n int, read instanceReader, to *Prediction) error
}

// instanceReader returns the instances from number from up to, but not including, number to, counted
// from 0, [to-from, d]. The slice is valid until the next call.
type instanceReader func(from, to int) ([]float32, error)

// divide returns the parts of a graph, nil if it cannot be divided or would not take less memory. whole is the
// footprint of the graph, and size that of its file.
func (o *options) divide(pb *onnxpb.ModelProto, instance []int, whole *contract.Footprint, session Session,
	size int) (*chunkedGraph, error) {
	if _, can := session.(chunkSession); !can || size > maxDivided || !o.sessionOptions.OnCPU() {
		return nil, nil
	}
	division := divideGraph(pb, whole)
	if division == nil {
		return nil, nil
	}
	head := contract.NewFootprint(division.head.GetGraph(), instance, true)
	d := &chunkedGraph{division: division, estimate: contract.NewFootprint(division.tail.GetGraph(), instance, true),
		chunk: max(1, head.UpTo(chunkMemory, math.MaxInt64, o.maxInstances))}
	var err error
	if d.headBytes, _, err = head.Run(d.chunk, 1); err != nil {
		return nil, nil
	}
	if d.head, err = onnxpb.Marshal(division.head); err != nil {
		return nil, err
	}
	if d.tail, err = onnxpb.Marshal(division.tail); err != nil {
		return nil, err
	}
	division.head, division.tail = nil, nil // their parameters are in the files
	return d, nil
}

// bytes returns the memory for n instances, without the instances themselves.
func (g *chunkedGraph) bytes(n int) int64 {
	tail, _, err := g.estimate.Run(n, 1)
	if err != nil {
		return math.MaxInt64
	}
	values := 0
	for _, r := range g.division.rows {
		values += r.width()
	}
	return max(tail, g.headBytes+4*int64(n)*int64(values))
}

// inChunks reports whether a bag of n instances is predicted in chunks.
func (f *openFile) inChunks(n int) bool {
	if f.chunked == nil || n <= f.chunked.chunk {
		return false
	}
	all, _, err := f.estimate.Run(n, 1)
	return err == nil && f.chunked.bytes(n) < all
}

// PredictRows predicts a bag of n instances that need not be in memory. It calls read in order, to
// fill the slice with whole instances from number from (counted from 0), in the layout of
// Bag.Instances. The numbers must be the same as in Bag.Instances, and the result is that of Predict.
// If the graph cannot be divided, or if the bag is small, read gets a slice for all instances. The
// errors of read are returned unchanged.
func (m *Model) PredictRows(ctx context.Context, n int, read func(to []float32, from int) error) (Prediction, error) {
	var p Prediction
	err := m.call(ctx, 1, n, func(ctx context.Context, f *openFile) error { return f.predictRows(ctx, n, read, &p) })
	return p, err
}

func (f *openFile) predictRows(ctx context.Context, n int, read func(to []float32, from int) error,
	p *Prediction) error {
	if err := f.checkCount(n); err != nil {
		return err
	}
	d := ndarray.Size(f.info.InputShape)
	if !f.inChunks(n) {
		if err := f.options.checkMemory(4 * int64(n) * int64(d)); err != nil {
			return err
		}
		bag := Bag{Instances: make([]float32, n*d), N: n}
		if err := read(bag.Instances, 0); err != nil {
			return err
		}
		return f.predict(ctx, bag, p)
	}
	buffer := make([]float32, f.chunked.chunk*d)
	err := f.runChunks(ctx, n, func(from, to int) ([]float32, error) {
		x := buffer[:(to-from)*d]
		if err := read(x, from); err != nil {
			return nil, err
		}
		return x, notFinite(x, d, from)
	}, p)
	if err != nil {
		return err
	}
	return f.finish(p)
}

// runChunks predicts a bag of n instances, which have been checked.
func (f *openFile) runChunks(ctx context.Context, n int, read instanceReader, p *Prediction) error {
	p.resize(len(f.info.Classes), n, f.info.ClassAttention)
	if err := f.options.checkMemory(f.chunked.bytes(n)); err != nil {
		return err
	}
	err := f.session.(chunkSession).runChunks(ctx, f.chunked, n, read, p)
	if ended := ctx.Err(); err != nil && ended != nil {
		return ended
	}
	return err
}

// poolMerger combines the results of an attention pooling on parts of a bag. A part with the weights
// w_i = exp(s_i) of its instances has the result sum of w_i x_i / sum of w_i. The result for the bag
// is the mean of these, weighted with the sums of w_i.
type poolMerger struct {
	means, width int
	largest, sum []float64 // by mean: the largest score, and the sum of exp(s - largest)
	total        []float64 // [means, width]: sum of exp(s_i - largest) x_i
}

func newPoolMerger(p pooling) *poolMerger {
	m := &poolMerger{means: int(p.shape[0]), width: int(p.shape[1])}
	m.largest, m.sum, m.total = make([]float64, m.means), make([]float64, m.means), make([]float64, m.means*m.width)
	for j := range m.largest {
		m.largest[j] = math.Inf(-1)
	}
	return m
}

// add adds a part with its scores [n, means] and its result [means, width].
func (m *poolMerger) add(scores, result []float32) {
	for j := range m.means {
		most := math.Inf(-1)
		for i := j; i < len(scores); i += m.means {
			most = max(most, float64(scores[i]))
		}
		if math.IsInf(most, -1) {
			continue // all weights are 0
		}
		sum := 0.0
		for i := j; i < len(scores); i += m.means {
			sum += math.Exp(float64(scores[i]) - most)
		}
		largest := max(m.largest[j], most)
		before, now := math.Exp(m.largest[j]-largest), math.Exp(most-largest)*sum
		m.largest[j], m.sum[j] = largest, m.sum[j]*before+now
		for i, v := range result[j*m.width : (j+1)*m.width] {
			at := &m.total[j*m.width+i]
			*at = *at*before + float64(v)*now
		}
	}
}

// result returns the result for all parts.
func (m *poolMerger) result() []float32 {
	x := make([]float32, len(m.total))
	for i, v := range m.total {
		x[i] = float32(v / m.sum[i/m.width])
	}
	return x
}

// checkCount reports a number of instances that cannot be predicted.
func (f *openFile) checkCount(n int) error {
	switch {
	case n < 0:
		return fmt.Errorf("%w: it claims %s", ErrBagShape, diag.Count(n, "instance"))
	case n == 0:
		return ErrEmptyBag
	case n > f.options.maxInstances:
		return fmt.Errorf("%w: it has %d instances, at most %d are accepted; WithMaxInstances sets the limit", ErrTooLarge, n,
			f.options.maxInstances)
	}
	return nil
}
