// A small dataset, program and engine for tests of this package.

package train_test

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/language/schema"
	"github.com/miplc/miplc/train"
)

// toyData draws bags whose instances of the true class have a large value in the feature of that
// class.
func toyData(bags int) *data.Dataset {
	const k, dim = 3, 4
	r := ndarray.NewStream(5, "toy")
	d := &data.Dataset{Name: "toy", Shape: []int{dim}, Classes: k, Offsets: []int{0}}
	for i := range bags {
		label := i % k
		for j := range 2 + r.IntN(4) {
			positive := j == 0
			for f := range dim {
				v := 10 + r.NormFloat64()
				if positive && f == label {
					v += 12
				}
				d.Instances = append(d.Instances, float32(v))
			}
			d.InstLabels = append(d.InstLabels, -1)
			if positive {
				d.InstLabels[len(d.InstLabels)-1] = label
			}
		}
		d.Offsets = append(d.Offsets, len(d.InstLabels))
		set := make([]uint8, k)
		set[label] = 1
		set[(label+1+r.IntN(k-1))%k] = 1
		d.Candidates = append(d.Candidates, set...)
		d.Labels = append(d.Labels, label)
	}
	return d
}

// toyProgram has the parts of a program that the loop reads. The graphs are empty, because the
// toy engine implements its model.
func toyProgram(d *data.Dataset) *compile.Program {
	s := &language.Spec{}
	s.Name.V = "toy"
	s.Data.Normalize.V = "training"
	s.Loss = []language.Loss{{Kind: schema.Str{V: "disambiguation"}}, {Kind: schema.Str{V: "equation"},
		Name: schema.Str{V: "size"}}}
	s.Weights.Schedule.V, s.Weights.FirstEpoch.V = "linear", 1
	s.Train = language.Train{
		Optimizer: schema.Str{V: "sgd"},
		Epochs:    schema.Int{V: 6}, Batch: schema.Int{V: 4}, Seed: schema.Int{V: 3}, LR: schema.Float{V: 0.05},
		Momentum: schema.Float{V: 0.9},
		Nesterov: schema.Bool{V: true}, WeightDecay: schema.Float{V: 1e-4}, Schedule: schema.Str{V: "cosine"},
		EvalEvery: schema.Int{V: 1}, Checkpoint: schema.Int{V: 1},
	}
	return &compile.Program{
		Spec: s, Signature: compile.Signature{Instance: d.Shape, Classes: d.Classes}, Normalize: true, Train: &graph.Graph{},
		Terms: []string{"disambiguation", "size"},
		Params: []compile.Param{
			{Name: "Wc", Shape: []int{d.Dim(), d.Classes}, Init: compile.Init{Kind: "uniform", Scale: 0.5}},
			{Name: "bc", Shape: []int{d.Classes}, Init: compile.Init{Kind: "constant"}},
		},
		Masks: []compile.Mask{{Name: "dropout1", Shape: graph.Shape{graph.N, graph.Dim(d.Dim())}, Drop: 0.1}},
	}
}

// toyEngine pools the mean of a bag and classifies it by one dense layer.
type toyEngine struct {
	p      *compile.Program
	s      *train.State
	spoil  func(*train.Batch, *train.StepResult) error // may change a result
	closed bool
}

func (e *toyEngine) Name() string { return "toy" }

func (e *toyEngine) Close() error { e.closed = true; return nil }

// forward returns the pooled bags [B, d] and their probabilities [B, k].
func (e *toyEngine) forward(x []float32, bagOf []int, bags int) (z, p []float32) {
	dim, k := e.p.Signature.Instance[0], e.p.Signature.Classes
	z, p = make([]float32, bags*dim), make([]float32, bags*k)
	count := make([]float32, bags)
	for _, b := range bagOf {
		count[b]++
	}
	for i, v := range x {
		b := bagOf[i/dim]
		z[b*dim+i%dim] += v / count[b]
	}
	for b := range bags {
		sum := 0.0
		for c := range k {
			s := e.s.Params["bc"][c]
			for f := range dim {
				s += z[b*dim+f] * e.s.Params["Wc"][f*k+c]
			}
			p[b*k+c] = float32(math.Exp(float64(s)))
			sum += float64(p[b*k+c])
		}
		for c := range k {
			p[b*k+c] /= float32(sum)
		}
	}
	return z, p
}

