// Installations by each tool, and what is refused.

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
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/gofrs/flock"
)

const (
	wheelMember = "onnxruntime/capi/libonnxruntime.so.1.27.0"
	npmMember   = "package/bin/napi-v6/linux/x64/libonnxruntime.so.1"
)

// shop simulates pip and npm: which of them exist and what they download.
type shop struct {
	t          *testing.T
	slot       Slot
	noPip      bool
	noNpm      bool
	wheel, tgz []byte // archives that the tools download; nil: they fail
	mu         sync.Mutex
	calls      []string
	onRun      func()
}

// library returns the bytes of the library in the archives.
func library() []byte { return bytes.Repeat([]byte("library "), 200) }

func newShop(t *testing.T) *shop {
	s := &shop{t: t, wheel: wheel(t, wheelMember, library()), tgz: tgz(t, npmMember, library())}
	sum := sha256.Sum256(library())
	hexSum, size := hex.EncodeToString(sum[:]), int64(len(library()))
	s.slot = Slot{System: "linux/amd64", Path: filepath.Join(t.TempDir(), "cache[1]/lib/libonnxruntime.so"), run: s.run,
		Release: Release{Name: "onnxruntime 1.27.0", Remedy: "set ITS_PATH", Pins: []Pin{
			{"linux/amd64", ViaPip, "onnxruntime==1.27.0", wheelMember, "manylinux_2_28_x86_64", size, hexSum, 1},
			{"linux/amd64", ViaNpm, "onnxruntime-node@1.27.0", npmMember, "", size, hexSum, 1},
		}}}
	return s
}

// run simulates the tools.
func (s *shop) run(ctx context.Context, dir string, argv ...string) (string, error) {
	s.mu.Lock()
	s.calls = append(s.calls, argv[0])
	s.mu.Unlock()
	if s.onRun != nil {
		s.onRun()
	}
	if err := ctx.Err(); err != nil {
		return "", err
	}
	name, data, missing := "onnxruntime.whl", s.wheel, s.noPip
	if argv[0] == "npm" {
		name, data, missing = "onnxruntime-node.tgz", s.tgz, s.noNpm
	}
	switch {
	case missing:
		return "", fmt.Errorf("%s: %w", argv[0], errNoTool)
	case data == nil:
		return "retrying\nERROR: network is unreachable\n", errors.New("exit status 1")
	}
	return "", os.WriteFile(filepath.Join(dir, name), data, 0o644)
}

func (s *shop) install(o InstallOptions) error { return s.slot.Install(context.Background(), o) }

