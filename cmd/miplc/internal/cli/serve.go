// The command miplc serve.

package cli

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	goruntime "runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/miplc/miplc/cmd/miplc/internal/console"
	"github.com/miplc/miplc/data/bagfile"
	"github.com/miplc/miplc/internal/contract"
	"github.com/miplc/miplc/internal/resources"
	"github.com/miplc/miplc/runs"
	"github.com/miplc/miplc/runs/prepare"
	"github.com/miplc/miplc/runtime"
	"github.com/miplc/miplc/runtime/serve"
)

// serveOptions are the options of the command.
type serveOptions struct {
	Console    *console.Console
	Models     string
	HTTP       string
	GRPC       string
	Admin      string
	TLSCert    string
	TLSKey     string
	TokenFiles []string
	Bags       string
	Columns    bagfile.Columns // of Bags
	Hosts      []string
	Serve      serve.Config
	backendFlags
}

const serveHelp = `Serve models over HTTP and gRPC. POST /predict takes one bag as JSON, {"instances":
[[...], ...]}, and returns its label, the class probabilities and the attention scores.
Paths below /v2 and gRPC speak the Open Inference Protocol v2. /openapi.json describes
all paths, /metrics is for Prometheus, and / is a page for trying bags.

MODELS is a model file, the folder of a run, or a folder of models, each as NAME.onnx,
NAME/model.onnx or, with version numbers, NAME/1/model.onnx. Requests without a version
get the newest one. New and changed files are loaded while the server runs.

The server logs models that cannot be loaded and serves the others. If no model loads,
or with --strict if one does not load, it exits with code 1. A wrong request gets an HTTP
status from 400 to 499 and {"error": "..."}; 503 means that the server is busy.

On SIGTERM or Ctrl-C the server reports not ready, keeps serving for --lame-duck, then
stops accepting connections, finishes the requests in flight and exits with code 0.
docs/serving.md describes requests, limits, security and metrics.`

// serveCommand returns the command.
func serveCommand(con *console.Console) *cobra.Command {
	o := &serveOptions{Console: con, Serve: serve.Config{Version: runs.CurrentBuild().Miplc, MaxRequestBytes: 64 << 20,
		RequestMemory: 256 << 20, RunMemory: 512 << 20}}
	cmd := &cobra.Command{
		Use:        "serve MODELS",
		SuggestFor: []string{"server", "api", "deploy"},
		Short:      "Serve models over HTTP and gRPC",
		Long:       serveHelp,
		Example: `  miplc serve quickstart-run
  miplc serve models --http :8080 --grpc :8081 --timeout 5s
  curl --json @bag.json localhost:8080/predict`,
		Args: console.Args(console.Arg("MODELS", &o.Models)),
		RunE: func(cmd *cobra.Command, _ []string) error { return runServe(cmd.Context(), o) },
	}
	o.flags(cmd.Flags())
	o.backendFlags.Add(cmd)
	return cmd
}

// Bounds of flags that create goroutines or memory for each unit.
const (
	maxParallel = 256
	maxBatch    = 4096
	maxWaiting  = 1 << 20
)

// memoryPerRequest is the minimum ratio of the memory of all requests to the maximum size of one:
// decoding JSON needs three times its size, and small requests have a reserved share.
const memoryPerRequest = 4

