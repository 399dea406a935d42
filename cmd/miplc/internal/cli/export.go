// The command miplc export.

package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/miplc/miplc/cmd/miplc/internal/console"
	"github.com/miplc/miplc/export"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/onnxruntime"
	"github.com/miplc/miplc/runs"
)

// exportOptions are the options of the command.
type exportOptions struct {
	Console *console.Console
	Model   string
	Name    string
	Triton  string
	Docker  string
	Local   bool // copy this program into the image
	Force   bool
}

// exportCommand returns the command.
func exportCommand(con *console.Console) *cobra.Command {
	o := &exportOptions{Console: con}
	cmd := &cobra.Command{
		Use:   "export MODEL",
		Short: "Write Dockerfiles or a model repository for Triton",
		Long: `Write files to deploy a model: Dockerfiles, or a repository for Triton (also for KServe).
MODEL is a model file or the folder of a run. Both
options may be combined. docs/deploy.md shows how to run the results.

  --triton DIR    a model repository for Triton: DIR/NAME with config.pbtxt, labels.txt
                  and 1/model.onnx. A request is one bag. Triton joins requests only for
                  models with the signature "batch" (train them with
                  --set export.signature=batch).
  --docker DIR    Dockerfile (miplc serve with the model) and service.Dockerfile (for
                  your own Go service), with the pinned onnxruntime, without root and
                  with a health check. docker build downloads a published miplc. With
                  --docker-local, the folder contains this program and its onnxruntime, so
                  that docker build needs only the base image

If a file exists and --force is not given, the command writes nothing and exits with code 1.`,
		Example: `  miplc export run --triton repository
  miplc export run/model.onnx --docker image && docker build -t my-model image`,
		Args: console.Args(console.Arg("MODEL", &o.Model)),
		RunE: func(*cobra.Command, []string) error { return runExport(o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.Name, "name", "", "name of the model in Triton (default: the name of its spec)")
	f.StringVar(&o.Triton, "triton", "", "model repository to write for Triton")
	f.StringVar(&o.Docker, "docker", "", "folder for the Dockerfiles")
	f.BoolVar(&o.Local, "docker-local", false, "with --docker: copy this program and its onnxruntime into the folder")
	f.BoolVar(&o.Force, "force", false, "overwrite existing output files")
	return cmd
}

func runExport(o *exportOptions) error {
	if o.Triton == "" && o.Docker == "" {
		return console.Usagef("miplc export: --triton or --docker is missing")
	}
	if o.Local && o.Docker == "" {
		return console.Usagef("--docker-local needs --docker, the folder for the files")
	}
	path, err := findModel(o.Model)
	if err != nil {
		return err
	}
	m, err := export.DeployRead(path, o.Name)
	if err != nil {
		return err
	}
	var files []export.File
	add := func(list []export.File, failed error) {
		files, err = append(files, list...), errors.Join(err, failed)
	}
	if o.Triton != "" {
		add(m.Triton(o.Triton))
	}
	if o.Docker != "" {
		source, failed := o.dockerSource()
		if failed != nil {
			return failed
		}
		add(m.Docker(o.Docker, source))
	}
	if err == nil {
		err = m.Write(files, o.Force)
	}
	if err != nil {
		return err
	}
	paths := make([]string, len(files))
	for i, f := range files {
		paths[i] = f.Path
	}
	return o.Console.Result(map[string]any{"name": m.Name, "files": paths}, func(w io.Writer) {
		for _, path := range paths {
			diag.Fprintf(w, "%s\n", filepath.Clean(path))
		}
	})
}

// dockerSource returns where the image gets miplc and onnxruntime.
func (o *exportOptions) dockerSource() (export.DockerSource, error) {
	if !o.Local { // go install takes a commit or a release
		return export.DockerSource{Version: cmp.Or(runs.CurrentBuild().Commit, "v"+runs.Version)}, nil
	}
	if runtime.GOOS != "linux" {
		return export.DockerSource{}, fmt.Errorf("--docker-local copies this program, which is for %s, but images need one "+
			"for Linux: run miplc export on Linux, or leave the flag out", runtime.GOOS)
	}
	program, err := os.Executable()
	if err != nil {
		return export.DockerSource{}, err
	}
	library, err := onnxruntime.FindLibrary("")
	return export.DockerSource{Program: program, Library: library.Path}, err
}
