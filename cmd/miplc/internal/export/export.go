// Package export is the command miplc export.
package export

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/miplc/miplc/cmd/miplc/internal/backend"
	"github.com/miplc/miplc/cmd/miplc/internal/console"
	"github.com/miplc/miplc/data/bagfile"
	"github.com/miplc/miplc/deploy"
	"github.com/miplc/miplc/internal/buildinfo"
	"github.com/miplc/miplc/internal/sanitize"
)

// options are the options of the command.
type options struct {
	Console *console.Console
	Model   string
	Name    string
	Triton  string
	KServe  string
	Storage string
	Docker  string
	Float16 string
	Int8    string
	Data    string
	MaxLoss float64
	Reading bagfile.Options
	Library string
	Force   bool
}

// Command returns the command.
func Command(con *console.Console) *cobra.Command {
	o := &options{Console: con}
	cmd := &cobra.Command{
		Use:   "export MODEL",
		Short: "Write Dockerfiles, a Triton repository, a KServe manifest or smaller models",
		Long: `Write files to deploy a model: Dockerfiles, a repository for Triton, a manifest for
KServe, or a smaller model file. MODEL is a model file or the folder of a run. Several
options may be combined. docs/deploy.md shows how to run the results.

  --triton DIR    a model repository for Triton: DIR/NAME with config.pbtxt, labels.txt
                  and 1/model.onnx. A request is one bag. Triton joins requests only for
                  models with the signature "batch" (train them with
                  --set export.signature=batch).
  --kserve FILE   the manifest of an InferenceService for that repository
  --docker DIR    Dockerfile (miplc serve with the model) and service.Dockerfile (for
                  your own Go service), with the pinned onnxruntime, without root and
                  with a health check
  --float16 FILE  a model with parameters in half precision; it computes in single
                  precision
  --int8 FILE     a model with matrix products in 8-bit integers; needs the signature
                  "bag"

--float16 and --int8 need --data. miplc measures accuracy, size and latency on the bags
with known labels. A large model shrinks to about a half with --float16 and a quarter with
--int8; a model of a few kilobytes may grow.

If a file exists and --force is not given, or if the accuracy falls by more than --max-loss,
the command writes nothing and exits with code 1.`,
		Example: `  miplc export run --triton repository --kserve inferenceservice.yaml
  miplc export run/model.onnx --docker image && docker build -t my-model image
  miplc export run --float16 half.onnx --int8 int8.onnx --data bags.npz`,
		Args: console.Args(console.Arg("MODEL", &o.Model)),
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.Name, "name", "", "name of the model in Triton and KServe (default: the name of its spec)")
	f.StringVar(&o.Triton, "triton", "", "model repository to write for Triton")
	f.StringVar(&o.KServe, "kserve", "", "manifest to write for KServe")
	f.StringVar(&o.Storage, "storage", "pvc://models/repository", "location of the model repository in the cluster, for --kserve")
	f.StringVar(&o.Docker, "docker", "", "folder for the Dockerfiles")
	f.StringVar(&o.Float16, "float16", "", "half-precision model file to write")
	f.StringVar(&o.Int8, "int8", "", "8-bit model file to write")
	f.StringVar(&o.Data, "data", "", "dataset for measuring --float16 and --int8")
	f.Float64Var(&o.MaxLoss, "max-loss", 0.01, "maximum loss of accuracy of a smaller model, from 0 to 1")
	console.LibraryFlag(f, &o.Library)
	console.ReadingFlags(f, &o.Reading)
	console.Limit(f, 0, 1, "max-loss")
	f.BoolVar(&o.Force, "force", false, "overwrite existing output files")
	return cmd
}

// result is the output of the command.
type result struct {
	Name   string           `json:"name"`
	Files  []string         `json:"files"`
	Models []deploy.Measure `json:"models,omitempty"` // the original model, then smaller ones
}

func run(ctx context.Context, o *options) error {
	smaller := o.Float16 != "" || o.Int8 != ""
	switch {
	case o.Triton == "" && o.KServe == "" && o.Docker == "" && !smaller:
		return console.Usagef("miplc export: one of --triton, --kserve, --docker, --float16 and --int8 is missing")
	case smaller && o.Data == "":
		return console.Usagef("miplc export: --data is missing: smaller models are measured on bags whose label is known")
	}
	path, err := backend.FindModel(o.Model)
	if err != nil {
		return err
	}
	m, err := deploy.Read(path, o.Name)
	if err != nil {
		return err
	}
	r := result{Name: m.Name}
	var files []deploy.File
	for _, output := range []struct {
		wanted bool
		files  func() ([]deploy.File, error)
	}{
		{o.Triton != "", func() ([]deploy.File, error) { return m.Triton(o.Triton) }},
		{o.KServe != "", func() ([]deploy.File, error) { return m.KServe(o.KServe, o.Storage) }},
		{o.Docker != "", func() ([]deploy.File, error) { return m.Docker(o.Docker, release(buildinfo.Current())) }},
		{smaller, func() (list []deploy.File, err error) {
			r.Models, list, err = o.compact(ctx, m)
			return list, err
		}},
	} {
		if !output.wanted {
			continue
		}
		list, err := output.files()
		if err != nil {
			return err
		}
		files = append(files, list...)
	}
	if err := m.Write(files, o.Force, o.Data, o.Library); err != nil {
		return err
	}
	for _, f := range files {
		r.Files = append(r.Files, f.Path)
	}
	return o.Console.Result(r, r.print)
}

// compact makes smaller models and measures them.
func (o *options) compact(ctx context.Context, m *deploy.Deployment) ([]deploy.Measure, []deploy.File, error) {
	if err := backend.EnsureLibrary(ctx, o.Console, o.Library, true); err != nil {
		return nil, nil, err
	}
	if m.Meta.Encoder != nil {
		return nil, nil, errors.New("--float16 and --int8 do not support a model that contains an encoder: train with data.encoder.export: model, and give --data the features")
	}
	bags, err := backend.OpenData(ctx, []string{o.Data}, o.Reading, m.Meta)
	if err != nil {
		return nil, nil, err
	}
	return m.Compact(ctx, deploy.CompactOptions{
		Paths: map[string]string{"float16": o.Float16, "int8": o.Int8},
		Bags:  bags, MaxLoss: o.MaxLoss, Library: o.Library,
	})
}

// print lists the files, and a line for each measured model.
func (r *result) print(w io.Writer) error {
	for _, f := range r.Files {
		sanitize.Fprintf(w, "%s\n", filepath.Clean(f))
	}
	if len(r.Models) == 0 {
		return nil
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "precision\taccuracy\tsame class\tlargest difference\tbytes\tmedian latency")
	for _, made := range r.Models {
		fmt.Fprintf(t, "%s\t%.4f\t%.4f\t%.1e\t%d\t%.0f µs\n", made.Precision, made.Accuracy, made.Agreement, made.Largest, made.Bytes, made.Median)
	}
	return t.Flush()
}

// release returns the version of miplc for go install: the current one if it has a tag or a commit.
func release(v buildinfo.Info) string {
	switch {
	case v.Miplc != "(devel)":
		return v.Miplc
	case v.Commit != "":
		return v.Commit
	}
	return "latest"
}
