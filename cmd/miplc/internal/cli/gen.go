// The command miplc gen.

package cli

import (
	"bytes"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/miplc/miplc/cmd/miplc/internal/console"
	"github.com/miplc/miplc/export"
	"github.com/miplc/miplc/internal/contract"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/fileio"
)

// genCommand returns the command.
func genCommand(con *console.Console) *cobra.Command {
	cmd := &cobra.Command{
		Use:        "gen",
		SuggestFor: []string{"generate", "codegen"},
		Short:      "Generate Go code for a model",
		Long: `Generate Go code for predictions with a model that miplc train wrote. A program uses the
generated package like this:

` + genUsage,
		Example: "  miplc gen go run/model.onnx -o internal/birds",
	}
	console.Group(con, cmd)
	cmd.AddCommand(goCommand(con))
	return cmd
}

// genUsage is how a program uses a generated package.
const genUsage = `  model, err := birds.Open("run/model.onnx")
  ...
  p, err := model.Predict(ctx, birds.Bag{{0.5, 1.25}, {0.25, -3}}) // two instances
  ...
  fmt.Println(p.Class, p.Probabilities[p.Class])`

// genOptions are the settings of miplc gen go.
type genOptions struct {
	Console *console.Console
	Model   string
	Dir     string
	Package string
	Force   bool
}

func goCommand(con *console.Console) *cobra.Command {
	o := &genOptions{Console: con}
	cmd := &cobra.Command{
		Use:   "go MODEL -o DIR",
		Short: "Write a Go package for predictions with a model",
		Long: `Write a Go package for predictions with one model:

` + genUsage + `

The classes are constants, and an instance is a type, so code with a wrong shape does not
compile. Open accepts a model that was trained again with the same classes and features, and
returns an error for a model with others or another instance shape. The package imports
github.com/miplc/miplc/runtime, which needs cgo and the onnxruntime library.

MODEL is a model.onnx that miplc train wrote, or its folder. The command creates DIR
if necessary and writes one file, PACKAGE.go. It replaces a file that it generated before.`,
		Example: `  miplc gen go run/model.onnx -o internal/birds
  miplc gen go run -o internal/birds --package birds`,
		Args: console.Args(console.Arg("MODEL", &o.Model)),
		RunE: func(*cobra.Command, []string) error { return runGo(o) },
	}
	f := cmd.Flags()
	console.OutputFlag(cmd, &o.Dir, "DIR", "folder of the package")
	f.StringVar(&o.Package, "package", "", "name of the package (default: the name of the folder)")
	f.BoolVar(&o.Force, "force", false, "overwrite a file that miplc did not generate")
	return cmd
}

func runGo(o *genOptions) error {
	var err error
	if o.Model, err = findModel(o.Model); err != nil {
		return err
	}
	model, meta, err := contract.Read(o.Model)
	if err != nil {
		return err
	}
	if o.Package == "" {
		if o.Package, err = export.PackageOf(o.Dir); err != nil {
			return err
		}
	}
	source, err := export.GoPackage(o.Package, model.GetGraph().GetName(), meta)
	if err != nil {
		return console.Usagef("--package: %v", err)
	}
	file := filepath.Join(o.Dir, o.Package+".go")
	if old, err := fileio.Read(file); err == nil && bytes.HasPrefix(old, []byte(export.Header)) {
		o.Force = true
	}
	if err := export.CheckFolder(o.Dir, o.Package); err != nil {
		return err
	}
	if err := fileio.Write(file, source, fileio.WriteOptions{Force: o.Force, Inputs: []string{o.Model}}); err != nil {
		return err
	}
	hash := meta.ContractHash()
	return o.Console.Resultf(map[string]string{"file": file, "package": o.Package, "contract_sha256": hash},
		"%s: package %s, %s, instances of %v, contract %s\n", file, o.Package, diag.Count(len(meta.Classes), "class"),
		meta.InputShape, hash[:12])
}
