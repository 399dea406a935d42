// The command miplc export.

package cli

import (
	"cmp"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/miplc/miplc/cmd/miplc/internal/console"
	"github.com/miplc/miplc/export"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/runs"
)

// exportOptions are the options of the command.
type exportOptions struct {
	Console *console.Console
	Model   string
	Name    string
	Triton  string
	KServe  string
	Storage string
	Docker  string
	Force   bool
}

// exportCommand returns the command.
func exportCommand(con *console.Console) *cobra.Command {
	o := &exportOptions{Console: con}
	cmd := &cobra.Command{
		Use:   "export MODEL",
		Short: "Write Dockerfiles, a Triton repository or a KServe manifest",
		Long: `Write files to deploy a model: Dockerfiles, a repository for Triton, or a manifest for
KServe. MODEL is a model file or the folder of a run. Several
options may be combined. docs/deploy.md shows how to run the results.

  --triton DIR    a model repository for Triton: DIR/NAME with config.pbtxt, labels.txt
                  and 1/model.onnx. A request is one bag. Triton joins requests only for
                  models with the signature "batch" (train them with
                  --set export.signature=batch).
  --kserve FILE   the manifest of an InferenceService for that repository
  --docker DIR    Dockerfile (miplc serve with the model) and service.Dockerfile (for
                  your own Go service), with the pinned onnxruntime, without root and
                  with a health check

If a file exists and --force is not given, the command writes nothing and exits with code 1.`,
		Example: `  miplc export run --triton repository --kserve inferenceservice.yaml
  miplc export run/model.onnx --docker image && docker build -t my-model image`,
		Args: console.Args(console.Arg("MODEL", &o.Model)),
		RunE: func(*cobra.Command, []string) error { return runExport(o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.Name, "name", "", "name of the model in Triton and KServe (default: the name of its spec)")
	f.StringVar(&o.Triton, "triton", "", "model repository to write for Triton")
	f.StringVar(&o.KServe, "kserve", "", "manifest to write for KServe")
	f.StringVar(&o.Storage, "storage", "pvc://models/repository", "location of the model repository in the cluster, "+
		"for --kserve")
	f.StringVar(&o.Docker, "docker", "", "folder for the Dockerfiles")
	f.BoolVar(&o.Force, "force", false, "overwrite existing output files")
	return cmd
}

// exportResult is the output of the command.
type exportResult struct {
	Name  string   `json:"name"`
	Files []string `json:"files"`
}

func runExport(o *exportOptions) error {
	if o.Triton == "" && o.KServe == "" && o.Docker == "" {
		return console.Usagef("miplc export: one of --triton, --kserve and --docker is missing")
	}
	path, err := findModel(o.Model)
	if err != nil {
		return err
	}
	m, err := export.DeployRead(path, o.Name)
	if err != nil {
		return err
	}
	r := exportResult{Name: m.Name}
	var files []export.File
	for _, output := range []struct {
		wanted bool
		files  func() ([]export.File, error)
	}{
		{o.Triton != "", func() ([]export.File, error) { return m.Triton(o.Triton) }},
		{o.KServe != "", func() ([]export.File, error) { return m.KServe(o.KServe, o.Storage) }},
		{o.Docker != "", func() ([]export.File, error) { return m.Docker(o.Docker, releaseOf(runs.CurrentBuild())) }},
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
	if err := m.Write(files, o.Force); err != nil {
		return err
	}
	for _, f := range files {
		r.Files = append(r.Files, f.Path)
	}
	return o.Console.Result(r, r.print)
}

// print lists the files.
func (r *exportResult) print(w io.Writer) error {
	for _, f := range r.Files {
		diag.Fprintf(w, "%s\n", filepath.Clean(f))
	}
	return nil
}

// releaseOf returns the version of miplc for go install: the commit of the build, or the release.
func releaseOf(v runs.BuildInfo) string { return cmp.Or(v.Commit, "v"+runs.Version) }
