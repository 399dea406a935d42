//go:build cgo

// Graphs of learners, run by onnxruntime.

package ort

import (
	"cmp"
	"maps"
	goruntime "runtime"
	"slices"
	"strings"

	ort "github.com/yalue/onnxruntime_go"

	"github.com/miplc/miplc/compile/graph"
	"github.com/miplc/miplc/compile/onnx"
	"github.com/miplc/miplc/train"
)

// NewGraphRunner returns a train.GraphRunner on all cores unless Setup.Threads is set. Its values are in the memory of
// this process. onnxruntime must have been started.
func NewGraphRunner(o Setup) train.GraphRunner {
	o.Threads = cmp.Or(o.Threads, goruntime.GOMAXPROCS(0))
	return &graphRunner{o, map[*graph.Graph]*session{}}
}

type graphRunner struct {
	options  Setup
	sessions map[*graph.Graph]*session
}

func (r *graphRunner) Put(numbers []float32, shape ...int) (train.Value, error) {
	return ort.NewTensor(toShape(shape), slices.Clone(numbers))
}

func (r *graphRunner) Get(v train.Value) ([]float32, error) {
	return slices.Clone(v.(*ort.Tensor[float32]).GetData()), nil
}

func (r *graphRunner) Free(v train.Value) { _ = v.(ort.Value).Destroy() }

// Run implements train.GraphRunner. Outputs reuse the memory of old values unless the graph reads those.
func (r *graphRunner) Run(g *graph.Graph, n int, in, old map[string]train.Value) (
	made map[string]train.Value,
	err error) {
	out, unused := values{}, values{}
	for name, v := range old {
		unused[name] = v.(ort.Value)
	}
	defer func() {
		if err != nil {
			_ = out.Destroy()
		}
		_ = unused.Destroy()
	}()
	s := r.sessions[g]
	if s == nil {
		if s, err = open(prefixed(g), r.options, onnx.ForCPU, 1); err != nil {
			return nil, err
		}
		r.sessions[g] = s
	}
	from, to := make([]ort.Value, len(s.in)), make([]ort.Value, len(s.out))
	for i, name := range s.in {
		from[i] = in[name].(ort.Value)
	}
	for i, name := range s.out {
		name = strings.TrimPrefix(name, outputPrefix)
		shape, v := g.Output(name).Shape.Concrete(n, 1), unused[name]
		if v != nil && !slices.Contains(from, v) && slices.Equal(v.GetShape(), toShape(shape)) {
			out[name] = v
			delete(unused, name)
		} else if err = out.add(name, shape...); err != nil {
			return nil, err
		}
		to[i] = out[name]
	}
	s.calls.Lock()
	err = s.Run(from, to)
	s.calls.Unlock()
	goruntime.KeepAlive(from) // the session has only their C pointers
	goruntime.KeepAlive(to)
	if err != nil {
		return nil, err
	}
	made = map[string]train.Value{}
	for name, v := range out {
		made[name] = v
	}
	return made, nil
}

// outputPrefix makes the names of outputs different from those of inputs, as ONNX requires.
const outputPrefix = "made."

// prefixed returns the graph with outputPrefix before the names of its outputs.
func prefixed(g *graph.Graph) *graph.Graph {
	out := &graph.Graph{Name: g.Name, Nodes: g.Nodes}
	for _, o := range g.Outputs {
		out.Outputs = append(out.Outputs, graph.Output{Name: outputPrefix + o.Name, Node: o.Node})
	}
	return out
}

func (r *graphRunner) Close() error { return destroy(slices.Collect(maps.Values(r.sessions))...) }
