// Package serve is the command miplc serve.
package serve

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/miplc/miplc/cmd/miplc/internal/backend"
	"github.com/miplc/miplc/cmd/miplc/internal/console"
	"github.com/miplc/miplc/cmd/miplc/internal/version"
	"github.com/miplc/miplc/serve"
)

// options are the settings of the command.
type options struct {
	Console *console.Console
	Models  string
	HTTP    string
	Batch   serve.Batching
	Serve   serve.Options
	backend.Flags
}

// Command makes the command.
func Command(con *console.Console) *cobra.Command {
	o := &options{Console: con, Serve: serve.Options{Version: version.Current().Miplc, Bytes: 64 << 20}}
	cmd := &cobra.Command{
		Use:   "serve MODELS",
		Short: "Answer for models over HTTP",
		Long: `Answer for models over HTTP: the Open Inference Protocol v2 below /v2, and /predict,
which takes one bag as JSON, {"instances": [[...], ...]}, and returns its label,
probabilities and attention.

MODELS is a model.onnx, the folder of a run, or a folder of models, each as NAME.onnx,
NAME/model.onnx or, with numbers as versions, NAME/1/model.onnx. The newest version
answers where a request names none.

Several bags are predicted in one run where a model was exported with the signature
"batch"; a model of the signature "bag" predicts them one by one.

SIGTERM ends it: it says that it is not ready, goes on for --lame-duck, takes no more
connections and answers what it has taken.`,
		Example: `  miplc serve quickstart-run
  miplc serve models --http :8080 --timeout 5s
  curl -d '{"instances": [[0.5, 1], [2, 3]]}' localhost:8080/predict`,
		Args: console.Args("MODELS"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Models = args[0]
			return run(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.HTTP, "http", "127.0.0.1:8080", "address of HTTP")
	f.IntVar(&o.Batch.Bags, "batch", 32, "most bags of one run; 1 predicts each by itself")
	console.Duration(f, &o.Batch.Delay, "batch-delay", 0, 0, "most time that a bag waits for others when it could be run")
	f.IntVar(&o.Batch.Parallel, "parallel", runtime.GOMAXPROCS(0), "runs of a model side by side")
	f.IntVar(&o.Batch.Waiting, "waiting", 1024, "most requests that wait for a model; more are refused")
	console.Bytes(f, &o.Serve.Bytes, "max-bytes", "most bytes of a request, such as 500kB or 1GiB (default 64MiB)")
	f.IntVar(&o.Serve.Instances, "max-instances", 100_000, "most instances of a request")
	console.Limit(f, 1, console.Most, "batch", "parallel", "waiting", "max-instances")
	console.Duration(f, &o.Serve.Timeout, "timeout", 10*time.Second, time.Millisecond, "most time for a request to arrive, to be predicted, and to be taken")
	console.Duration(f, &o.Serve.Reload, "reload", 5*time.Second, 0, "how often MODELS is looked at for new and changed models; 0: never")
	console.Duration(f, &o.Serve.LameDuck, "lame-duck", time.Second, 0, "how long requests are still taken after SIGTERM")
	o.Flags.Add(cmd)
	return cmd
}

// run serves until the context ends.
func run(ctx context.Context, o *options) error {
	o.Serve.Log = slog.New(slog.NewTextHandler(o.Console.Err, nil))
	o.Serve.Drain = o.Serve.Timeout + time.Second
	models, err := serve.OpenModels(o.Models, o.Open, o.Batch)
	if err != nil {
		return err
	}
	defer models.Close()
	listener, err := net.Listen("tcp", o.HTTP)
	if err != nil {
		return err
	}
	o.Console.Keep(o.Serve.LameDuck + o.Serve.Drain + time.Second)
	o.Console.Notef("serving %s on http://%s", strings.Join(models.Names(), ", "), listener.Addr())
	if err := serve.New(models, o.Serve).Serve(ctx, listener); err != nil {
		return err
	}
	r := result{Models: models.Names(), HTTP: listener.Addr().String()}
	return o.Console.Result(r, r.print)
}

// result is what the command prints when it has ended.
type result struct {
	Models []string `json:"models"`
	HTTP   string   `json:"http"`
}

func (r result) print(w io.Writer) error {
	_, err := fmt.Fprintln(w, "ended: all requests that were taken are answered")
	return err
}
