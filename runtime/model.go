// Package runtime predicts bags with a model that miplc exported.
//
//	m, err := runtime.Open("model.onnx")
//	...
//	defer m.Close()
//	p, err := m.Predict(ctx, bag)
//
// The back end is onnxruntime, whose shared library package internal/onnxruntime finds or installs. With
// WithBackend(onnxgo.Backend()) of package runtime/onnxgo, the model runs in pure Go. This package
// imports neither the training code nor gorgonia.
package runtime

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"text/tabwriter"

	"go.opentelemetry.io/otel/trace"

	"github.com/miplc/miplc/internal/contract"
	"github.com/miplc/miplc/internal/onnxpb"
	"github.com/miplc/miplc/internal/onnxruntime"
)

// ErrContract reports a file that is not a miplc model, or not one that this version can run. The
// error that wraps it names the violated part of the contract.
var ErrContract = errors.New("not a model that miplc can run")

// ErrClosed reports a prediction with a closed model.
var ErrClosed = errors.New("the model is closed")

// Option changes how Open opens a model.
type Option func(*options)

type options struct {
	backend        Backend
	library        string
	sessionOptions onnxruntime.SessionOptions
	maxInstances   int
	maxMemory      int64        // 0: the free memory of the machine
	tracer         trace.Tracer // nil: none
	log            *slog.Logger
}

// WithBackend sets the back end that runs the graph; the default is OnnxRuntime().
func WithBackend(b Backend) Option { return func(o *options) { o.backend = b } }

// WithLibrary sets the path of the onnxruntime library, or of a directory that contains it, instead
// of searching for it. A process can load only one.
func WithLibrary(path string) Option { return func(o *options) { o.library = path } }

// WithThreads sets the number of onnxruntime threads for one prediction; the default is 1. One
// thread is fastest for services that predict many bags at once; more threads shorten a single
// prediction of a large image bag.
func WithThreads(n int) Option { return func(o *options) { o.sessionOptions.Threads = n } }

// WithProvider sets the execution provider of onnxruntime, one of onnxruntime.Providers; the default is
// the CPU. The settings are those that onnxruntime defines for the provider, e.g. "device_id" for
// "cuda"; nil means its defaults. Open fails if the library does not have the provider or it cannot
// be used.
func WithProvider(name string, settings map[string]string) Option {
	return func(o *options) { o.sessionOptions.Provider, o.sessionOptions.Settings = name, settings }
}

// WithMaxInstances sets the maximum number of instances in a bag; the default is 100,000. Larger bags
// give ErrTooLarge. The memory of a prediction grows with the number: by some bytes per instance if the
// graph can run on chunks of instances, else by all values of an instance, about 100 kB for small images.
func WithMaxInstances(n int) Option { return func(o *options) { o.maxInstances = n } }

// WithMaxMemory sets the maximum memory in bytes of one run of the graph, estimated from its
// shapes; the default is the free memory of the machine. Larger bags give ErrTooLarge.
func WithMaxMemory(bytes int64) Option { return func(o *options) { o.maxMemory = bytes } }

// WithLargeBags reduces the memory of predictions: onnxruntime frees each value after its last use. On
// Linux, models with this option share the freed memory, at most that of the largest prediction, until one of
// them is closed. By default onnxruntime keeps more memory, which is faster for bags of up to some
// thousand instances.
func WithLargeBags() Option { return func(o *options) { o.sessionOptions.LargeBags = true } }

// Model is an open model. It is safe for concurrent use. The methods of a zero Model return errors
// that wrap ErrClosed.
type Model struct {
	options   options
	current   atomic.Pointer[openFile]
	reloading sync.Mutex
}

// Info is the metadata of a model and how it is open.
type Info struct {
	contract.Metadata
	// hash of what callers depend on, such as the input shape and the classes
	ContractSHA256 string `json:"contract_sha256"`
	Backend        string `json:"backend"` // back end in use
	Opset          int64  `json:"opset"`
}