func (o *serveOptions) flags(f *pflag.FlagSet) {
	f.StringVar(&o.HTTP, "http", "127.0.0.1:8080", "address for HTTP; :8080 accepts connections from other machines")
	f.StringVar(&o.GRPC, "grpc", "127.0.0.1:8081", "address for gRPC; empty disables it")
	f.StringVar(&o.Admin, "admin", "", "address for health and metrics over HTTP, without token and TLS (default: none)")
	f.StringVar(&o.TLSCert, "tls-cert", "", "PEM file of the TLS certificate, reloaded when it changes (default: no TLS)")
	f.StringVar(&o.TLSKey, "tls-key", "", "PEM file of the TLS key")
	f.StringArrayVar(&o.TokenFiles, "token-file", nil, "file with a bearer token that requests must send, except "+
		"health probes and the page; reloaded when it changes (repeatable; default: no token)")
	f.StringSliceVar(&o.Hosts, "allowed-hosts", nil, "host names that HTTP requests may use, separated by commas; * "+
		"allows any (default: localhost, 127.0.0.1, ::1 and the host of --http if that is a loopback address, else any)")
	f.StringVar(&o.Bags, "bags", "", "dataset whose bags the page at / offers")
	console.ColumnFlags(f, &o.Columns)
	f.IntVar(&o.Serve.Batching.MaxBags, "batch", 32, fmt.Sprintf("number of bags per run, for models with the "+
		"signature batch, up to %d", maxBatch))
	console.Duration(f, &o.Serve.Batching.Delay, "batch-delay", 0, 0, "maximum time that a run waits for more bags")
	f.IntVar(&o.Serve.Batching.Runs, "parallel", goruntime.GOMAXPROCS(0),
		fmt.Sprintf("number of concurrent runs per model, up to %d", maxParallel))
	f.IntVar(&o.Serve.Batching.MaxWaiting, "waiting", 1024, fmt.Sprintf("number of requests in the queue of a model, "+
		"up to %d; further ones are rejected", maxWaiting))
	console.Bytes(f, &o.Serve.MaxRequestBytes, "max-bytes", "maximum size of a request, e.g. 500kB (default 64MiB)")
	console.Bytes(f, &o.Serve.RequestMemory, "max-held", "memory for all requests in flight, decoded, at least 4 x "+
		"--max-bytes; further requests wait, then are rejected (default 256MiB)")
	console.Bytes(f, &o.Serve.RunMemory, "max-run-memory", "memory for all concurrent runs of models; a bag that needs "+
		"more is rejected, others wait (default 512MiB)")
	f.IntVar(&o.Serve.MaxInstances, "max-instances", 100_000, "maximum number of instances per request")
	f.IntVar(&o.Serve.MaxConnections, "max-connections", 1024, "maximum number of connections, for HTTP and for gRPC; "+
		"at the limit, idle ones are closed and further ones wait")
	console.Limit(f, 1, maxParallel, "parallel")
	console.Limit(f, 1, maxBatch, "batch")
	console.Limit(f, 1, maxWaiting, "waiting")
	console.Limit(f, 1, console.Most, "max-instances", "max-connections")
	console.Duration(f, &o.Serve.Timeout, "timeout", 10*time.Second, time.Millisecond,
		"timeout for receiving a request and predicting; the answer must be sent within three times this time")
	console.Duration(f, &o.Serve.Reload, "reload", 5*time.Second, 0,
		"interval at which MODELS is checked for new and changed models; 0 disables it")
	f.BoolVar(&o.Serve.Strict, "strict", false, "exit at startup unless all models load")
	console.Duration(f, &o.Serve.LameDuck, "lame-duck", time.Second, 0,
		"time after SIGTERM during which requests are still accepted")
}

// idleHeap is allocated and never used. The garbage collector starts when the heap has doubled.
// Without this memory the heap is so small that the collector ran forty times a second, and every
// request waited for it.
const idleHeap = 32 << 20

// heapReserve is the heap for everything except the memory of requests: idleHeap, connection
// buffers, inputs of runs.
const heapReserve = 128 << 20

// tune adds a Go thread for each concurrent run of a model: a thread inside onnxruntime counts as one of Go's, and
// requests would not be read until it returned. It makes Go collect garbage before the heap exceeds the memory for
// requests, which could otherwise grow to twice that. Values set in the environment are kept.
func (o *serveOptions) tune() {
	if os.Getenv("GOMAXPROCS") == "" {
		goruntime.GOMAXPROCS(goruntime.GOMAXPROCS(0) + o.Serve.Batching.Runs)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(o.Serve.RequestMemory + heapReserve)
	}
}

// runServe serves until the context ends.
func runServe(ctx context.Context, o *serveOptions) error {
	defer goruntime.KeepAlive(make([]byte, idleHeap))
	o.Serve.Decoders = max(1, goruntime.GOMAXPROCS(0)-1) // one core stays for probes and small requests
	o.tune()
	o.Serve.Log = slog.New(slog.NewTextHandler(o.Console.Err, nil))
	o.Serve.Drain = o.Serve.Timeout + time.Second
	if err := o.check(); err != nil {
		return err
	}
	if err := o.examples(ctx); err != nil {
		return err
	}
	open := func(path string) (*runtime.Model, error) {
		// Without WithLargeBags, each model would keep the memory of its largest run.
		return o.Open(path, runtime.WithMaxInstances(o.Serve.MaxInstances), runtime.WithMaxMemory(o.Serve.RunMemory),
			runtime.WithLargeBags())
	}
	server, err := serve.New(o.Models, open, o.Serve)
	if err != nil {
		return err
	}
	defer server.Close()
	r := serveResult{Models: server.Models()}
	on, err := o.listen(&r)
	if err != nil {
		return err
	}
	o.Console.AllowAfterSignal(o.Serve.LameDuck+o.Serve.Drain+time.Second, console.ExitFailed)
	o.Serve.Log.Info("serving", r.addresses()...)
	if err := server.Serve(ctx, on); err != nil {
		return err
	}
	return o.Console.Resultf(r, "stopped: all accepted requests are answered\n")
}

