//go:build cgo

// Predictions in chunks with onnxruntime: one session for the instances and one for the pooled result.

package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"

	ort "github.com/yalue/onnxruntime_go"

	"github.com/miplc/miplc/internal/contract"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/onnxruntime"
)

// chunkSessions are the sessions of the parts of a divided graph.
type chunkSessions struct{ head, tail *ort.DynamicAdvancedSession }

// openChunks opens the parts with the first large bag.
func (s *ortSession) openChunks(d *chunkedGraph) (*chunkSessions, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.chunks != nil {
		return s.chunks, nil
	}
	opts, err := s.options.Options()
	if err != nil {
		return nil, err
	}
	defer opts.Destroy()
	headOut, tailIn := valueNames(d.division)
	c := &chunkSessions{}
	if c.head, err = onnxruntime.OpenSession(d.head, []string{contract.Instances}, headOut, opts); err != nil {
		return nil, fmt.Errorf("opening the part of the graph for single instances: %w", err)
	}
	if c.tail, err = onnxruntime.OpenSession(d.tail, tailIn, s.outputs, opts); err != nil {
		return nil, errors.Join(fmt.Errorf("opening the part of the graph for the bag: %w", err), c.head.Destroy())
	}
	d.head, d.tail = nil, nil // guarded by the lock
	s.chunks = c
	return c, nil
}

// valueNames returns the names of the outputs of the head and of the inputs of the tail.
func valueNames(p *division) (headOut, tailIn []string) {
	for _, r := range p.rows {
		headOut = append(headOut, r.name)
		if r.tail {
			tailIn = append(tailIn, r.name)
		}
	}
	for _, pool := range p.pools {
		headOut, tailIn = append(headOut, pool.name), append(tailIn, pool.name)
	}
	if p.bagOf {
		tailIn = append(tailIn, contract.BagOf)
	}
	return headOut, tailIn
}

func (c *chunkSessions) destroy() error {
	if c == nil {
		return nil
	}
	return errors.Join(c.head.Destroy(), c.tail.Destroy())
}

// runChunks implements chunkSession.
func (s *ortSession) runChunks(ctx context.Context, d *chunkedGraph, n int, read instanceReader, to *Prediction) error {
	sessions, err := s.openChunks(d)
	if err != nil {
		return err
	}
	r := &chunkRun{session: s, division: d.division, n: n, pools: make([]*poolMerger, len(d.division.pools)),
		rows: make([][]float32, len(d.division.rows))}
	for i, row := range d.division.rows {
		r.rows[i] = make([]float32, n*row.width())
	}
	for i, pool := range d.division.pools {
		r.pools[i] = newPoolMerger(pool)
	}
	for from := 0; from < n; from += d.chunk {
		if err := ctx.Err(); err != nil {
			return err
		}
		end := min(n, from+d.chunk)
		x, err := read(from, end)
		if err != nil {
			return err
		}
		if err := r.runHead(ctx, sessions.head, x, from, end); err != nil {
			return fmt.Errorf("%s: running the graph on instances %d to %d: %w", contract.BackendORT, from+1, end, err)
		}
	}
	if err := r.runTail(ctx, sessions.tail, to); err != nil {
		return fmt.Errorf("%s: running the graph on the bag of %s: %w", contract.BackendORT, diag.Count(n, "instance"), err)
	}
	return nil
}

// chunkRun is the prediction of one bag in chunks.
type chunkRun struct {
	session  *ortSession
	division *division
	n        int
	rows     [][]float32   // by division.rows: the values of all instances
	pools    []*poolMerger // by division.pools
}

// runHead computes the instances x, which have the numbers from to end.
func (r *chunkRun) runHead(ctx context.Context, head *ort.DynamicAdvancedSession, x []float32, from, end int) error {
	var v tensorList
	defer v.destroy()
	in := add(&v, x, append([]int64{int64(end - from)}, r.session.instance...))
	out := []ort.Value{}
	for i, row := range r.division.rows {
		part := r.rows[i][from*row.width() : end*row.width()]
		out = append(out, add(&v, part, append([]int64{int64(end - from)}, row.shape...)))
	}
	results := make([][]float32, len(r.pools))
	for i, pool := range r.division.pools {
		results[i] = make([]float32, len(r.pools[i].total))
		out = append(out, add(&v, results[i], pool.shape))
	}
	if v.err != nil {
		return v.err
	}
	if err := runWatched(ctx, head, []ort.Value{in}, out); err != nil {
		return err
	}
	for i, pool := range r.division.pools {
		scores := slices.IndexFunc(r.division.rows, func(row rowValue) bool { return row.name == pool.scores })
		width := r.division.rows[scores].width()
		r.pools[i].add(r.rows[scores][from*width:end*width], results[i])
	}
	return nil
}

// runTail computes the prediction.
func (r *chunkRun) runTail(ctx context.Context, tail *ort.DynamicAdvancedSession, to *Prediction) error {
	var v tensorList
	defer v.destroy()
	n := int64(r.n)
	in := []ort.Value{}
	for i, row := range r.division.rows {
		if row.tail {
			in = append(in, add(&v, r.rows[i], append([]int64{n}, row.shape...)))
		}
	}
	for i, pool := range r.division.pools {
		in = append(in, add(&v, r.pools[i].result(), pool.shape))
	}
	if r.division.bagOf {
		in = append(in, add(&v, make([]int64, r.n), []int64{n}))
	}
	attention := []int64{1, n}
	if r.session.batch {
		attention = []int64{n}
	}
	out := []ort.Value{add(&v, to.Probabilities, []int64{1, r.session.classes}), add(&v, to.Attention, attention)}
	var classAttention []float32
	if to.ClassAttention != nil {
		classAttention = make([]float32, len(to.ClassAttention)*r.n)
		out = append(out, add(&v, classAttention, []int64{r.session.classes, n}))
	}
	if v.err != nil {
		return v.err
	}
	err := runWatched(ctx, tail, in, out)
	to.setClassAttention(classAttention)
	return err
}

// tensorList are tensors that share the memory of Go slices.
type tensorList struct {
	list []ort.Value
	err  error // the first
}

// add adds a tensor; nil after an error.
func add[T ort.TensorData](v *tensorList, x []T, shape []int64) ort.Value {
	t, err := ort.NewTensor(ort.NewShape(shape...), x)
	if err != nil {
		v.err = errors.Join(v.err, err)
		return nil
	}
	v.list = append(v.list, t)
	return t
}

func (v *tensorList) destroy() {
	for _, t := range v.list {
		t.Destroy()
	}
}