func (e *toyEngine) Step(b *train.Batch) (*train.StepResult, error) {
	x := append([]float32(nil), b.Instances...)
	for i, m := range b.Masks["dropout1"] {
		x[i] *= m
	}
	z, p := e.forward(x, b.BagOf, b.Bags)
	k, dim := e.p.Signature.Classes, e.p.Signature.Instance[0]
	r := &train.StepResult{Probabilities: p, Attention: make([]float32, len(b.BagOf)),
		LabelWeights: make([]float32, len(p))}
	grad := map[string][]float32{"Wc": make([]float32, dim*k), "bc": make([]float32, k)}
	for bag := range b.Bags {
		on := float32(0)
		for c := range k {
			on += p[bag*k+c] * b.Candidates[bag*k+c]
		}
		for c := range k {
			i := bag*k + c
			r.LabelWeights[i] = float32(b.Lambda)*b.LabelWeights[i] + float32(1-b.Lambda)*p[i]*b.Candidates[i]/on
			r.Loss -= float64(r.LabelWeights[i]) * math.Log(float64(p[i])) / float64(b.Bags)
			g := (p[i] - r.LabelWeights[i]) / float32(b.Bags)
			grad["bc"][c] += g
			for f := range dim {
				grad["Wc"][f*k+c] += g * z[bag*dim+f]
			}
		}
	}
	r.Terms = []float64{r.Loss, float64(len(b.BagOf))}
	velocities := e.p.ParamViews(e.s.Optimizer[compile.InVelocity])
	for _, param := range e.p.Params {
		values, v := e.s.Params[param.Name], velocities[param.Name]
		for i, g := range grad[param.Name] {
			v[i] = 0.9*v[i] + g
			values[i] -= float32(b.LR) * (g + 0.9*v[i])
		}
	}
	if e.spoil != nil {
		if err := e.spoil(b, r); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func (e *toyEngine) Predict(x []float32, bagOf []int, bags int) (p, a []float32, err error) {
	mean, std := e.s.Params[compile.ParamMean], e.s.Params[compile.ParamStd]
	z := make([]float32, len(x))
	for i, v := range x {
		z[i] = (v - mean[i%len(mean)]) / std[i%len(std)]
	}
	_, p = e.forward(z, bagOf, bags)
	a = make([]float32, len(bagOf))
	for i := range a {
		a[i] = 1 / (1 + float32(math.Exp(float64(-z[i*len(mean)]))))
	}
	return p, a, nil
}

func (e *toyEngine) State() (*train.State, error) { return cloneState(e.s), nil }

func (e *toyEngine) SetState(s *train.State) error {
	e.s = cloneState(s)
	if e.s.Optimizer[compile.InVelocity] == nil {
		e.s.Optimizer[compile.InVelocity] = make([]float32, e.p.FlatSize())
	}
	return train.CheckState(e.p, s)
}

func cloneState(s *train.State) *train.State {
	c := &train.State{Params: map[string][]float32{}, Optimizer: map[string][]float32{}}
	for name, v := range s.Params {
		c.Params[name] = append([]float32(nil), v...)
	}
	for name, v := range s.Optimizer {
		c.Optimizer[name] = append([]float32(nil), v...)
	}
	return c
}

// toy is a trial and its engine.
type toy struct {
	train.Trial
	Engine    string
	NewEngine func(*compile.Program) (train.Engine, error)
	Resume    bool
	Observer  train.Observer
}

// run trains a single trial.
func run(ctx context.Context, o toy) (*train.Report, error) {
	if o.Dir != "" {
		o.Log = filepath.Join(o.Dir, train.MetricsFile)
	}
	by := &train.StepTrainer{EngineInfo: train.EngineInfo{Engine: o.Engine}, New: o.NewEngine}
	return train.TrainOne(ctx, by, &o.Trial, train.Options{EveryCheckpoint: true, Resume: o.Resume, Observer: o.Observer})
}

// toyOptions returns a run over 30 bags, two thirds of them for training.
func toyOptions(t *testing.T, edit func(*language.Spec)) toy {
	t.Helper()
	d := toyData(30)
	p := toyProgram(d)
	if edit != nil {
		edit(p.Spec)
	}
	o := toy{Trial: train.Trial{Program: p, Data: d, Split: &data.Split{}}, Engine: "toy",
		NewEngine: func(p *compile.Program) (train.Engine, error) {
			return &toyEngine{p: p}, nil
		}}
	for i := range 30 {
		if i < 9 {
			o.Split.Test = append(o.Split.Test, i)
		} else {
			o.Split.Train = append(o.Split.Train, i)
		}
	}
	return o
}

// spy records the events of a training and may react to them.
type spy struct {
	train.Silent
	plan  train.Plan
	steps []train.Progress
	done  []train.Metrics
	warns []string
	step  func(train.Progress)
	epoch func(train.Metrics)
}

func (s *spy) Begin(p train.Plan) { s.plan = p }
func (s *spy) Warn(text string)   { s.warns = append(s.warns, text) }
func (s *spy) Step(p train.Progress) {
	s.steps = append(s.steps, p)
	if s.step != nil {
		s.step(p)
	}
}
func (s *spy) Epoch(m train.Metrics, _ train.Progress) {
	s.done = append(s.done, m)
	if s.epoch != nil {
		s.epoch(m)
	}
}

// bits returns a report as text, without times and with the bits of floats.
func bits(r *train.Report) string {
	var b strings.Builder
	for _, m := range r.Metrics {
		m.Seconds = 0
		fmt.Fprintf(&b, "%d %x %x %x %v", m.Epoch, m.LR, m.Lambda, m.Loss, m.Terms)
		for _, a := range []*float64{m.Measures.Accuracy("train"), m.Measures.Accuracy("test"), m.Disambiguation} {
			if a != nil {
				fmt.Fprintf(&b, " %x", *a)
			}
		}
		b.WriteByte('\n')
	}
	for _, name := range []string{"Wc", "bc", compile.ParamMean, compile.ParamStd} {
		fmt.Fprintf(&b, "%s %x\n", name, r.State.Params[name])
	}
	fmt.Fprintf(&b, "%x\n", r.State.Optimizer[compile.InVelocity])
	fmt.Fprintf(&b, "%x\n%v\n%x\n%x\n", r.Weights, r.Detail.Confusion, r.Attention, r.Trajectories)
	return b.String()
}
