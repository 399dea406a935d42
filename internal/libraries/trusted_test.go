//go:build unix

// Files that others can change are not loaded.

package libraries

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// home returns a folder that belongs to the user.
func home(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func put(t *testing.T, path string, mode os.FileMode) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("x"), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func chmod(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func TestCheckTrust(t *testing.T) {
	for _, c := range []struct {
		name string
		make func(t *testing.T, dir string) string
		want string // in the error; empty: the file is accepted
	}{
		{"the user's file", func(t *testing.T, dir string) string { return put(t, dir+"/lib/a.so", 0o644) }, ""},
		{"a sticky folder above", func(t *testing.T, dir string) string {
			path := put(t, dir+"/tmp/own/a.so", 0o644)
			chmod(t, dir+"/tmp", 0o777|os.ModeSticky)
			return path
		}, ""},
		{"an open file", func(t *testing.T, dir string) string { return put(t, dir+"/a.so", 0o666) },
			"every user can write to"},
		{"an open folder", func(t *testing.T, dir string) string {
			path := put(t, dir+"/open/a.so", 0o644)
			chmod(t, dir+"/open", 0o777)
			return path
		}, "every user can write to"},
		{"a sticky folder, which anyone can add files to", func(t *testing.T, dir string) string {
			path := put(t, dir+"/tmp/a.so", 0o644)
			chmod(t, dir+"/tmp", 0o777|os.ModeSticky)
			return path
		}, "every user can write to"},
		{"an open folder above", func(t *testing.T, dir string) string {
			path := put(t, dir+"/open/below/a.so", 0o644)
			chmod(t, dir+"/open", 0o777)
			return path
		}, "/open"},
		{"a link in an open folder", func(t *testing.T, dir string) string {
			path := put(t, dir+"/lib/a.so", 0o644)
			put(t, dir+"/open/x", 0o644)
			chmod(t, dir+"/open", 0o777)
			if err := os.Symlink(path, dir+"/open/a.so"); err != nil {
				t.Fatal(err)
			}
			return dir + "/open/a.so"
		}, "/open"},
		{"a link to an open file", func(t *testing.T, dir string) string {
			path := put(t, dir+"/open.so", 0o666)
			if err := os.Symlink(path, dir+"/a.so"); err != nil {
				t.Fatal(err)
			}
			return dir + "/a.so"
		}, "/open.so"},
		{"a link to a link in an open folder", func(t *testing.T, dir string) string {
			path := put(t, dir+"/lib/a.so", 0o644)
			put(t, dir+"/open/x", 0o644)
			chmod(t, dir+"/open", 0o777)
			if err := errors.Join(os.Symlink("lib/a.so", dir+"/open.so"), os.Symlink("../lib/a.so", dir+"/open/a.so"),
				os.Symlink("open/a.so", dir+"/a.so")); err != nil {
				t.Fatal(err)
			}
			if err := CheckTrust(dir + "/open.so"); err != nil {
				t.Errorf("a link to %s is rejected: %v", path, err)
			}
			return dir + "/a.so"
		}, "/open"},
		{"a link to itself", func(t *testing.T, dir string) string {
			if err := os.Symlink("a.so", dir+"/a.so"); err != nil {
				t.Fatal(err)
			}
			return dir + "/a.so"
		}, "more than 40 symbolic links"},
		{"a folder", func(t *testing.T, dir string) string { return dir }, "not a regular file"},
		{"a relative path", func(t *testing.T, dir string) string {
			put(t, dir+"/a.so", 0o644)
			t.Chdir(dir)
			return "a.so"
		}, "working folder"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := CheckTrust(c.make(t, home(t)))
			switch {
			case c.want == "" && err != nil:
				t.Errorf("rejected: %v", err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("%v, want ...%s...", err, c.want)
			}
		})
	}
}

// Files of another user are rejected even if nobody else can write to them, and so are files in the
// folders of another user. Without root the test checks the reverse: another user checks a file of
// this user.
func TestFilesOfOtherUsers(t *testing.T) {
	const nobody = 65534
	dir := home(t)
	path := put(t, dir+"/lib/a.so", 0o644)
	if os.Geteuid() != 0 {
		if err := check(path, nobody); err == nil || !strings.Contains(err.Error(), "belongs to") {
			t.Errorf("%v", err)
		}
		return
	}
	if err := check(path, nobody); err != nil {
		t.Errorf("a file of root is rejected: %v", err)
	}
	if err := os.Chown(path, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	if err := CheckTrust(path); err == nil || !strings.Contains(err.Error(), "belongs to") {
		t.Errorf("a file of another user: %v", err)
	}
	if err := check(path, nobody); err != nil {
		t.Errorf("the user's own file is rejected: %v", err)
	}
	if err := os.Chown(path, 0, 0); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(dir+"/lib", nobody, nobody); err != nil {
		t.Fatal(err)
	}
	if err := CheckTrust(path); err == nil || !strings.Contains(err.Error(), dir+"/lib belongs to") {
		t.Errorf("a file in the folder of another user: %v", err)
	}
}
