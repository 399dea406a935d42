// Package export is the command miplc export.
package export

import (
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/miplc/miplc/cmd/miplc/internal/backend"
	"github.com/miplc/miplc/cmd/miplc/internal/console"
	"github.com/miplc/miplc/cmd/miplc/internal/version"
	"github.com/miplc/miplc/deploy"
	"github.com/miplc/miplc/internal/plain"
)

// options are the settings of the command.
type options struct {
	Console *console.Console
	Model   string
	Name    string
	Triton  string
	KServe  string
	Storage string
	Docker  string
	Force   bool
}

// Command makes the command.
func Command(con *console.Console) *cobra.Command {
	o := &options{Console: con}
	cmd := &cobra.Command{
		Use:   "export MODEL",
		Short: "Write what other servers need to serve a model",
		Long: `Write what other servers need to serve a model, a model file or the folder of a run:

  --triton DIR   a model repository of Triton: DIR/NAME with config.pbtxt, labels.txt
                 and 1/model.onnx. A request holds one bag. A model that was exported
                 with the signature "batch" is batched dynamically, whatever the sizes
                 of the bags; one of the signature "bag" is run for each request.
  --kserve FILE  the manifest of an InferenceService for such a repository
  --docker DIR   Dockerfile, which runs miplc serve with the model, service.Dockerfile
                 for a Go service of yours, and the model: built in stages, without
                 root, with the pinned onnxruntime library and a health check`,
		Example: `  miplc export run --triton repository --kserve inferenceservice.yaml
  miplc export run/model.onnx --docker image && docker build image`,
		Args: console.Args("MODEL"),
		RunE: func(_ *cobra.Command, args []string) error {
			o.Model = args[0]
			return run(o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Name, "name", "", "name of the model there (default that of its spec)")
	f.StringVar(&o.Triton, "triton", "", "model repository to write the model into")
	f.StringVar(&o.KServe, "kserve", "", "manifest to write")
	f.StringVar(&o.Storage, "storage", "pvc://models/repository", "where the manifest finds the repository")
	f.StringVar(&o.Docker, "docker", "", "folder to write Dockerfiles into")
	f.BoolVar(&o.Force, "force", false, "replace files that are there")
	return cmd
}

// result is what the command prints.
type result struct {
	Name  string   `json:"name"`
	Files []string `json:"files"`
}

func run(o *options) error {
	if o.Triton == "" && o.KServe == "" && o.Docker == "" {
		return console.Usagef("miplc export: one of --triton, --kserve and --docker is missing")
	}
	m, err := deploy.Read(backend.ModelPath(o.Model), o.Name)
	if err != nil {
		return err
	}
	r := result{Name: m.Name}
	for _, part := range []struct {
		to    string
		write func(to string) ([]string, error)
	}{
		{o.Triton, func(dir string) ([]string, error) { return m.Triton(dir, o.Force) }},
		{o.KServe, func(path string) ([]string, error) { return m.KServe(path, o.Storage, o.Force) }},
		{o.Docker, func(dir string) ([]string, error) { return m.Docker(dir, release(version.Current()), o.Force) }},
	} {
		if part.to == "" {
			continue
		}
		files, err := part.write(part.to)
		if err != nil {
			return err
		}
		r.Files = append(r.Files, files...)
	}
	return o.Console.Result(r, func(w io.Writer) error {
		for _, f := range r.Files {
			plain.Fprintf(w, "%s\n", filepath.Clean(f))
		}
		return nil
	})
}

// release is the version of miplc that go install finds: this one where it has a tag
// or a commit.
func release(v version.Info) string {
	switch {
	case v.Miplc != "(devel)":
		return v.Miplc
	case v.Commit != "":
		return v.Commit
	}
	return "latest"
}
