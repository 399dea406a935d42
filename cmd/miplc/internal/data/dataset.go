// Package data is the command group miplc data: drawing, converting and
// looking at sets of bags.
package data

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/miplc/miplc/cmd/miplc/internal/console"
	"github.com/miplc/miplc/data"
)

// Command makes the group.
func Command(con *console.Console) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "data",
		Short: "Draw, convert and inspect sets of bags",
		Long: `Sets of bags are read from .npz, .mat (the authors' format), .csv and .csv.gz, and
written as .npz, .csv and .csv.gz. Bags count from 1.`,
	}
	console.Group(con, cmd)
	cmd.AddCommand(synthCommand(con), bagsCommand(con), crowdCommand(con), importCommand(con), inspectCommand(con))
	return cmd
}

// Saved is what synth and import print.
type Saved struct {
	File       string `json:"file"`
	Bags       int    `json:"bags"`
	Instances  int    `json:"instances"`
	Features   int    `json:"features"`
	Classes    int    `json:"classes"`
	DataSHA256 string `json:"data_sha256"`
}

// save writes the set unless the file is there already.
func save(con *console.Console, set *data.Dataset, path string, force bool) error {
	if err := free(path, force); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := set.Save(path); err != nil {
		return err
	}
	s := Saved{path, set.Bags(), set.Offsets[set.Bags()], set.Dim(), set.Classes, set.Hash()}
	return con.Result(s, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%s: %d bags, %d instances of %d features, %d classes\n", s.File, s.Bags, s.Instances, s.Features, s.Classes)
		return err
	})
}

// free reports a file that would be overwritten.
func free(path string, force bool) error {
	if _, err := os.Lstat(path); err == nil && !force {
		return fmt.Errorf("%s exists already: choose another name, or overwrite it with --force", path)
	}
	return nil
}
