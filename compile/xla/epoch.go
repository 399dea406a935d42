package xla

import (
	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/compile/target"
	"github.com/miplc/miplc/graph"
)

// Epoch is the program that runs the training steps of an epoch, or a part of
// them, of many jobs side by side. The data set is an input like any other:
// the caller puts it on the device once. p comes from Weighted.
//
// Inputs are those of scan.go without InMean and InStd where the program does
// not normalise, and compile.InParams and compile.InVelocity [Jobs, P],
// compile.InLR and InTermWeight... [Jobs, 1], compile.InLambda,
// compile.InEpoch, compile.InEpochs [1]. Outputs are compile.InParams,
// compile.InVelocity and OutTrace, of EpochWidth: per job the loss, its terms,
// and the new label weights [Batch, k] of the bags of the step. A job without
// a bag in a step keeps its state and records zeros.
func Epoch(backend compute.Backend, p *compile.Program, terms []string, l Layout) (program *Program, err error) {
	defer target.Catch(&err, "compiling the epoch")
	g, err := compile.Step(p)
	if err != nil {
		return nil, err
	}
	s := newScan(backend, "epoch", l)
	s.data(p)
	k, size := p.Signature.Classes, p.FlatSize()
	s.state(InSets, floats(l.Jobs, l.Bags, k))
	s.state(InOldWeights, floats(l.Jobs, l.Bags, k))
	s.state(compile.InParams, floats(l.Jobs, size))
	s.state(compile.InVelocity, floats(l.Jobs, size))
	s.state(InTrace, floats(l.Steps, l.Jobs, EpochWidth(p, terms, l)))
	for _, m := range p.Masks {
		s.state(InMask+m.Name, bytes(append([]int{l.Steps, l.Jobs}, m.Shape.Concrete(l.N, l.Batch)...)...))
	}
	scalars := []string{compile.InLR}
	for _, name := range terms {
		scalars = append(scalars, InTermWeight+name)
	}
	for _, name := range scalars {
		s.state(name, floats(l.Jobs, 1))
	}
	used := graphInputs(g)
	var shared []string
	for _, name := range []string{compile.InLambda, compile.InEpoch, compile.InEpochs} {
		if used[name] {
			s.state(name, floats(1))
			shared = append(shared, name)
		}
	}
	return s.loop(func(e *emitter, step tensor, in map[string]tensor) map[string]tensor {
		return trainStep(e, p, g, terms, l, step, in, scalars, shared)
	}, compile.InParams, compile.InVelocity, OutTrace), nil
}

// EpochWidth is the last extent of the trace of Epoch.
func EpochWidth(p *compile.Program, terms []string, l Layout) int {
	return 1 + len(terms) + l.Batch*p.Signature.Classes
}

// trainStep is the body of the loop of Epoch.
func trainStep(e *emitter, p *compile.Program, g *graph.Graph, terms []string, l Layout,
	step tensor, in map[string]tensor, scalars, shared []string) map[string]tensor {
	b := e.batch(l, step, in)
	bound := map[string]tensor{
		compile.InInstances:  jobs(e.normalized(b.instances, in)),
		compile.InBagOf:      jobs(b.bagOf),
		compile.InCandidates: jobs(e.perBag(l, b, in[InSets])),
		compile.InWeights:    jobs(e.perBag(l, b, in[InOldWeights])),
		compile.InParams:     jobs(in[compile.InParams]),
		compile.InVelocity:   jobs(in[compile.InVelocity]),
	}
	for _, m := range p.Masks {
		kept := e.convert(e.step(in[InMask+m.Name], step), dtypes.Float32)
		bound[m.Name] = jobs(e.mul(kept, e.scalar(1/(1-m.Drop))))
	}
	for _, name := range scalars {
		bound[name] = jobs(in[name])
	}
	for _, name := range shared {
		bound[name] = in[name]
	}
	out := e.lower(g, l.capacity(), bound)
	parts := []tensor{out[compile.OutLoss]}
	for _, name := range terms {
		parts = append(parts, out[compile.TermPrefix+name])
	}
	parts = append(parts, out[compile.OutWeights])
	active := e.reshape(b.active, l.Jobs, 1)
	return map[string]tensor{
		compile.InParams:   e.where(active, e.plain(out[compile.OutParams]), in[compile.InParams]),
		compile.InVelocity: e.where(active, e.plain(out[compile.OutVelocity]), in[compile.InVelocity]),
		InTrace:            e.record(in[InTrace], step, b.active, parts...),
	}
}

// Forward is the program that predicts bags with the parameters of each job.
// Inputs are those of scan.go that hold order, data set and trace, and
// compile.InParams [Jobs, P]. Its only output is OutTrace, of ForwardWidth: per
// job the probabilities [Batch, k] and the attention scores [N] of the step.
func Forward(backend compute.Backend, p *compile.Program, l Layout) (program *Program, err error) {
	defer target.Catch(&err, "compiling the evaluation")
	g, err := compile.Predict(p)
	if err != nil {
		return nil, err
	}
	s := newScan(backend, "forward", l)
	s.data(p)
	s.state(compile.InParams, floats(l.Jobs, p.FlatSize()))
	s.state(InTrace, floats(l.Steps, l.Jobs, ForwardWidth(p, l)))
	return s.loop(func(e *emitter, step tensor, in map[string]tensor) map[string]tensor {
		b := e.batch(l, step, in)
		bound := map[string]tensor{
			compile.InInstances: jobs(b.instances), compile.InBagOf: jobs(b.bagOf), compile.InParams: jobs(in[compile.InParams]),
		}
		if p.Normalize {
			for name, from := range map[string]string{compile.ParamMean: InMean, compile.ParamStd: InStd} {
				dims := append([]int{l.Jobs}, g.Input(name).Shape.Concrete(l.N, l.Batch)...)
				bound[name] = jobs(e.reshape(in[from], dims...))
			}
		}
		out := e.lower(g, l.capacity(), bound)
		return map[string]tensor{
			InTrace: e.record(in[InTrace], step, b.active, out[compile.OutProbabilities], out[compile.OutAttention]),
		}
	}, OutTrace), nil
}

// ForwardWidth is the last extent of the trace of Forward.
func ForwardWidth(p *compile.Program, l Layout) int { return l.Batch*p.Signature.Classes + l.N }
