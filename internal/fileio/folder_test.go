// Nothing of the user is deleted in folders of results.

package fileio

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var runFiles = []string{"last.json", "model.onnx", "plots/loss.svg"}

// writeNames writes files whose contents are their names.
func writeNames(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// list returns the names of all files below a folder, and of folders with a slash.
func list(t *testing.T, dir string) []string {
	t.Helper()
	return slices.Sorted(maps.Keys(tree(t, dir)))
}

func locked(t *testing.T, dir string) *Folder {
	t.Helper()
	f, err := LockFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return f
}

// claimed returns a folder with a run and files of the user.
func claimed(t *testing.T) *Folder {
	t.Helper()
	dir := t.TempDir()
	writeNames(t, dir, "notes.txt", "plots/mine.svg")
	f := locked(t, dir)
	if err := f.Claim(RunFolder, runFiles, nil); err != nil {
		t.Fatal(err)
	}
	writeNames(t, dir, runFiles...)
	return f
}

// Claim and Restart remove the files that the mark lists, and no file of the user.
func TestClaim(t *testing.T) {
	for name, c := range map[string]struct {
		act  func(f *Folder) error
		want []string
	}{
		"again": {func(f *Folder) error { return f.Claim(RunFolder, runFiles, nil) }, []string{"last.json",
			"model.onnx", "plots/loss.svg"}},
		"other kind": {func(f *Folder) error { return f.Claim(BuildFolder, []string{"model.onnx"}, nil) },
			[]string{"model.onnx"}},
		"more files": {func(f *Folder) error { return f.Claim(RunFolder, append(slices.Clone(runFiles), "new"), nil) },
			[]string{"last.json", "model.onnx", "plots/loss.svg"}},
		"restart":     {func(f *Folder) error { return f.Restart(RunFolder, runFiles, nil) }, nil},
		"clear":       {func(f *Folder) error { return f.Clear() }, nil},
		"clear twice": {func(f *Folder) error { f.Clear(); return f.Clear() }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := claimed(t)
			if err := c.act(f); err != nil {
				t.Fatal(err)
			}
			want := append([]string{"notes.txt", "plots/", "plots/mine.svg", lockFile}, c.want...)
			if f.Mark != nil {
				want = append(want, MarkFile)
			}
			slices.Sort(want)
			if got := list(t, f.Dir); !slices.Equal(got, want) {
				t.Errorf("left %q, want %q", got, want)
			}
			if again, err := ReadMark(f.Dir); err != nil || (again == nil) != (f.Mark == nil) || again != nil &&
				(again.By != f.Mark.By || !slices.Equal(again.Files, f.Mark.Files)) {
				t.Errorf("the mark is %+v, %v; want %+v", again, err, f.Mark)
			}
		})
	}
}

// Claim changes nothing if a file belongs to the user or is an input.
func TestClaimRefused(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(dir string) error
		act     func(f *Folder) error
		want    string
	}{
		"user's file": {nil, func(f *Folder) error {
			return f.Claim(RunFolder, append(slices.Clone(runFiles), "notes.txt"), nil)
		}, "no mark of miplc lists: notes.txt"},
		"user's file, restart": {nil, func(f *Folder) error {
			return f.Restart(RunFolder, []string{"plots/mine.svg", "notes.txt"}, nil)
		}, "lists: plots/mine.svg, notes.txt"},
		"user's link": {func(d string) error { return os.Symlink("nowhere", filepath.Join(d, "l")) },
			func(f *Folder) error { return f.Claim(RunFolder, []string{"l"}, nil) }, "lists: l"},
		"file that is read": {nil, func(f *Folder) error {
			return f.Restart(RunFolder, runFiles, []string{filepath.Join(f.Dir, "model.onnx")})
		}, "model.onnx is read"},
		"old file that is read": {nil, func(f *Folder) error {
			return f.Claim(BuildFolder, []string{"x"}, []string{filepath.Join(f.Dir, "model.onnx")})
		}, "model.onnx is read"},
		"hard link to it": {func(d string) error {
			return os.Link(filepath.Join(d, "model.onnx"),
				filepath.Join(d, "notes.onnx"))
		},
			func(f *Folder) error {
				return f.Restart(RunFolder, runFiles, []string{filepath.Join(f.Dir, "notes.onnx")})
			}, "model.onnx is read"},
	} {
		t.Run(name, func(t *testing.T) {
			f := claimed(t)
			if c.prepare != nil {
				if err := c.prepare(f.Dir); err != nil {
					t.Skipf("no such file can be made here: %v", err)
				}
			}
			before := list(t, f.Dir)
			if err := c.act(f); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
			if after := list(t, f.Dir); !slices.Equal(before, after) {
				t.Errorf("left %q of %q", after, before)
			}
		})
	}
}

