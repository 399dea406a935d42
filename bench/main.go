// Command bench runs miplc's part of the measurements in bench/compare.py: it trains and predicts
// on the bags of a file and prints one JSON object. The command published records accuracies.
//
//	bench train -data bags.npz -spec demipl -bags 1 -threads 1 -steps 1000
//	bench runs  -data bags.npz -spec demipl -runs 64 -threads 1 -steps 20
//	bench model -data bags.npz -spec demipl -out model.onnx
//	bench infer -data bags.npz -model model.onnx -backend ort -steps 1000
//	bench ulp   -data bags.npz -spec demipl -steps 30
//	bench published authors results
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/bagfile"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/train/engines"
)

// request has the arguments of the command line.
type request struct {
	data, spec, out, model, backend, library, engine string
	bags, threads, steps, runs                       int
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	commands := map[string]func(request) (any, error){"train": trainSteps, "runs": trainRuns,
		"model": writeModel, "infer": infer, "ulp": ulp}
	switch {
	case len(args) > 0 && args[0] == "published":
		return addPublished(args[1:])
	case len(args) == 0 || commands[args[0]] == nil:
		return fmt.Errorf("missing or unknown command: give train, runs, model, infer, ulp or published")
	}
	var r request
	f := flag.NewFlagSet(args[0], flag.ContinueOnError)
	f.StringVar(&r.data, "data", "", "dataset file")
	f.StringVar(&r.spec, "spec", "demipl", "spec file, or the name of a shipped spec")
	f.StringVar(&r.out, "out", "model.onnx", "model file that the command model writes")
	f.StringVar(&r.model, "model", "model.onnx", "model file that infer reads")
	f.StringVar(&r.backend, "backend", "ort", "back end of infer: ort or onnx-go")
	f.StringVar(&r.engine, "engine", engines.Native, "engine of train and ulp")
	f.StringVar(&r.library, "library", "", "path of the onnxruntime library (default: search)")
	f.IntVar(&r.bags, "bags", 1, "bags per step or prediction")
	f.IntVar(&r.threads, "threads", 1, "threads of an operation")
	f.IntVar(&r.runs, "runs", 1, "runs that train at the same time, of the command runs")
	f.IntVar(&r.steps, "steps", 1000, "training steps or predictions to measure; epochs of runs and ulp")
	if err := f.Parse(args[1:]); err != nil {
		return err
	}
	result, err := commands[args[0]](r)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(result)
}

// program reads the bags and compiles the spec for them.
func (r *request) program(set ...string) (*compile.Program, *data.Dataset, error) {
	d, err := bagfile.Open(r.data)
	if err != nil {
		return nil, nil, err
	}
	spec, err := language.Load(r.spec, set...)
	if err != nil {
		return nil, nil, err
	}
	sig, err := compile.SignatureOf(spec, d.Shape, d.Classes)
	if err != nil {
		return nil, nil, err
	}
	p, err := compile.Compile(spec, sig)
	return p, d, err
}

// times are the durations of single steps. CPU is the processor time of the whole process, which
// other load on the machine affects less.
type times struct {
	Steps    int     `json:"steps"`
	MedianUS float64 `json:"median_us"`
	MinUS    float64 `json:"min_us"`
	CPUUS    float64 `json:"cpu_us"`
}

// stopwatch measures steps after a tenth of them for warming up.
type stopwatch struct {
	want    int
	warm    int
	us      []float64
	cpu     time.Duration // of the steps in us
	last    time.Time
	lastCPU time.Duration
	running bool
}

func newStopwatch(steps int) *stopwatch {
	return &stopwatch{want: steps, warm: steps/10 + 3, us: make([]float64, 0, steps)}
}

// pause excludes the time until the next lap.
func (s *stopwatch) pause() { s.running = false }

// lap ends one step and starts the next. It returns true when all steps are measured.
func (s *stopwatch) lap() bool {
	now, cpu := time.Now(), processorTime()
	switch {
	case s.warm > 0:
		s.warm--
	case s.running:
		s.us = append(s.us, float64(now.Sub(s.last).Nanoseconds())/1e3)
		s.cpu += cpu - s.lastCPU
	}
	s.lastCPU, s.running = processorTime(), s.warm == 0
	s.last = time.Now()
	return len(s.us) == s.want
}

func (s *stopwatch) times() times {
	slices.Sort(s.us)
	n := max(len(s.us), 1)
	t := times{Steps: len(s.us), CPUUS: float64(s.cpu.Nanoseconds()) / 1e3 / float64(n)}
	if len(s.us) > 0 {
		t.MedianUS, t.MinUS = s.us[len(s.us)/2], s.us[0]
	}
	return t
}