// addresses returns the models and the addresses in use, as attributes of the log.
func (r *serveResult) addresses() []any {
	list := []any{"models", strings.Join(r.Models, ","), "http", r.HTTP}
	if r.GRPC != "" {
		list = append(list, "grpc", r.GRPC)
	}
	if r.Admin != "" { // with health and metrics
		list = append(list, "admin", r.Admin)
	}
	return list
}

// listen opens the addresses of the flags and adds them to the result. After an error, the process ends.
func (o *serveOptions) listen(r *serveResult) (on serve.Listeners, err error) {
	for _, l := range []struct {
		flag, address string
		to            *net.Listener
		at            *string
	}{{"http", o.HTTP, &on.HTTP, &r.HTTP}, {"grpc", o.GRPC, &on.GRPC, &r.GRPC}, {"admin", o.Admin, &on.Admin, &r.Admin}} {
		if l.address == "" {
			continue
		}
		if *l.to, err = net.Listen("tcp", l.address); err != nil {
			return on, fmt.Errorf("--%s %s: %w", l.flag, l.address, err)
		}
		*l.at = (*l.to).Addr().String()
	}
	return on, nil
}

// check checks combinations of flags and reads the certificate and the tokens.
func (o *serveOptions) check() (err error) {
	if (o.TLSCert == "") != (o.TLSKey == "") {
		return console.Usagef("--tls-cert and --tls-key need each other: give both or neither")
	}
	if o.HTTP == "" {
		return console.Usagef("--http needs an address, such as 127.0.0.1:8080; :8080 is that of all networks")
	}
	if o.Serve.RequestMemory/memoryPerRequest < o.Serve.MaxRequestBytes {
		return console.Usagef("--max-held must be at least %d times --max-bytes (%s): decoding one request needs that",
			memoryPerRequest, resources.Bytes(float64(o.Serve.MaxRequestBytes)))
	}
	if o.Serve.Hosts = o.Hosts; len(o.Hosts) == 0 {
		o.Serve.Hosts = serve.LocalHosts(o.HTTP)
	}
	if o.TLSCert != "" {
		if o.Serve.TLS, err = serve.TLS(o.TLSCert, o.TLSKey, o.Serve.Log); err != nil {
			return err
		}
	}
	if len(o.TokenFiles) > 0 {
		if o.Serve.Tokens, err = serve.ReadTokens(o.TokenFiles); err != nil {
			return fmt.Errorf("--token-file: %w", err)
		}
	}
	return nil
}

// examples reads the bags that the web page shows.
func (o *serveOptions) examples(ctx context.Context) error {
	if o.Bags == "" {
		return nil
	}
	// For a folder of models, feature names are checked when the models are open. Then there are
	// no classes, but not nil: the bags need no candidates.
	meta := &contract.Metadata{Classes: []string{}}
	if _, found, err := contract.Read(modelPath(o.Models)); err == nil {
		meta = found
	}
	set, err := prepare.OpenForModel(ctx, meta, []string{o.Bags}, bagfile.Reading{Columns: o.Columns})
	if err != nil {
		return err
	}
	o.Serve.Features = set.FeatureNames
	for i := range set.Bags() {
		x, err := set.Bag(i)
		if err != nil {
			return err
		}
		e := serve.Example{Instances: x, N: set.Size(i), Coords: set.CoordsOf(i)}
		e.Class = strings.Join(set.TrueNames(i), " ")
		o.Serve.Examples = append(o.Serve.Examples, e)
	}
	return nil
}

// serveResult is the output of the command when it ends.
type serveResult struct {
	Models []string `json:"models"`
	HTTP   string   `json:"http"`
	GRPC   string   `json:"grpc,omitempty"`
	Admin  string   `json:"admin,omitempty"`
}