// put writes a file next to the library, or replaces the library.
func (s *shop) put(data []byte, name string) {
	s.t.Helper()
	path := filepath.Join(filepath.Dir(s.slot.Path), name)
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = os.WriteFile(path, data, 0o644)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// leftovers lists the files in the cache other than the library and the lock.
func (s *shop) leftovers() []string {
	var found []string
	entries, _ := os.ReadDir(filepath.Dir(s.slot.Path))
	for _, e := range entries {
		if e.Name() != ".lock" && e.Name() != filepath.Base(s.slot.Path) {
			found = append(found, e.Name())
		}
	}
	return found
}

func wheel(t *testing.T, member string, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, content := range map[string][]byte{"onnxruntime/__init__.py": []byte("#"), member: data} {
		w, err := z.Create(name)
		if err == nil {
			_, err = w.Write(content)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func tgz(t *testing.T, member string, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	gz := gzip.NewWriter(&b)
	w := tar.NewWriter(gz)
	err := w.WriteHeader(&tar.Header{Name: member, Mode: 0o644, Size: int64(len(data))})
	if err == nil {
		_, err = w.Write(data)
	}
	if err = errors.Join(err, w.Close(), gz.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestInstallByEachTool(t *testing.T) {
	for _, c := range []struct {
		name  string
		via   Via
		setup func(*shop)
		calls string
	}{
		{"pip first", ViaAuto, func(*shop) {}, "python3"},
		{"npm where there is no pip", ViaAuto, func(s *shop) { s.noPip = true }, "python3 python pip3 pip npm"},
		{"npm where pip fails", ViaAuto, func(s *shop) { s.wheel = nil }, "python3 npm"},
		{"npm alone", ViaNpm, func(*shop) {}, "npm"},
		{"pip alone", ViaPip, func(s *shop) { s.noNpm = true }, "python3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newShop(t)
			c.setup(s)
			var progress bytes.Buffer
			if err := s.install(InstallOptions{Via: c.via, Progress: &progress}); err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(s.calls, " "); got != c.calls {
				t.Errorf("ran %q, want %q", got, c.calls)
			}
			if !strings.Contains(progress.String(), "installed onnxruntime 1.27.0 at "+s.slot.Path) {
				t.Errorf("progress: %q", progress.String())
			}
			if err := s.slot.Check(); err != nil {
				t.Error(err)
			}
			if left := s.leftovers(); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// Source names the first tool that runs, and downloads nothing.
func TestSource(t *testing.T) {
	for _, c := range []struct {
		noPip, noNpm bool
		want         Via
	}{{want: ViaPip}, {noPip: true, want: ViaNpm}, {noNpm: true, want: ViaPip}, {noPip: true, noNpm: true}} {
		s := newShop(t)
		s.noPip, s.noNpm = c.noPip, c.noNpm
		s.slot.run = func(ctx context.Context, _ string, argv ...string) (string, error) {
			if argv[len(argv)-1] != "--version" {
				t.Errorf("it runs %v", argv)
			}
			return s.run(ctx, t.TempDir(), argv...)
		}
		pin, err := s.slot.Source(t.Context())
		if pin.Via != c.want || (err == nil) != (c.want != "") {
			t.Errorf("without pip %v, without npm %v: %q, %v", c.noPip, c.noNpm, pin.Via, err)
		}
		if err != nil && !strings.HasSuffix(err.Error(), "install one of them, or set ITS_PATH") {
			t.Error(err)
		}
	}
	s := newShop(t)
	s.slot.System = "plan9/amd64"
	if _, err := s.slot.Source(t.Context()); err == nil || !strings.Contains(err.Error(), "plan9/amd64") {
		t.Error(err)
	}
}

// The second installation does not need the network.
func TestInstallAgainOffline(t *testing.T) {
	s := newShop(t)
	if err := s.install(InstallOptions{}); err != nil {
		t.Fatal(err)
	}
	s.wheel, s.tgz = nil, nil
	calls := len(s.calls)
	if err := s.install(InstallOptions{}); err != nil || len(s.calls) != calls {
		t.Errorf("%v, %d tools run", err, len(s.calls)-calls)
	}
	// With Force the library is downloaded again. If that fails, the installed library remains.
	if err := s.install(InstallOptions{Force: true}); err == nil {
		t.Error("force did not fetch")
	}
	if err := s.slot.Check(); err != nil {
		t.Errorf("after a failed --force: %v", err)
	}
}

func TestInstallFailures(t *testing.T) {
	other := bytes.Repeat([]byte("x"), 1600)
	for _, c := range []struct {
		name  string
		setup func(t *testing.T, s *shop) InstallOptions
		wants []string
	}{
		{"no tools", func(t *testing.T, s *shop) InstallOptions {
			s.noPip, s.noNpm = true, true
			return InstallOptions{}
		}, []string{"pip: neither python3 -m pip nor pip", "npm: npm: not found on PATH", "install pip or npm", "ITS_PATH"}},
		{"no network", func(t *testing.T, s *shop) InstallOptions {
			s.wheel, s.tgz = nil, nil
			return InstallOptions{}
		}, []string{"network is unreachable", "check the network"}},
		{"other bytes", func(t *testing.T, s *shop) InstallOptions {
			changed := library()
			changed[len(changed)-1] ^= 1
			s.wheel, s.tgz = wheel(t, wheelMember, changed), tgz(t, npmMember, changed)
			return InstallOptions{}
		}, []string{"pip: the library in onnxruntime.whl has SHA-256", "it is not used"}},
		{"other size", func(t *testing.T, s *shop) InstallOptions {
			s.tgz = tgz(t, npmMember, append(library(), other...))
			return InstallOptions{Via: ViaNpm}
		}, []string{"pinned size"}},
		{"other member", func(t *testing.T, s *shop) InstallOptions {
			s.wheel, s.tgz = wheel(t, "a.so", other), tgz(t, "a.so", other)
			return InstallOptions{}
		}, []string{"it contains no " + wheelMember, "it contains no " + npmMember}},
		{"download cut", func(t *testing.T, s *shop) InstallOptions {
			s.wheel, s.tgz = s.wheel[:len(s.wheel)/2], s.tgz[:len(s.tgz)/2]
			return InstallOptions{}
		}, []string{"pip: the archive", "npm: the archive"}},
		{"cache is a file", func(t *testing.T, s *shop) InstallOptions {
			s.put([]byte("x"), "../../cache[1]")
			return InstallOptions{}
		}, []string{EnvCache}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newShop(t)
			o := c.setup(t, s)
			err := s.install(o)
			if err == nil {
				t.Fatal("installed")
			}
			for _, want := range c.wants {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error lacks %q:\n%v", want, err)
				}
			}
			if _, err := os.Stat(s.slot.Path); err == nil {
				t.Error("a library was put into the cache")
			}
			if left := s.leftovers(); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// pip prints its own failures, such as a full disk, as a Python traceback.
func TestReason(t *testing.T) {
	for _, c := range []struct{ output, want string }{
		{"Collecting onnxruntime\nERROR: no such version\nERROR: nothing found\n", "no such version; nothing found"},
		{"one\ntwo\nthree\nfour\n", "two; three; four"},
		{"ERROR: Exception:\nTraceback (most recent call last):\n  File \"download.py\", line 148\nOSError: [Errno 28] No " +
			"space left on device\n",
			"OSError: [Errno 28] No space left on device"},
	} {
		if got := reason(c.output); got != c.want {
			t.Errorf("%q: %q, want %q", c.output, got, c.want)
		}
	}
}

func TestInstallElsewhere(t *testing.T) {
	s := newShop(t)
	s.slot.System = "linux/riscv64"
	err := s.install(InstallOptions{})
	if err == nil || !strings.Contains(err.Error(), "linux/riscv64") || !strings.Contains(err.Error(), "ITS_PATH") {
		t.Errorf("riscv64: %v", err)
	}
	// If nothing is pinned for a system, an existing file was installed by hand.
	s.put([]byte("by hand"), filepath.Base(s.slot.Path))
	if err := s.slot.Check(); err != nil {
		t.Errorf("installed by hand: %v", err)
	}
	s.slot.System, s.slot.Pins = "linux/amd64", s.slot.Pins[:1]
	if err := s.install(InstallOptions{Via: ViaNpm}); err == nil || !strings.Contains(err.Error(), "with npm on linux") {
		t.Errorf("no pin of npm: %v", err)
	}
}

func TestInstallInterrupted(t *testing.T) {
	s := newShop(t)
	ctx, cancel := context.WithCancel(context.Background())
	s.onRun = cancel
	err := s.slot.Install(ctx, InstallOptions{})
	if !errors.Is(err, context.Canceled) || len(s.calls) != 1 {
		t.Errorf("%v after %v", err, s.calls)
	}
	if left := s.leftovers(); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	s.onRun = nil
	if err := s.install(InstallOptions{}); err != nil {
		t.Errorf("the next installation: %v", err)
	}
}

// A cache that was damaged, or left incomplete by a killed process, is detected and repaired.
func TestInstallRepairs(t *testing.T) {
	s := newShop(t)
	whole := library()
	flipped := append([]byte(nil), whole...)
	flipped[len(flipped)-1] ^= 1
	for name, data := range map[string][]byte{"cut": whole[:700], "empty": {}, "flipped": flipped} {
		s.put(data, filepath.Base(s.slot.Path))
		s.put([]byte("half a download"), ".fetch-123/onnxruntime.whl")
		if err := s.slot.Check(); err == nil || !strings.Contains(err.Error(), "damaged") {
			t.Errorf("%s: the damage was not noticed: %v", name, err)
		}
		if err := s.install(InstallOptions{}); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got, err := os.ReadFile(s.slot.Path); err != nil || !bytes.Equal(got, whole) {
			t.Errorf("%s: not repaired: %v", name, err)
		}
		if left := s.leftovers(); len(left) > 0 {
			t.Errorf("%s: left behind: %v", name, left)
		}
	}
}

// A library whose bytes changed is detected even if its size and modification time are the same.
func TestCheckSeesChangedContent(t *testing.T) {
	s := newShop(t)
	if err := s.install(InstallOptions{}); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(s.slot.Path)
	if err != nil {
		t.Fatal(err)
	}
	changed := library()
	changed[len(changed)/2] ^= 1
	s.put(changed, filepath.Base(s.slot.Path))
	if err := os.Chtimes(s.slot.Path, info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	if err := s.slot.Check(); err == nil || !strings.Contains(err.Error(), "SHA-256") {
		t.Errorf("changed content was accepted: %v", err)
	}
}

// A cache that others can write to is rejected before anything is downloaded.
func TestInstallIntoOpenFolder(t *testing.T) {
	s := newShop(t)
	dir := filepath.Dir(s.slot.Path)
	s.put(library(), filepath.Base(s.slot.Path))
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := s.slot.Check(); err == nil || !strings.Contains(err.Error(), "refused: every user can write to") {
		t.Errorf("a library in a folder open to all: %v", err)
	}
	err := s.install(InstallOptions{})
	if err == nil || !strings.Contains(err.Error(), "every user can write to "+dir) ||
		!strings.Contains(err.Error(), EnvCache) || len(s.calls) > 0 {
		t.Errorf("installed into a folder open to all: %v, %v", err, s.calls)
	}
}

// Parallel installations download once.
func TestInstallInParallel(t *testing.T) {
	s := newShop(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if err := s.install(InstallOptions{}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if len(s.calls) != 1 {
		t.Errorf("%d downloads", len(s.calls))
	}
}

func TestInstallStopsWaiting(t *testing.T) {
	s := newShop(t)
	s.put(nil, ".lock")
	held := flock.New(filepath.Join(filepath.Dir(s.slot.Path), ".lock"))
	if err := held.Lock(); err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	ctx, cancel := context.WithCancel(context.Background())
	var progress cancelWriter = func() { cancel() }
	err := s.slot.Install(ctx, InstallOptions{Progress: progress})
	if !errors.Is(err, context.Canceled) || len(s.calls) != 0 {
		t.Errorf("%v after %v", err, s.calls)
	}
}

// cancelWriter calls a function at the first line of progress.
type cancelWriter func()

func (w cancelWriter) Write(p []byte) (int, error) { w(); return len(p), nil }

// runTool runs small programs that replace the real tools.
func TestRunTool(t *testing.T) {
	dir := t.TempDir()
	script := func(name, body string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+body), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	script("python3", "echo '/usr/bin/python3: No module named pip' >&2; exit 1\n")
	script("npm", "echo \"$@\" >\"$4.args\"; echo archive >\"$4/onnxruntime-node-1.27.0.tgz\"\n")
	t.Setenv("PATH", dir+":/usr/bin:/bin")
	out := t.TempDir()

	if _, err := runTool(context.Background(), out, "no-such-tool"); !errors.Is(err, errNoTool) {
		t.Errorf("missing tool: %v", err)
	}
	output, err := runTool(context.Background(), out, "python3", "-m", "pip")
	if err == nil || !strings.Contains(output, "No module named pip") {
		t.Errorf("%q, %v", output, err)
	}
	s := newShop(t).slot
	s.run = runTool
	archive, err := s.download(context.Background(), s.Pins[1], out)
	if err != nil || filepath.Base(archive) != "onnxruntime-node-1.27.0.tgz" {
		t.Fatalf("%s, %v", archive, err)
	}
	args, err := os.ReadFile(out + ".args")
	if err != nil || !strings.HasPrefix(string(args), "pack onnxruntime-node@1.27.0 --pack-destination "+out) {
		t.Errorf("npm was called with %q, %v", args, err)
	}
}

// InstallAll downloads an archive once for all its libraries, and only what is missing.
func TestInstallAll(t *testing.T) {
	s := newShop(t)
	pip := s.slot.Pins[0]
	var slots []Slot
	for i, name := range []string{"a.so", "b.so"} {
		slot, pin := s.slot, pip
		slot.Path = filepath.Join(filepath.Dir(s.slot.Path), name)
		if slot.Pins = []Pin{pin}; i == 1 {
			slot.Name = "other"
		}
		slots = append(slots, slot)
	}
	downloads := func(want int) {
		t.Helper()
		if err := InstallAll(context.Background(), slots, InstallOptions{}); err != nil {
			t.Fatal(err)
		}
		if len(s.calls) != want {
			t.Errorf("%d downloads, expected %d", len(s.calls), want)
		}
	}
	downloads(1)
	downloads(1)
	if err := os.Truncate(slots[1].Path, 3); err != nil {
		t.Fatal(err)
	}
	if err := slots[1].CheckSize(); err == nil || !strings.Contains(err.Error(), "damaged: 3 bytes") {
		t.Errorf("a library of another size: %v", err)
	}
	downloads(2)
	slots[1].Pins = []Pin{pip}
	slots[1].Pins[0].SHA256 = strings.Repeat("0", 64)
	if err := InstallAll(context.Background(), slots, InstallOptions{}); err == nil ||
		!strings.Contains(err.Error(), "it is not used") {
		t.Errorf("a library with another hash: %v", err)
	}
	slots[1].Path += ".missing"
	if err := slots[1].CheckSize(); err == nil || !strings.Contains(err.Error(), "b.so.missing is missing") {
		t.Errorf("a missing library: %v", err)
	}
}
