package runs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/miplc/miplc/internal/infile"
	"github.com/miplc/miplc/internal/outfile"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/train"
)

// listFile is the list of the runs of the last command that trained several runs in a
// folder, so that they can be resumed without the command.
const listFile = ".miplc.runs.json"

// runList is the content of listFile. The order counts: runs side by side in one program
// give the same bits in the same company only.
type runList struct {
	By   string      `json:"written_by"`
	Runs []listedRun `json:"runs"`
}

type listedRun struct {
	Name string `json:"name"` // of its folder
	Spec string `json:"spec"` // as YAML
}

const listWriter = "miplc train"

// ReadList returns the specs and names of the runs that listFile in a folder lists. The
// error wraps fs.ErrNotExist if the folder has no list.
func ReadList(dir string) (specs []*language.Spec, names []string, err error) {
	file := filepath.Join(dir, listFile)
	list, err := readList(file)
	if err != nil {
		return nil, nil, err
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

func readList(file string) (*runList, error) {
	list := &runList{}
	err := infile.JSON(file, list)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, err
	case err == nil && (list.By != listWriter || len(list.Runs) == 0):
		err = fmt.Errorf("%s: it is not a list of runs", file)
	case err == nil && slices.ContainsFunc(list.Runs, func(r listedRun) bool {
		return r.Name == "" || r.Name != filepath.Base(r.Name) || !filepath.IsLocal(r.Name)
	}):
		err = fmt.Errorf("%s: it lists runs outside the folder", file)
	}
	if err != nil {
		return nil, fmt.Errorf("%w; give the whole command with --resume instead", err)
	}
	return list, nil
}

// writeList writes the list of trials and their specs, unless it is one trial without a
// name.
func writeList(dir string, trials []*train.Trial, specs []*language.Spec) error {
	list := runList{By: listWriter}
	for i, t := range trials {
		if t.Name == "" {
			return nil
		}
		list.Runs = append(list.Runs, listedRun{t.Name, string(specs[i].YAML())})
	}
	return outfile.ReplaceJSON(filepath.Join(dir, listFile), list)
}

// dropList removes the list if none of its runs has left anything.
func dropList(dir string, trials []*train.Trial) {
	for _, t := range trials {
		if state, err := StateOf(t.Dir); t.Name == "" || err != nil || state != Absent {
			return
		}
	}
	_ = os.Remove(filepath.Join(dir, listFile)) // it may not be there
}
