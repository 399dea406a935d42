// The results file of one process, which loses no finished cell if the process is killed.

package experiment

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/miplc/miplc/internal/diag"

	"github.com/miplc/miplc/internal/fileio"
	"github.com/miplc/miplc/internal/resources"
)

// heartbeat is the interval at which a process sets the modification time of its results file to
// show that it is alive.
const heartbeat = 30 * time.Second

// journal is the results file of this process. Only this process writes it and no process continues
// it later, so processes need no lock, and nothing is appended to a line that a killed process left
// incomplete.
type journal struct {
	mu     sync.Mutex
	File   *os.File
	stop   chan struct{}
	beats  resources.Group
	failed error // error of a line that may be incomplete: no line may follow
}

// openJournal creates the results file of a process for some part of the cells.
func openJournal(dir, part string) (*journal, error) {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	folder := filepath.Join(dir, Folder)
	if _, err := fileio.MakeFolder(folder); err != nil {
		return nil, err
	}
	for n := 1; ; n++ {
		file, err := fileio.CreateLog(filepath.Join(folder, fmt.Sprintf("%s.%s.%d%s", part, diag.FileName(host), n, suffix)))
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		j := &journal{File: file, stop: make(chan struct{})}
		j.beats.Go(j.beat)
		return j, nil
	}
}

// beat updates the file's time, however long cells take.
func (j *journal) beat() {
	ticker := time.NewTicker(heartbeat)
	defer ticker.Stop()
	for {
		select {
		case <-j.stop:
			return
		case now := <-ticker.C:
			_ = os.Chtimes(j.File.Name(), now, now) // only status reads the time
		}
	}
}

// Add appends one line per result and syncs the file. After an error, all later calls fail.
func (j *journal) Add(list []*Result) error {
	var lines []byte
	for _, result := range list {
		line, err := json.Marshal(result)
		if err != nil {
			return fmt.Errorf("the result of %s: %w", result.Coord, err)
		}
		lines = append(append(lines, line...), '\n')
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.failed != nil {
		return j.failed
	}
	if _, j.failed = j.File.Write(lines); j.failed == nil {
		j.failed = j.File.Sync()
	}
	if j.failed == nil && !fileio.AtPath(j.File) {
		j.failed = fmt.Errorf("%s was removed while the experiment ran: its results are lost; start the experiment again",
			j.File.Name())
	}
	return j.failed
}

// Close closes the file and makes it read-only, which shows that its process has ended. It removes
// an empty file.
func (j *journal) Close() error {
	close(j.stop)
	j.beats.Wait()
	info, err := j.File.Stat()
	switch {
	case err == nil && info.Size() == 0 && fileio.AtPath(j.File):
		// else another process may have created a file of this name
		err = os.Remove(j.File.Name())
	case err == nil:
		_ = j.File.Chmod(0o444) // not supported by every file system
	}
	return errors.Join(err, j.File.Close())
}
