// The list of the runs that one command trains in a folder, so that --resume and other commands find them again.

package runs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/miplc/miplc/internal/fileio"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/train"
)

// listFile lists the runs of the last command that trained several runs in a folder, so that
// train --resume needs no further arguments.
const listFile = ".miplc.runs.json"

// runList is the content of listFile, in the order of the command. On engine xla, the bits of a run
// depend on the other runs of its program.
type runList struct {
	By   string      `json:"written_by"`
	Runs []listedRun `json:"runs"`
}

type listedRun struct {
	Name string `json:"name"` // name of the folder
	Spec string `json:"spec"` // as YAML
}

const listWriter = "miplc train"

// ReadList returns the specs and names of the runs that listFile in a folder lists. The
// error wraps fs.ErrNotExist if the folder has no list.
func ReadList(dir string) (specs []*language.Spec, names []string, err error) {
	file := filepath.Join(dir, listFile)
	var list runList
	err = fileio.ReadJSON(file, &list)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil, err
	case err == nil && (list.By != listWriter || len(list.Runs) == 0):
		err = fmt.Errorf("%s is not a list of runs", file)
	case err == nil && slices.ContainsFunc(list.Runs, func(r listedRun) bool {
		return r.Name == "" || r.Name != filepath.Base(r.Name) || !filepath.IsLocal(r.Name)
	}):
		err = fmt.Errorf("%s lists runs outside the folder", file)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%w; repeat the whole command with --resume instead", err)
	}
	for _, r := range list.Runs {
		spec, err := language.Parse(filepath.Join(dir, r.Name, SpecFile), []byte(r.Spec))
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %s: %w", file, r.Name, err)
		}
		specs, names = append(specs, spec), append(names, r.Name)
	}
	return specs, names, nil
}

// writeList writes the list of trials and their specs. It writes nothing for a single trial without a
// name.
func writeList(dir string, trials []*train.Trial, specs []*language.Spec) error {
	list := runList{By: listWriter}
	for i, t := range trials {
		if t.Name == "" {
			return nil
		}
		list.Runs = append(list.Runs, listedRun{t.Name, string(specs[i].YAML())})
	}
	return fileio.ReplaceJSON(filepath.Join(dir, listFile), list)
}

// removeList removes the list if none of its runs exists.
func removeList(dir string, trials []*train.Trial) {
	for _, t := range trials {
		if state, err := StateOf(t.Dir); t.Name == "" || err != nil || state != Absent {
			return
		}
	}
	_ = os.Remove(filepath.Join(dir, listFile)) // it may not exist
}
