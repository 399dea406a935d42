// Downloads with pip or npm.

package libraries

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/miplc/miplc/internal/fileio"
)

// toolRunner runs a command and returns its standard error and output combined. The error is
// errNoTool if the program does not exist.
type toolRunner func(ctx context.Context, dir string, argv ...string) (output string, err error)

var errNoTool = errors.New("not found on PATH")

// runTool is the toolRunner that starts processes.
func runTool(ctx context.Context, dir string, argv ...string) (string, error) {
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return "", fmt.Errorf("%s: %w", argv[0], errNoTool)
	}
	cmd := exec.CommandContext(ctx, path, argv[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PIP_DISABLE_PIP_VERSION_CHECK=1", "PIP_NO_INPUT=1", "NO_UPDATE_NOTIFIER=1")
	cmd.WaitDelay = 5 * time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	return out.String(), err
}

// pips are the ways to start pip, in the order in which download tries them.
var pips = [][]string{{"python3", "-m", "pip"}, {"python", "-m", "pip"}, {"pip3"}, {"pip"}}

// Source returns the pin that Install would download: the first one of this system whose tool runs.
func (s Slot) Source(ctx context.Context) (Pin, error) {
	fit, err := s.fit(ViaAuto)
	if err != nil {
		return Pin{}, err
	}
	for _, p := range fit {
		tools := pips
		if p.Via == ViaNpm {
			tools = [][]string{{"npm"}}
		}
		for _, tool := range tools {
			if _, err := s.run(ctx, "", append(slices.Clone(tool), "--version")...); err == nil {
				return p, nil
			}
		}
	}
	return Pin{}, fmt.Errorf("%s can be downloaded with pip or npm, and neither works: install one of them, or %s",
		s.Name, s.Remedy)
}

// download downloads the archive of the pin to dir.
func (s Slot) download(ctx context.Context, p Pin, dir string) (string, error) {
	if p.Via == ViaNpm {
		return s.downloadWith(ctx, dir, "*.tgz", []string{"npm", "pack", p.Archive,
			"--pack-destination", dir, "--ignore-scripts",
			// The default waiting times of npm add up to more than a minute.
			"--fetch-retries", "2", "--fetch-retry-mintimeout", "1000", "--fetch-retry-maxtimeout", "4000"})
	}
	// The library is the same in the wheels of all Python versions, so a fixed one is requested:
	// the installed Python may not be supported by the package.
	args := []string{"download", "--no-deps", "--only-binary=:all:", p.Archive,
		"--implementation", "cp", "--python-version", "3.12", "--abi", "cp312", "--platform", p.Platform,
		"--retries", "2", "--progress-bar", "off", "-d", dir}
	var err error
	for _, pip := range pips {
		var archive string
		archive, err = s.downloadWith(ctx, dir, "*.whl", slices.Concat(pip, args))
		if err == nil || ctx.Err() != nil {
			return archive, err
		}
		if !errors.Is(err, errNoTool) && !strings.Contains(err.Error(), "No module named pip") {
			return "", err
		}
	}
	return "", fmt.Errorf("neither python3 -m pip nor pip: %w", errNoTool)
}

func (s Slot) downloadWith(ctx context.Context, dir, pattern string, argv []string) (string, error) {
	output, err := s.run(ctx, dir, argv...)
	if errors.Is(err, errNoTool) {
		return "", err
	}
	if err != nil {
		return "", fmt.Errorf("%s failed (%w): %s", argv[0], err, reason(output))
	}
	found := fileio.Glob(dir, pattern)
	if len(found) != 1 {
		return "", fmt.Errorf("%s left %d archives, expected one", argv[0], len(found))
	}
	return found[0], nil
}

// reason extracts the reason of a failure from a tool's output: the first lines marked as errors,
// else the last lines. After "ERROR: Exception:", pip prints a traceback, whose last line is the reason.
func reason(output string) string {
	var marked, all []string
	for _, line := range strings.FieldsFunc(output, func(r rune) bool { return r == '\n' || r == '\r' }) {
		line = strings.TrimSpace(line)
		all = append(all, line)
		for _, mark := range []string{"ERROR:", "npm error ", "npm ERR! "} {
			if text, ok := strings.CutPrefix(line, mark); ok {
				marked = append(marked, strings.TrimSpace(text))
			}
		}
	}
	const lines = 3
	if len(marked) > 0 && marked[0] == "Exception:" {
		return all[len(all)-1]
	}
	if len(marked) > 0 {
		return strings.Join(marked[:min(lines, len(marked))], "; ")
	}
	return strings.Join(all[max(0, len(all)-lines):], "; ")
}

// unpack writes the pinned member of an archive to dst, synced to the disk, and returns its
// SHA-256.
func unpack(archive string, p Pin, dst string) (sum string, err error) {
	f, err := os.Open(archive)
	if err != nil {
		return "", err
	}
	defer f.Close()
	member := memberOfZip
	if p.Via == ViaNpm {
		member = memberOfTar
	}
	r, err := member(f, p.Member)
	if errors.Is(err, fs.ErrNotExist) || err == io.EOF {
		return "", fmt.Errorf("it contains no %s", p.Member)
	}
	if err != nil {
		return "", err
	}
	return writeLibrary(r, p, dst)
}

func memberOfZip(f *os.File, name string) (io.Reader, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	z, err := zip.NewReader(f, info.Size())
	if err != nil {
		return nil, err
	}
	return z.Open(name)
}

func memberOfTar(f *os.File, name string) (io.Reader, error) {
	gz, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	r := tar.NewReader(gz)
	for {
		if h, err := r.Next(); err != nil || h.Name == name {
			return r, err
		}
	}
}

// writeLibrary copies at most one byte more than the pinned size, so that an archive cannot fill
// the disk.
func writeLibrary(r io.Reader, p Pin, dst string) (sum string, err error) {
	out, err := os.OpenFile(dst, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return "", err
	}
	defer func() {
		if closeErr := out.Close(); err == nil {
			err = closeErr
		}
	}()
	h := sha256.New()
	n, err := io.Copy(io.MultiWriter(out, h), io.LimitReader(r, p.Size+1))
	if err != nil {
		return "", err
	}
	if n != p.Size {
		return "", fmt.Errorf("%s does not have the pinned size of %d bytes", p.Member, p.Size)
	}
	if err := out.Sync(); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
