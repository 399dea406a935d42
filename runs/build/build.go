// Package build builds specs without training: their graphs, the untrained model and the training step.
package build

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/data/bagfile"
	"github.com/miplc/miplc/export"
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/contract"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/fileio"
	"github.com/miplc/miplc/internal/resources"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/runs"
	"github.com/miplc/miplc/runs/prepare"
)

// Names of files that Run writes besides runs.ModelFile.
const (
	GraphTextFile = "graph.txt"
	GraphDOTFile  = "graph.dot"
	ManifestFile  = "manifest.json"
)

// sizes are the numbers of instances of the bags on which a built model is checked. They are
// small, because users build often.
var sizes = []int{1, 3}

// Task says what Run writes.
type Task struct {
	Spec  *language.Spec
	Dir   string
	Data  bagfile.Folder
	Force bool // overwrite a run in Dir
	// SampleSteps is the number of training steps whose batches and losses are written. They need the
	// dataset.
	SampleSteps int
}

// Manifest describes the files of a build.
type Manifest struct {
	Name       string            `json:"name"`
	Version    string            `json:"miplc"`
	SpecSHA256 string            `json:"spec_sha256"`
	Seed       uint64            `json:"seed"`
	InputShape []int             `json:"input_shape"` // of one instance
	Classes    int               `json:"classes"`
	Parameters int               `json:"parameters"` // learned numbers
	Params     []ParamFacts      `json:"params"`
	InferNodes int               `json:"infer_nodes"`
	TrainNodes int               `json:"train_nodes"`
	Parity     *export.Agreement `json:"parity"`
	StepCheck  *StepCheck        `json:"train_step_check"`
	TrainStep  *contract.Step    `json:"train_step"`              // inputs and outputs of TrainStepFile
	Losses     []float64         `json:"sample_losses,omitempty"` // of the sample steps
	SHA256     map[string]string `json:"sha256"`                  // of each file
}

// ParamFacts describes one learned value.
type ParamFacts struct {
	Name  string `json:"name"`
	Shape []int  `json:"shape"`
}

// Run compiles a spec and writes its graphs as text and DOT, the checked model with its initial
// parameters, the checked training step, the same parameters as a flat vector, and the manifest. A
// model with normalisation gets mean 0 and deviation 1, because Run does not read the features.
func Run(ctx context.Context, o Task) (*Manifest, error) {
	if o.Spec.Fitted() {
		l := o.Spec.Learner
		return nil, diag.Invalid(o.Spec.AddSource(diag.Errorf(l.Kind.Pos, "learner %s has no model before it "+
			"is fitted: there is nothing to build", l.Kind.V).WithNote("miplc train fits it and writes model.onnx")))
	}
	sig, err := buildSignature(o.Spec, o.Data)
	if err != nil {
		return nil, err
	}
	p, err := compile.Compile(o.Spec, sig)
	if err != nil {
		return nil, diag.Invalid(err)
	}
	if t := o.Spec.Export.Temperature.V.T; t > 0 {
		if p, err = p.WithTemperature(t); err != nil {
			return nil, err
		}
	}
	if err := prepare.CheckStep("building", p, nil); err != nil {
		return nil, err
	}
	folder, err := o.claim()
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	m, err := o.build(ctx, p, sig)
	if err != nil {
		folder.ClearUnless(ManifestFile, runs.FailedModelFile)
	}
	return m, err
}

// build writes the files of a build to a claimed folder.
func (o *Task) build(ctx context.Context, p *compile.Program, sig compile.Signature) (*Manifest, error) {
	form, err := newTrainStep(p, o.Data)
	if err != nil {
		return nil, err
	}
	state, m := form.state, o.manifest(p, sig)
	meta := contract.Metadata{Version: m.Version, SpecSHA256: m.SpecSHA256, Seed: m.Seed, Engine: "none"}
	if t := o.Spec.Export.Temperature.V.T; t > 0 {
		meta.Temperature = &t
	}
	for c := range sig.Classes {
		meta.Classes = append(meta.Classes, fmt.Sprint(c))
	}
	var step *fileio.File
	var failed error
	var background resources.Group
	background.Go(func() {
		step, m.StepCheck, failed = form.write(o.Dir, contract.Step{Version: m.Version, SpecSHA256: m.SpecSHA256,
			Seed: m.Seed})
	})
	defer func() {
		if background.Wait(); step != nil {
			step.Discard() // no effect after Commit
		}
	}()
	if m.Parity, err = runs.ExportUntrained(runs.ModelPath(o.Dir), p, state, meta, sizes); err != nil {
		return nil, err
	}
	if background.Wait(); failed != nil {
		return nil, failed
	}
	if err := step.Commit(); err != nil {
		return nil, err
	}
	if err := form.writeInitial(o.Dir); err != nil {
		return nil, err
	}
	m.TrainStep = form.described
	written := []string{runs.ModelFile, TrainStepFile, InitialFile}
	if err := o.writeSamples(ctx, form, m); err != nil {
		return nil, err
	}
	if o.SampleSteps > 0 {
		written = append(written, sampleFile, sampleValuesFile)
	}
	return m, m.write(o.Dir, p, written)
}

