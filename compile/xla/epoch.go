// Programs of whole epochs and of evaluations, and the memory that they need.

package xla

import (
	"fmt"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/ndarray"
)

// Epoch returns the program that runs the training steps of an epoch, or a part of them, for many
// trials at once. The dataset is an input: the caller copies it to the device once.
//
// Inputs are those of scan.go (without InMean and InStd if the program does not normalise), the state vectors
// [Trials, P] (compile.Program.StateVectors), compile.InLR, compile.TermWeightPrefix... and compile.Program.Settings
// [Trials, 1], StepScalarNames [Steps, Trials, 1], compile.InClassWeights [Trials, 1, k] if the program weighs classes,
// and compile.InLambda, compile.InEpoch, compile.InEpochs [1]. Outputs are the state vectors and OutTrace of width
// EpochWidth: for each trial the loss, its terms, and the new label weights [Batch, k] of the bags of the step. A
// trial without a bag in a step keeps its state and records zeros.
func (g *Graphs) Epoch(backend compute.Backend, l Layout) (program *Executable, err error) {
	defer graph.Catch(&err, "compiling the epoch")
	s := newScan(backend, "epoch", l)
	s.data(g.Program)
	k, size := g.Signature.Classes, g.FlatSize()
	s.state(InSets, floats(l.Trials, l.Bags, k))
	s.state(InOldWeights, floats(l.Trials, l.Bags, k))
	vectors := g.StateVectors()
	for _, name := range vectors {
		s.state(name, floats(l.Trials, size))
	}
	s.trace(g.EpochWidth(l))
	for _, mask := range g.Masks {
		s.state(InMask+mask.Name, bytes(append([]int{l.Steps, l.Trials}, mask.Shape.Concrete(l.N, l.Batch)...)...))
		s.state(InScale+mask.Name, floats(l.Trials, 1))
	}
	scalars := []string{compile.InLR}
	for _, name := range g.Terms {
		scalars = append(scalars, compile.TermWeightPrefix+name)
	}
	for _, setting := range g.Settings(nil) {
		scalars = append(scalars, setting.Name)
	}
	for _, name := range scalars {
		s.state(name, floats(l.Trials, 1))
	}
	for _, name := range g.StepScalarNames() {
		s.state(name, floats(l.Steps, l.Trials, 1))
	}
	if g.WeighsClasses() {
		s.state(compile.InClassWeights, floats(l.Trials, 1, k))
	}
	var shared []string
	for _, name := range []string{compile.InLambda, compile.InEpoch, compile.InEpochs} {
		if g.StepGraph.Input(name) != nil {
			s.state(name, floats(1))
			shared = append(shared, name)
		}
	}
	return s.loop(func(e *emitter, step tensor, in map[string]tensor) map[string]tensor {
		return g.trainStep(e, l, step, in, scalars, shared)
	}, append(vectors, OutTrace)...), nil
}

// EpochWidth returns the last size of OutTrace of Epoch.
func (g *Graphs) EpochWidth(l Layout) int {
	return 1 + len(g.Terms) + l.Batch*g.Signature.Classes
}

// trainStep writes the body of the loop of Epoch.
func (g *Graphs) trainStep(e *emitter, l Layout, step tensor, in map[string]tensor, scalars,
	shared []string) map[string]tensor {
	b := e.batch(l, step, in)
	bound := map[string]tensor{
		compile.InInstances:    trials(e.normalized(b.instances, in)),
		compile.InBagOf:        trials(b.bagOf),
		compile.InCandidates:   trials(e.perBag(l, b, in[InSets])),
		compile.InLabelWeights: trials(e.perBag(l, b, in[InOldWeights])),
	}
	for _, name := range g.StateVectors() {
		bound[name] = trials(in[name])
	}
	if g.WeighsClasses() {
		bound[compile.InClassWeights] = trials(in[compile.InClassWeights])
	}
	for _, name := range g.StepScalarNames() {
		bound[name] = trials(e.step(in[name], step))
	}
	for _, mask := range g.Masks {
		kept := e.convert(e.step(in[InMask+mask.Name], step), dtypes.Float32)
		bound[mask.Name] = e.mul(trials(kept), trials(in[InScale+mask.Name]))
	}
	for _, name := range scalars {
		bound[name] = trials(in[name])
	}
	for _, name := range shared {
		bound[name] = in[name]
	}
	out := e.lower(g.StepGraph, l.capacity(), bound)
	parts := []tensor{out[compile.OutLoss]}
	for _, name := range g.Terms {
		parts = append(parts, out[compile.TermPrefix+name])
	}
	parts = append(parts, out[compile.OutLabelWeights])
	active := e.reshape(b.active, l.Trials, 1)
	changed := map[string]tensor{OutTrace: e.record(in[OutTrace], step, b.active, parts...)}
	for _, name := range g.StateVectors() {
		changed[name] = e.where(active, e.plain(out[compile.UpdatedName(name)]), in[name])
	}
	return changed
}

