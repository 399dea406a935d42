// The command published adds the results of an experiment to the lines of bench/published, from which the
// tables of docs/results.md and docs/paper-results.md are generated. It reports cells whose accuracy
// differs from their line, with the commits, versions and threads of both, and keeps the line. It refuses
// results of a program whose commit is unknown.

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/miplc/miplc/experiment"
	"github.com/miplc/miplc/experiment/definition"
	"github.com/miplc/miplc/runs"
)

// line is the part of a result that bench/published has.
type line struct {
	definition.Coord
	Accuracy      float64           `json:"accuracy"`
	TrainAccuracy *float64          `json:"train_accuracy,omitempty"`
	Engine        string            `json:"engine"`
	Seconds       float64           `json:"seconds,omitempty"`
	Environment   *runs.Environment `json:"environment,omitempty"`
}

// addPublished merges the results in a folder with the lines of an experiment, which is in bench/published or shipped.
func addPublished(args []string) error {
	if len(args) != 2 {
		return errors.New("usage: bench published EXPERIMENT FOLDER")
	}
	return add(filepath.Join("bench", "published", args[0]), args[1])
}

// add merges the results in a folder with the lines in base.jsonl. The experiment is base.yaml, or the
// shipped one of that name.
func add(base, folder string) error {
	file := base + ".yaml"
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		file = filepath.Base(base)
	}
	e, err := definition.Load(file)
	if err != nil {
		return err
	}
	src, err := os.ReadFile(base + ".jsonl")
	if err != nil {
		return err
	}
	found, err := experiment.Read(folder)
	if err != nil {
		return err
	}
	known, text := map[definition.Coord]line{}, map[definition.Coord]string{}
	for t := range strings.Lines(string(src)) {
		var l line
		if err := json.Unmarshal([]byte(t), &l); err != nil {
			return err
		}
		known[l.Coord], text[l.Coord] = l, t
	}
	var faults []error
	rank := e.Rank()
	for _, r := range slices.SortedFunc(maps.Values(found.ByKey), func(a, b experiment.Result) int {
		return definition.CompareCoord(a.Coord, b.Coord, rank)
	}) {
		l := line{r.Coord, r.Accuracy, r.TrainAccuracy, r.Engine, r.Seconds, r.Environment}
		switch have, ok := known[l.Coord]; {
		case r.Error != "":
			faults = append(faults, fmt.Errorf("%v failed: %s", l.Coord, r.Error))
		case ok && have.Accuracy != l.Accuracy:
			faults = append(faults, fmt.Errorf("%v: accuracy %v with %s; the line has %v with %s", l.Coord, l.Accuracy,
				l.origin(), have.Accuracy, have.origin()))
		case ok:
			fmt.Printf("%v: equal, %v\n", l.Coord, l.Accuracy)
		case r.Environment == nil || r.Environment.Commit == "" || r.Environment.Modified:
			faults = append(faults, fmt.Errorf("%v was computed by a program of an unknown commit: build miplc with "+
				"-buildvcs=true from a checkout without changes", l.Coord))
		default:
			var b bytes.Buffer
			if err := json.NewEncoder(&b).Encode(l); err != nil {
				return err
			}
			text[l.Coord] = b.String()
			fmt.Printf("%v: added, %v with %s\n", l.Coord, l.Accuracy, l.origin())
		}
	}
	var all strings.Builder
	for _, c := range slices.SortedFunc(maps.Keys(text), func(a, b definition.Coord) int {
		return definition.CompareCoord(a, b, rank)
	}) {
		all.WriteString(text[c])
	}
	return errors.Join(append(faults, os.WriteFile(base+".jsonl", []byte(all.String()), 0o666))...)
}

// origin describes the program and the machine that computed a cell.
func (l line) origin() string {
	if l.Environment == nil {
		return "engine " + l.Engine + ", environment not recorded"
	}
	v := l.Environment
	return fmt.Sprintf("engine %s, commit %s, %s, onnxruntime %s, %s/%s, threads %d", l.Engine, v.Commit, v.Go,
		v.ONNXRuntime, v.OS, v.Arch, v.Threads)
}