// manifest returns the manifest without the results of the checks and the hashes of the files.
func (o *Task) manifest(p *compile.Program, sig compile.Signature) *Manifest {
	m := &Manifest{
		Name: o.Spec.Name.V, Version: runs.CurrentBuild().Miplc, SpecSHA256: o.Spec.Identity(),
		Seed:       uint64(o.Spec.Train.Seed.V),
		InputShape: sig.Instance, Classes: sig.Classes, Parameters: p.FlatSize(),
		InferNodes: len(p.Infer.Nodes), TrainNodes: len(p.Train.Nodes), SHA256: map[string]string{},
	}
	for _, q := range p.Params {
		m.Params = append(m.Params, ParamFacts{q.Name, q.Shape})
	}
	return m
}

// writeSamples removes the sample steps of an earlier build and writes new ones if they are wanted.
func (o *Task) writeSamples(ctx context.Context, f *trainStep, m *Manifest) error {
	for _, old := range []string{sampleFile, sampleValuesFile} {
		if err := os.Remove(filepath.Join(o.Dir, old)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if o.SampleSteps == 0 {
		return nil
	}
	sample, err := writeSampleSteps(ctx, o, f)
	if err != nil {
		return err
	}
	for _, s := range sample.Steps {
		m.Losses = append(m.Losses, s.Loss)
	}
	return nil
}

// buildSignature returns the shapes of the spec. It reads the dataset only if the spec does not have
// all of them.
func buildSignature(spec *language.Spec, folder bagfile.Folder) (compile.Signature, error) {
	if shape, k := spec.Data.Shape.V, spec.Data.Classes.V; len(shape) > 0 && k > 0 {
		return compile.Signature{Instance: shape, Classes: k}, nil
	}
	sig, _, note, err := prepare.Describe(spec, folder)
	if err == nil && note != "" {
		err = spec.AddSource(diag.Errorf(spec.Data.Set.Pos, "the shapes of %s are unknown, because the file was not found",
			spec.Data.Set.V).
			WithNote("give its folder with --data-dir, or set data.shape and data.classes"))
	}
	return sig, err
}

// files are the names of all files that a build may write.
var files = []string{ManifestFile, runs.ModelFile, TrainStepFile, InitialFile, sampleFile, sampleValuesFile,
	GraphTextFile, GraphDOTFile, runs.FailedModelFile, runs.FailedReportFile}

// claim locks and marks the folder of a build. It replaces an earlier build, and a run only with
// Force. The caller must close the folder.
func (o *Task) claim() (*fileio.Folder, error) {
	return fileio.ClaimFolder(o.Dir, func(f *fileio.Folder) error {
		take := f.Restart
		switch mark := f.Mark; {
		case mark == nil || mark.By == fileio.RunFolder && o.Force:
		case mark.By == fileio.BuildFolder:
			take = f.Claim // keeps the files of the earlier build until they are replaced
		case mark.By == fileio.RunFolder:
			return fmt.Errorf("%s contains a run, whose model would be overwritten: choose another folder, or overwrite it "+
				"with --force", o.Dir)
		default:
			return mark.CheckKind(o.Dir, fileio.RunFolder, fileio.BuildFolder)
		}
		return take(fileio.BuildFolder, files, prepare.InputFiles(o.Spec, o.Data))
	})
}

// write writes the graphs and the manifest with the hashes of the graphs and of files.
func (m *Manifest) write(dir string, p *compile.Program, files []string) error {
	for _, f := range []struct {
		name  string
		print func(*graph.Graph) string
	}{{GraphTextFile, (*graph.Graph).Text}, {GraphDOTFile, (*graph.Graph).DOT}} {
		text := f.print(p.Infer) + "\n" + f.print(p.Train)
		if err := fileio.Replace(filepath.Join(dir, f.name), []byte(strings.TrimRight(text, "\n")+"\n")); err != nil {
			return err
		}
	}
	for _, name := range append(files, GraphTextFile, GraphDOTFile) {
		sum, err := fileio.SHA256(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		m.SHA256[name] = sum
	}
	return fileio.ReplaceJSON(filepath.Join(dir, ManifestFile), m)
}
