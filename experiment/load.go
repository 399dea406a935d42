package experiment

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/specs"
)

// builtin is the prefix of the file names of shipped experiments in messages.
const builtin = "builtin:"

// maxBytes bounds the file of an experiment.
const maxBytes = 1 << 20

// Load reads an experiment: a file, or a shipped one by its name.
func Load(name string) (*Experiment, error) {
	src, err := readFile(name)
	if err == nil {
		return Parse(name, src)
	}
	short := strings.TrimSuffix(strings.TrimPrefix(name, builtin), ".yaml")
	if text, found := specs.Experiment(short); found && errors.Is(err, fs.ErrNotExist) {
		return Parse(builtin+short, text)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	d := diag.Diagnostic{
		Text:  fmt.Sprintf("there is no file %s and no shipped experiment of that name", name),
		Notes: []string{"shipped experiments: " + strings.Join(specs.Experiments(), ", ")},
	}
	if !strings.ContainsAny(name, `/\`) {
		d.Suggestion = diag.Suggest(short, specs.Experiments())
	}
	return nil, diag.List{d}
}

func readFile(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if info.IsDir() { // such as the folder of results, named like a shipped experiment
		return nil, fs.ErrNotExist
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a file", name)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxBytes+1))
}
