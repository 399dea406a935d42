// The command miplc data import, which converts a dataset to another format.

package cli

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/spf13/cobra"

	"github.com/miplc/miplc/cmd/miplc/internal/console"
	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/bagfile"
	"github.com/miplc/miplc/data/formats"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/resources"
	"github.com/miplc/miplc/language"
)

func importCommand(con *console.Console) *cobra.Command {
	var input string
	var reading bagfile.Reading
	o := datasetOutput{Console: con}
	cmd := &cobra.Command{
		Use:        "import IN OUT",
		SuggestFor: []string{"convert", "load"},
		Short:      "Convert a dataset to another format",
		Long: "Read a dataset (" + formats.Readable().List() + "), validate it and write it as\n" +
			formats.Writable().Or() + ". The ending of OUT selects the format. An invalid dataset is an error that\nnames " +
			"the line or the bag, and nothing is written.",
		Example: "  miplc data import MNIST_MIPL_r1.mat mnist-r1.npz\n  miplc data import bags.npz bags.csv.gz\n  " +
			"miplc data import certain.csv certain.npz --labels known",
		Args: console.Args(console.Arg("IN", &input), console.Arg("OUT", &o.Output)),
		RunE: func(*cobra.Command, []string) error {
			return o.save(func() (*data.Dataset, error) {
				if named := formats.WithColumns(); o.stored && !named.Match(input) &&
					!reflect.DeepEqual(reading.Columns, bagfile.Columns{}) {
					return nil, console.WrongData(diag.Errorf(diag.Pos{File: input},
						"names of columns and classes can be given for %s; this file has no columns", named.And()))
				}
				set, err := bagfile.OpenWith(input, reading)
				if err == nil && o.stored { // Python keeps all instances in memory
					size := 4 * float64(set.Offsets[set.Bags()]) * float64(set.Dim())
					err = resources.Memory().Check("the instances of "+input, size,
						"train on the file, whose instances stay on disk: miplc.train(spec, path)")
				}
				if err != nil {
					return nil, console.WrongData(err)
				}
				for _, text := range set.Warnings {
					if !o.stored {
						con.Notef("warning: %s", text)
					}
				}
				return set, nil
			}, input)
		},
	}
	cmd.Flags().Var(&pythonReading{&reading, &o.stored}, "python", "arguments of Bags.read or "+
		"Bags.from_frame of the Python package as JSON")
	cmd.Flags().MarkHidden("python")
	console.ReadingFlags(cmd.Flags(), &reading)
	groupColumnFlag(cmd.Flags(), &reading)
	labelsFlag(cmd.Flags(), &reading)
	cmd.Flags().BoolVar(&o.Force, "force", false, "overwrite OUT if it exists")
	return cmd
}

// kindOf returns the kind of the labels of a dataset, as Bags.kind of the Python package.
func kindOf(d *data.Dataset) string {
	switch {
	case d.Multi:
		return language.MultiLabels
	case d.Classes == 0:
		return "none"
	case d.Known:
		return language.KnownLabels
	case d.Noisy:
		return language.NoisyLabels
	}
	return "candidates"
}

// pythonReading is the flag --python: how the Python package reads a file. The labels are those that the file has, and
// OUT is not compressed.
type pythonReading struct {
	reading *bagfile.Reading
	stored  *bool
}

func (p *pythonReading) String() string { return "" }
func (p *pythonReading) Type() string   { return "json" }

func (p *pythonReading) Set(text string) error {
	var given struct {
		bagfile.Roles
		InstanceLabel                     string `json:"instance_label"`
		Coords, Features, Ignore, Classes []string
		Multi, Noisy, Frame               bool
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&given); err != nil {
		return fmt.Errorf("%w", err)
	}
	given.Roles.InstanceLabel = given.InstanceLabel
	p.reading.Columns = bagfile.Columns{Roles: given.Roles, Coordinates: given.Coords, Features: given.Features,
		OnlyFeatures: given.Features != nil, Ignore: given.Ignore, Classes: given.Classes}
	switch {
	case given.Multi:
		p.reading.Labels = bagfile.MultiLabels
	case given.Noisy:
		p.reading.Labels = bagfile.NoisyLabels
	}
	p.reading.Form, p.reading.DetectLabels, *p.stored = bagfile.PythonForm, true, true
	if given.Frame {
		p.reading.Form = bagfile.FrameForm
	}
	return nil
}