// Forward returns the program that predicts bags with the parameters of each trial. Inputs are those
// of scan.go for order and dataset, and compile.InParams [Trials, P]. Its only output is OutTrace of
// width ForwardWidth: for each trial the probabilities [Batch, k] and the attention scores [N] of the
// step.
func (g *Graphs) Forward(backend compute.Backend, l Layout) (program *Executable, err error) {
	defer graph.Catch(&err, "compiling the evaluation")
	s := newScan(backend, "forward", l)
	s.data(g.Program)
	s.state(compile.InParams, floats(l.Trials, g.FlatSize()))
	s.trace(g.ForwardWidth(l))
	return s.loop(func(e *emitter, step tensor, in map[string]tensor) map[string]tensor {
		b := e.batch(l, step, in)
		bound := map[string]tensor{
			compile.InInstances: trials(b.instances), compile.InBagOf: trials(b.bagOf),
			compile.InParams: trials(in[compile.InParams]),
		}
		if g.Normalize {
			for name, from := range map[string]string{compile.ParamMean: InMean, compile.ParamStd: InStd} {
				dims := append([]int{l.Trials}, g.PredictGraph.Input(name).Shape.Concrete(l.N, l.Batch)...)
				bound[name] = trials(e.reshape(in[from], dims...))
			}
		}
		out := e.lower(g.PredictGraph, l.capacity(), bound)
		return map[string]tensor{
			OutTrace: e.record(in[OutTrace], step, b.active, out[compile.OutProbabilities], out[compile.OutAttention]),
		}
	}, OutTrace), nil
}

// ForwardWidth returns the last size of OutTrace of Forward.
func (g *Graphs) ForwardWidth(l Layout) int { return l.Batch*g.Signature.Classes + l.N }

// Graphs contains the graphs from which the programs over many steps are built.
type Graphs struct{ *compile.GroupGraphs }

// NewGraphs builds the graphs of a program.
func NewGraphs(p *compile.Program) (*Graphs, error) {
	s, err := compile.ForGroup(p)
	return &Graphs{s}, err
}

// Text returns a description that is equal for graphs with equal programs.
func (g *Graphs) Text() string {
	return fmt.Sprint(g.StepGraph.Text(), g.PredictGraph.Text(), g.Terms, g.Normalize, g.Signature)
}

// Bytes estimates the memory that the programs of an epoch and of an evaluation need, for each trial
// and shared by all trials.
func (g *Graphs) Bytes(epoch, evaluation Layout) (trial, shared float64) {
	inStep := max(g.StepGraph.Peak(epoch.N, epoch.Batch)+unfolded(g.StepGraph, epoch.N)+attended(g.StepGraph, epoch.N),
		g.PredictGraph.Peak(evaluation.N, evaluation.Batch)+unfolded(g.PredictGraph, evaluation.N)+attended(g.PredictGraph,
			evaluation.N))
	traces := epoch.Steps*g.EpochWidth(epoch) + evaluation.Steps*g.ForwardWidth(evaluation)
	perBag := 2 * epoch.Bags * g.Signature.Classes // candidates and label weights
	trial = 4*(inStep+float64(traces+perBag)) + float64(epoch.Steps*g.MaskBytes(epoch))
	return trial, 4 * float64(epoch.Rows*ndarray.Size(g.Signature.Instance))
}

// MaskBytes returns the size of the dropout masks of one trial and step.
func (g *Graphs) MaskBytes(l Layout) (n int) {
	for _, mask := range g.Masks {
		n += ndarray.Size(mask.Shape.Concrete(l.N, l.Batch))
	}
	return n
}

// StepScalarNames returns the names of the inputs of a step that change from step to step, see
// compile.Program.StepScalars.
func (g *Graphs) StepScalarNames() (names []string) {
	for _, s := range g.StepScalars(nil, compile.Position{}) {
		names = append(names, s.Name)
	}
	return names
}
