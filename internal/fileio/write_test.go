// Files appear complete, and never over files of the user.

package fileio

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// folder returns a new folder with the files.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// tree returns the contents of all files below a folder, by name.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		switch {
		case d.IsDir():
			found[name+"/"] = ""
		case d.Type().IsRegular():
			content, err := os.ReadFile(path)
			found[name] = string(content)
			return err
		default:
			found[name] = d.Type().String()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func holds(t *testing.T, dir string, want map[string]string) {
	t.Helper()
	got := tree(t, dir)
	for name, content := range want {
		if have, there := got[name]; !there || have != content {
			t.Errorf("%s: %q, want %q", name, have, content)
		}
		delete(got, name)
	}
	if len(got) > 0 {
		t.Errorf("left in the folder: %v", got)
	}
}

func link(t *testing.T, to, path string) {
	t.Helper()
	if err := os.Symlink(to, path); err != nil {
		t.Skipf("no symbolic link can be made here: %v", err)
	}
}

// A refused file stays unchanged, and no temporary file is left.
func TestRefused(t *testing.T) {
	long := strings.Repeat("n", 300)
	cases := []struct {
		name, path, want string
		prepare          func(dir string) error
		options          WriteOptions
	}{
		{"there", "a", "--force", nil, WriteOptions{}},
		{"link to what is there", "l", "--force", func(d string) error { return os.Symlink("a", filepath.Join(d, "l")) },
			WriteOptions{}},
		{"input", "a", "is read", nil, WriteOptions{Force: true, Inputs: []string{"a"}}},
		{"input, spelt otherwise", "sub/../a", "is read", nil, WriteOptions{Force: true, Inputs: []string{"a"}}},
		{"hard link to an input", "h", "is read", func(d string) error {
			return os.Link(filepath.Join(d, "a"), filepath.Join(d, "h"))
		}, WriteOptions{Force: true, Inputs: []string{"a"}}},
		{"link to an input", "l", "is read", func(d string) error { return os.Symlink("a", filepath.Join(d, "l")) },
			WriteOptions{Force: true, Inputs: []string{"a"}}},
		{"input through a link", "a", "is read", func(d string) error { return os.Symlink("a", filepath.Join(d, "l")) },
			WriteOptions{Force: true, Inputs: []string{"l"}}},
		{"folder", "sub", "is a folder", nil, WriteOptions{Force: true}},
		{"link to a folder", "l", "is a folder", func(d string) error { return os.Symlink("sub", filepath.Join(d, "l")) },
			WriteOptions{Force: true}},
		{"name of a folder", "new/", "is not a file name", nil, WriteOptions{Force: true}},
		{"file as folder", "a/b", "not a directory", nil, WriteOptions{Force: true}},
		{"file above the folder", "a/b/c", "not a directory", nil, WriteOptions{Force: true}},
		{"write-protected", "a", "write-protected", func(d string) error { return os.Chmod(filepath.Join(d, "a"), 0o444) },
			WriteOptions{Force: true}},
		{"links in a circle", "l", "too many", func(d string) error { return os.Symlink("l", filepath.Join(d, "l")) },
			WriteOptions{Force: true}},
		{"name too long", long, "name too long", nil, WriteOptions{}},
		{"name too long in a new folder", "x/y/" + long, "name too long", nil, WriteOptions{}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			dir := folder(t, map[string]string{"a": "old", "sub/b": "other"})
			t.Chdir(dir)
			if c.prepare != nil {
				if err := c.prepare(dir); err != nil {
					t.Skipf("no such file can be made here: %v", err)
				}
			}
			before := tree(t, dir)
			err := Write(c.path, []byte("new"), c.options)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
			holds(t, dir, before)
		})
	}
}

// An allowed write goes to the target, and links remain links.
func TestWritten(t *testing.T) {
	cases := []struct {
		name, path string
		links      [][2]string
		force      bool
		want       map[string]string // besides the links
	}{
		{"new", "n", nil, false, map[string]string{"n": "new"}},
		{"new folders", "x/y/n", nil, false, map[string]string{"x/": "", "x/y/": "", "x/y/n": "new"}},
		{"replaced", "a", nil, true, map[string]string{"a": "new"}},
		{"link", "l", [][2]string{{"a", "l"}}, true, map[string]string{"a": "new"}},
		{"chain of links", "l", [][2]string{{"m", "l"}, {"sub/b", "m"}}, true, map[string]string{"sub/b": "new"}},
		{"link to nothing", "l", [][2]string{{"sub/n", "l"}}, false, map[string]string{"sub/n": "new"}},
		{"link in a linked folder", "d/l", [][2]string{{"sub/deep", "d"}, {"../c", "sub/deep/l"}}, false,
			map[string]string{"sub/c": "new"}},
		{"hidden", ".n", nil, false, map[string]string{".n": "new"}},
		{"as long as it gets", strings.Repeat("n", 255), nil, false, map[string]string{strings.Repeat("n", 255): "new"}},
		{"line breaks", "n\nn.csv", nil, false, map[string]string{"n\nn.csv": "new"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			dir := folder(t, map[string]string{"a": "old", "sub/b": "other", "sub/deep/x": ""})
			t.Chdir(dir)
			for _, l := range c.links {
				link(t, l[0], l[1])
			}
			want := tree(t, dir)
			for name, content := range c.want {
				want[name] = content
			}
			if err := Write(c.path, []byte("new"), WriteOptions{Force: c.force}); err != nil {
				t.Fatal(err)
			}
			holds(t, dir, want)
		})
	}
}

// A file that appears while another one of the same name is written is not replaced.
func TestAppearsMeanwhile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	f, err := Create(path, WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("other"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := f.Commit(); err == nil || !strings.Contains(err.Error(), "exists already") {
		t.Errorf("error %v", err)
	}
	f.Discard()
	holds(t, dir, map[string]string{"a": "other"})
}

// Discard removes the temporary file and the folders that Create made.
func TestDiscard(t *testing.T) {
	dir := folder(t, map[string]string{"a": "old"})
	for _, name := range []string{"a", "x/y/b"} {
		f, err := Create(filepath.Join(dir, name), WriteOptions{Force: true})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte("half")); err != nil {
			t.Fatal(err)
		}
		f.Discard()
		f.Discard()
	}
	holds(t, dir, map[string]string{"a": "old"})
}

func TestSweep(t *testing.T) {
	dir := folder(t, map[string]string{"a.csv": "", ".a.csv": "", ".a.miplc-0123.csv": "", ".a.miplc-0123456z.csv": "",
		".b.miplc-01234567.csv": ""})
	want := tree(t, dir)
	f, release, err := createTemp(dir, "a.csv")
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	defer release()
	if len(tree(t, dir)) != len(want)+1 {
		t.Fatal("no temporary file")
	}
	if err := Sweep(filepath.Join(dir, "a.csv")); err != nil {
		t.Fatal(err)
	}
	holds(t, dir, want)
	if err := Sweep(filepath.Join(dir, "none", "a.csv")); err != nil {
		t.Error(err)
	}
}