// A folder belongs to one process at a time, whatever its spelling.
func TestLock(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	first := locked(t, dir)
	link := filepath.Join(t.TempDir(), "link")
	places := []string{dir, filepath.Join(dir, "..", "b")}
	if os.Symlink(dir, link) == nil {
		places = append(places, link)
	}
	for _, place := range places {
		if f, err := LockFolder(place); err == nil || !strings.Contains(err.Error(), "another process of miplc is at work") {
			t.Errorf("%s: %v, %v", place, f, err)
		}
	}
	first.Close()
	if _, err := os.Stat(filepath.Dir(dir)); err == nil {
		t.Error("empty folders that LockFolder created were not removed")
	}
	own := t.TempDir()
	locked(t, own).Close()
	if left := list(t, own); len(left) > 0 {
		t.Errorf("left %q", left)
	}
}

// Processes that lock and unlock a folder in parallel never have it at the same time.
func TestLockRace(t *testing.T) {
	dir := t.TempDir()
	held := make(chan bool, 1)
	done := make(chan error)
	for range 8 {
		go func() {
			for range 200 {
				f, err := LockFolder(dir)
				if err != nil {
					if !strings.Contains(err.Error(), "another process") {
						done <- err
						return
					}
					continue
				}
				select {
				case held <- true:
					<-held
				default:
					t.Error("two locks of one folder")
				}
				f.Close()
			}
			done <- nil
		}()
	}
	for range 8 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// A mark that miplc cannot have written is an error.
func TestDamagedMark(t *testing.T) {
	for _, text := range []string{"", "{", `{"written_by": "train", "files": ["../notes.txt"]}`,
		`{"files": ["/etc/passwd"]}`, `{"files": [""]}`} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, MarkFile), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadMark(dir); err == nil || !strings.Contains(err.Error(), MarkFile) {
			t.Errorf("%q: %v", text, err)
		}
		if f, err := LockFolder(dir); err == nil {
			t.Errorf("%q: locked %v", text, f)
		}
		if left := list(t, dir); !slices.Equal(left, []string{MarkFile}) {
			t.Errorf("left %q", left)
		}
	}
}

// A link in a folder from a stranger does not lead to files outside of it.
func TestMarkOfLinkedFolder(t *testing.T) {
	outside, dir := t.TempDir(), t.TempDir()
	victim := filepath.Join(outside, "victim")
	if err := errors.Join(os.WriteFile(victim, nil, 0o666), os.Symlink(outside, filepath.Join(dir, "out")),
		os.WriteFile(filepath.Join(dir, MarkFile), []byte(`{"written_by": "train", "files": ["out/victim"]}`),
			0o666)); err != nil {
		t.Fatal(err)
	}
	_, err := ClaimFolder(dir, func(f *Folder) error { return f.Restart(RunFolder, []string{"a"}, nil) })
	if err == nil || !strings.Contains(err.Error(), "out/victim") {
		t.Errorf("a mark that lists a file outside: %v", err)
	}
	if _, err := os.Stat(victim); err != nil {
		t.Errorf("the file outside of the folder: %v", err)
	}
}

// Claim removes the temporary files of killed processes and no similar ones.
func TestClaimSweeps(t *testing.T) {
	f := claimed(t)
	writeNames(t, f.Dir, ".model.miplc-89abcdef.onnx", "plots/.loss.miplc-00000000.svg", "..miplc.miplc-12345678.json",
		".model.onnx.bak")
	if err := f.Claim(RunFolder, runFiles, nil); err != nil {
		t.Fatal(err)
	}
	for _, name := range list(t, f.Dir) {
		if strings.Contains(name, ".miplc-") {
			t.Errorf("%s is left", name)
		}
	}
	if _, err := os.Stat(filepath.Join(f.Dir, ".model.onnx.bak")); err != nil {
		t.Error(err)
	}
}

// No folder named ~ appears in the working directory.
func TestHomeFolder(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, path := range []string{"~", "~/run", filepath.Join("~", "a", "b")} {
		if _, err := LockFolder(path); err == nil || !strings.Contains(err.Error(), "~ is the home folder only if a shell") {
			t.Errorf("%s: %v", path, err)
		}
	}
	if err := Write("~/p.csv", nil, WriteOptions{}); err == nil {
		t.Error("~/p.csv was written")
	}
	if _, err := os.Stat("~"); err == nil {
		t.Error("there is a folder ~")
	}
}

func TestNotAFolder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := Replace(file, nil); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{file, filepath.Join(file, "below")} {
		if _, err := LockFolder(dir); err == nil {
			t.Errorf("%s passed for a folder", dir)
		}
	}
	below := filepath.Join(file, "below")
	if mark, err := ReadMark(below); mark != nil || err != nil {
		t.Errorf("a mark where no folder can be: %v, %v", mark, err)
	}
	_, err := MakeFolder(below)
	for _, want := range []string{"the folder " + below + " cannot be created: ", "choose another folder"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %q", err, want)
		}
	}
}