// String returns the metadata as lines for people, as fmt prints them.
func (i Info) String() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, row := range []struct {
		name  string
		value any
	}{
		{"contract", i.Contract}, {"back end", i.Backend}, {"opset", i.Opset}, {"miplc", i.Version},
		{"classes", strings.Join(i.Classes, ", ")}, {"input shape", i.InputShape}, {"normalization", i.Normalization},
		{"spec", i.SpecSHA256}, {"data", i.DataSHA256}, {"seed", i.Seed}, {"split", string(i.Split)}, {"engine", i.Engine},
		{"back ends", strings.Join(i.Backends, ", ")},
	} {
		fmt.Fprintf(w, "%s\t%v\n", row.name, row.value)
	}
	if i.Temperature != nil {
		fmt.Fprintf(w, "temperature\t%g\n", *i.Temperature)
	}
	if i.Threshold != nil {
		fmt.Fprintf(w, "threshold\t%g (any number of labels)\n", *i.Threshold)
	}
	if i.Encoder != nil {
		fmt.Fprintf(w, "encoder\t%s of file %s\n", i.Encoder.Output, i.Encoder.File)
	}
	if i.Generator != "" {
		fmt.Fprintf(w, "instances\t%s\n", i.Generator)
	}
	for _, pair := range slices.Sorted(maps.Keys(i.Parity)) {
		fmt.Fprintf(w, "parity %s\t%.2g\n", pair, i.Parity[pair])
	}
	w.Flush()
	return b.String()
}

// Open reads the model at path, checks its contract and opens it in the back end. Errors name the
// file. If the file is damaged or violates the contract, the error wraps ErrContract.
func Open(path string, opts ...Option) (*Model, error) {
	data, err := readFile(path)
	if err != nil {
		return nil, err
	}
	m, err := OpenBytes(data, opts...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}

func readFile(path string) ([]byte, error) {
	data, err := onnxpb.ReadFile(path)
	if fault := (*onnxpb.FileError)(nil); errors.As(err, &fault) {
		return nil, fmt.Errorf("%s: %w: %w", path, ErrContract, fault.Err)
	}
	return data, err
}

// OpenBytes opens a model from memory. The data must not change while the model is open.
func OpenBytes(data []byte, opts ...Option) (*Model, error) {
	m := &Model{options: options{sessionOptions: onnxruntime.SessionOptions{Threads: 1}, maxInstances: 100_000,
		log: slog.New(slog.DiscardHandler)}}
	for _, set := range opts {
		set(&m.options)
	}
	if m.options.backend == nil {
		m.options.backend = OnnxRuntime()
	}
	if n := m.options.sessionOptions.Threads; n < 1 {
		return nil, fmt.Errorf("WithThreads(%d): at least 1 thread is needed", n)
	}
	if n := m.options.maxInstances; n < 1 {
		return nil, fmt.Errorf("WithMaxInstances(%d): a bag has at least 1 instance", n)
	}
	if n := m.options.maxMemory; n < 0 {
		return nil, fmt.Errorf("WithMaxMemory(%d): the memory must not be negative; 0 is the free memory of the machine", n)
	}
	o, err := m.options.open(data)
	if err != nil {
		return nil, err
	}
	m.current.Store(o)
	m.options.log.Info("model opened", "model", o.info)
	return m, nil
}

// open checks a file and opens it in the back end.
func (o *options) open(data []byte) (*openFile, error) {
	backend := o.backend.Name()
	// The contract is checked before the back end reads the file, because a C library may crash on a damaged file.
	pb, err := onnxpb.ReadBytes(data)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrContract, err)
	}
	meta, err := contract.Check(pb)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrContract, err)
	}
	if !slices.Contains(meta.Backends, backend) {
		return nil, fmt.Errorf("%w: the file is written for the back ends %v, not for %s", ErrContract, meta.Backends,
			backend)
	}
	e := contract.NewFootprint(pb.GetGraph(), meta.InputShape, backend == contract.BackendORT)
	bytes, err := e.CheckInstance()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrContract, err)
	}
	if err := o.checkMemory(bytes); err != nil {
		return nil, err
	}
	session, err := o.backend.Open(&File{Data: data, Meta: meta, Library: o.library, Options: o.sessionOptions})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", backend, err)
	}
	divided, err := o.divide(pb, meta.InputShape, e, session, len(data))
	if err != nil {
		session.Close()
		return nil, err
	}
	return &openFile{
		chunked: divided, options: o, info: Info{*meta, meta.ContractHash(), backend, pb.Opset()},
		batch: meta.Contract == contract.ContractBatch, session: session,
		estimate: e, small: e.UpTo(smallRun, math.MaxInt64, o.maxInstances), brief: e.UpTo(math.MaxInt64, briefWork,
			o.maxInstances),
	}, nil
}

// Info returns a copy of the model's metadata, empty for a zero Model.
func (m *Model) Info() Info {
	var i Info
	if f := m.loaded(); f != nil {
		text, _ := json.Marshal(f.info) // without an error, because it was read from JSON
		_ = json.Unmarshal(text, &i)
	}
	return i
}
