package results

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/miplc/miplc/internal/sanitize"

	"github.com/miplc/miplc/internal/outfile"
	"github.com/miplc/miplc/internal/workers"
)

// heartbeat is the time between two signs of life of a process: the time of its
// results file is set to now.
const Heartbeat = 30 * time.Second

// journal is the results file of this process. It alone writes it, and nobody does
// after its end: processes need no lock among them, and what one leaves half-written
// nobody appends to.
type Journal struct {
	mu     sync.Mutex
	File   *os.File
	stop   chan struct{}
	beats  workers.Group
	failed error // of a line that may be half-written: none follows
}

// openJournal starts the file of a process on some part of the cells.
func OpenJournal(dir, part string) (*Journal, error) {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	folder := filepath.Join(dir, Folder)
	if _, err := outfile.MakeFolder(folder); err != nil {
		return nil, err
	}
	for n := 1; ; n++ {
		file, err := outfile.Log(filepath.Join(folder, fmt.Sprintf("%s.%s.%d%s", part, sanitize.FileName(host), n, suffix)))
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		j := &Journal{File: file, stop: make(chan struct{})}
		j.beats.Go(j.beat)
		return j, nil
	}
}

// beat shows that the process is alive, whether cells take seconds or hours.
func (j *Journal) beat() {
	ticker := time.NewTicker(Heartbeat)
	defer ticker.Stop()
	for {
		select {
		case <-j.stop:
			return
		case now := <-ticker.C:
			_ = os.Chtimes(j.File.Name(), now, now) // nothing but status looks at it
		}
	}
}

// add appends a line each for results that were computed together, and forces them
// to the disk. After an error nothing more is taken.
func (j *Journal) Add(list []*Result) error {
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
	return j.failed
}

// close ends the file: it is write-protected, by which status sees that its process
// is over, and goes where nothing is in it.
func (j *Journal) Close() error {
	close(j.stop)
	j.beats.Wait()
	info, err := j.File.Stat()
	switch {
	case err == nil && info.Size() == 0:
		err = os.Remove(j.File.Name())
	case err == nil:
		_ = j.File.Chmod(0o444) // not on every file system
	}
	return errors.Join(err, j.File.Close())
}
