// Which processes are computing cells of a folder now, as far as their results files show.

package experiment

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Process is a process that computes cells.
type Process struct {
	Part   string  `json:"part"` // "3-of-8", or "all"
	Host   string  `json:"host"`
	Silent float64 `json:"silent"` // seconds since the last update of its file
}

// alive is how old the last update of a living process may be. File systems show times late, and
// clocks differ between machines.
const alive = 4 * heartbeat

// running returns the processes that are computing cells in a folder: their results file is writable
// and was updated recently.
func running(dir string, now time.Time) ([]Process, error) {
	entries, err := os.ReadDir(filepath.Join(dir, Folder))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	list := []Process{}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || filepath.Ext(entry.Name()) != suffix || info.Mode().Perm()&0o222 == 0 {
			continue
		}
		silent := now.Sub(info.ModTime())
		if silent > alive {
			continue
		}
		part, rest, _ := strings.Cut(strings.TrimSuffix(entry.Name(), suffix), ".")
		host := rest[:max(0, strings.LastIndexByte(rest, '.'))]
		list = append(list, Process{part, host, max(0, silent.Seconds())})
	}
	return list, nil
}
