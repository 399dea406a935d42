// Package gen is the command miplc gen.
package gen

import (
	"bytes"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/miplc/miplc/cmd/miplc/internal/backend"
	"github.com/miplc/miplc/cmd/miplc/internal/console"
	"github.com/miplc/miplc/export/goclient"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/fileio"
)

// Command returns the command.
func Command(con *console.Console) *cobra.Command {
	cmd := &cobra.Command{
		Use:        "gen",
		SuggestFor: []string{"generate", "codegen"},
		Short:      "Generate Go code for a model",
		Long:       "Generate Go code for a model: miplc gen go writes a package with a typed function for\npredictions.",
		Example:    "  miplc gen go run/model.onnx -o internal/birds",
	}
	console.Group(con, cmd)
	cmd.AddCommand(goCommand(con))
	return cmd
}

// options are the settings of miplc gen go.
type options struct {
	Console *console.Console
	Model   string
	Dir     string
	Package string
	Force   bool
}

func goCommand(con *console.Console) *cobra.Command {
	o := &options{Console: con}
	cmd := &cobra.Command{
		Use:   "go MODEL -o DIR",
		Short: "Generate a typed Go package for a model",
		Long: `Generate a Go package for predictions with one model. Its classes are constants and an
instance is a type, so code with wrong shapes does not compile. The package returns an
error for model files with another signature, instance shape or class list. It accepts a
retrained model with the same classes.

MODEL is a model file or a folder with a model.onnx. The command writes one
file to DIR and replaces a file that it generated before.`,
		Example: `  miplc gen go run/model.onnx -o internal/birds
  miplc gen go run -o internal/birds --package birds`,
		Args: console.Args(console.Arg("MODEL", &o.Model)),
		RunE: func(*cobra.Command, []string) error { return runGo(o) },
	}
	f := cmd.Flags()
	f.StringVarP(&o.Dir, "output", "o", "", "folder of the package (required)")
	f.StringVar(&o.Package, "package", "", "name of the package (default: the name of the folder)")
	f.BoolVar(&o.Force, "force", false, "overwrite a file that miplc did not generate")
	return cmd
}

// result is what miplc gen go prints.
type result struct {
	File           string `json:"file"`
	Package        string `json:"package"`
	ContractSHA256 string `json:"contract_sha256"`
}

func runGo(o *options) error {
	if o.Dir == "" {
		return console.Usagef("miplc gen go: -o DIR is missing: the folder for the package")
	}
	var err error
	if o.Model, err = backend.FindModel(o.Model); err != nil {
		return err
	}
	m, err := goclient.Read(o.Model)
	if err != nil {
		return err
	}
	if o.Package == "" {
		if o.Package, err = goclient.PackageOf(o.Dir); err != nil {
			return err
		}
	}
	source, err := m.Generate(o.Package)
	if err != nil {
		return console.Usagef("--package: %v", err)
	}
	file := filepath.Join(o.Dir, o.Package+".go")
	if old, err := fileio.Read(file); err == nil && bytes.HasPrefix(old, []byte(goclient.Header)) {
		o.Force = true
	}
	if err := goclient.CheckFolder(o.Dir, o.Package); err != nil {
		return err
	}
	if err := fileio.Write(file, source, fileio.WriteOptions{Force: o.Force, Inputs: []string{o.Model}}); err != nil {
		return err
	}
	r := result{File: file, Package: o.Package, ContractSHA256: m.Meta.Hash()}
	return o.Console.Resultf(r, "%s: package %s, %s, instances of %v, contract %s\n", r.File, r.Package, diag.Count(len(m.Meta.Classes), "class"), m.Meta.InputShape, r.ContractSHA256[:12])
}
