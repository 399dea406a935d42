// Commands write complete files and folders, and overwrite nothing of the user.

package cli

import (
	"image"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/miplc/miplc/internal/fileio"
	"github.com/miplc/miplc/internal/onnxruntime"
	"github.com/miplc/miplc/internal/testkit/enginetest"
)

// place is the placeholder for the output in the arguments of the commands below.
const place = "OUT"

type fileWriter struct {
	args   string
	out    string   // a valid name of the output
	inputs []string // what it reads
}

// to returns the command line that writes to a path.
func (w *fileWriter) to(path string) string { return strings.Replace(w.args, place, path, 1) }

// fileWriters are all commands that write one file. The first input of a row has the extension that
// the output needs, if it needs one.
var fileWriters = []fileWriter{
	{"predict build bags.csv -o OUT", "p.csv", []string{"bags.csv", "build/model.onnx"}},
	{"data synth prototypes --bags 10 -o OUT", "s.npz", nil},
	{"data synth sival6-mipl --source source -o OUT", "s.csv.gz", []string{"source/mil/sival6/instances.csv.gz"}},
	{"data bags --generator row images -o OUT", "b.npz", []string{"images/x/1.png"}},
	{"data crowd w1.csv w2.csv w3.csv -o OUT", "c.csv", []string{"w2.csv"}},
	{"data crowd w1.csv w2.csv w3.csv --bags bags.csv -o OUT", "cb.csv", []string{"bags.csv", "w3.csv"}},
	{"data import bags.csv OUT", "i.csv", []string{"bags.csv"}},
	{"data inspect bags.csv --bag a --svg OUT", "d.svg", []string{"bags.csv"}},
}

type folderWriter struct {
	args, file string
	by         fileio.FolderKind // empty: the folder is not marked
}

func (w *folderWriter) to(dir string) string { return strings.Replace(w.args, place, dir, 1) }

// folderWriters are all commands that write a folder, each with a required file of that folder.
var folderWriters = []folderWriter{
	{"init OUT", "model.yaml", ""},
	{"build quickstart -o OUT", "graph.txt", fileio.BuildFolder},
	{"train quickstart -o OUT --set train.epochs=1", "spec.yaml", fileio.RunFolder},
	{"experiment e.yaml -o OUT", "plan.json", fileio.ExperimentFolder},
	{"experiment plan e.yaml -o OUT", "shards.json", fileio.ExperimentFolder},
	{"report done -o OUT", "report.md", fileio.ReportFolder},
	{"gen go build --package m -o OUT", "m.go", ""},
	{"export build --name m --triton OUT", "m/config.pbtxt", ""},
	{"export build --docker OUT", "Dockerfile", ""},
}

const (
	bagsText   = "bag,label,candidates,f1,f2\na,x,x y,0.5,1.5\na,x,x y,0.5,2\nb,y,x y,0.25,1\nc,x,x,1,1\n"
	workerText = "image,x,y\na,0.6,0.4\nb,0.5,0.5\nc,1,0\n"
	smallTable = `name: e
data: [{name: P, synth: {set: prototypes, bags: 20, features: 4}}]
learners: [{name: demipl, spec: demipl, set: {train.epochs: 1, train.engine: gorgonia}}]
splits: {count: 1}
`
)

// workshop creates a folder with the input files of the commands above and makes it the working
// directory of the test.
func workshop(t *testing.T) string {
	t.Helper()
	t.Setenv(onnxruntime.EnvLibrary, enginetest.Library(t))
	dir := t.TempDir()
	t.Chdir(dir)
	for name, content := range map[string]string{
		"bags.csv": bagsText, "w1.csv": workerText, "w2.csv": workerText, "w3.csv": workerText, "e.yaml": smallTable,
		"m.yaml": "name: m\nextends: quickstart\ndata: {set: bags.csv}\n", "source/mil/sival6/instances.csv.gz": "none",
	} {
		put(t, name, content)
	}
	for _, name := range []string{"images/x/1.png", "images/y/2.png"} {
		put(t, name, "")
		f, err := os.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := png.Encode(f, image.NewGray(image.Rect(0, 0, 72, 64))); err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	do(t, 0, "build m.yaml -o build")
	do(t, 0, "experiment e.yaml -o done")
	return dir
}

func put(t *testing.T, name, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// do runs a command, which must end with the exit code, and returns its standard error.
func do(t *testing.T, code int, args string) string {
	t.Helper()
	con, _, errs := newConsole(nil)
	if got := Main(strings.Fields(args), con); got != code {
		t.Errorf("miplc %s: exit code %d, want %d\n%s", args, got, code, errs)
	}
	return errs.String()
}

// contents returns all files below the working folder, and the targets of links.
func contents(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(".", func(path string, d os.DirEntry, err error) error {
		switch {
		case err != nil || d.IsDir():
			return err
		case d.Type()&os.ModeSymlink != 0:
			found[path], err = os.Readlink(path)
		case d.Type().IsRegular():
			var text []byte
			text, err = os.ReadFile(path)
			found[path] = string(text)
		default:
			found[path] = d.Type().String()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// differ returns the names of the files in which two states differ.
func differ(a, b map[string]string) []string {
	var names []string
	for name := range maps.Keys(a) {
		if other, there := b[name]; !there || other != a[name] {
			names = append(names, name)
		}
	}
	for name := range maps.Keys(b) {
		if _, there := a[name]; !there {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// A command that writes one file rejects paths that it must not replace, and changes nothing. All write through package
// fileio, so that one command meets every obstacle, and the others meet a file and links to what they read.
func TestFilesThatStay(t *testing.T) {
	workshop(t)
	put(t, "old", "old")
	for i, w := range fileWriters {
		type obstacle struct {
			name, want string
			make       func(path string) error
			force      bool
		}
		cases := []obstacle{
			{"there", "exists already", func(p string) error { return os.Link("old", p) }, false},
			{"link to what is there", "exists already", func(p string) error { return os.Symlink("old", p) }, false},
			{"folder", "is a folder", func(p string) error { return os.Mkdir(p, 0o755) }, true},
			{"write-protected", "write-protected", func(p string) error { return os.WriteFile(p, nil, 0o444) }, true},
		}
		if i > 0 {
			cases = cases[:1]
		}
		for _, input := range w.inputs {
			cases = append(cases,
				obstacle{"link to " + input, "which is read", func(p string) error { return os.Symlink(input, p) }, true})
			if i == 0 {
				cases = append(cases,
					obstacle{"hard link to " + input, "which is read", func(p string) error { return os.Link(input, p) }, true})
			}
		}
		for _, c := range cases {
			if err := c.make(w.out); err != nil {
				t.Logf("%s: %v", c.name, err) // the system has no links
				continue
			}
			before := contents(t)
			args := w.to(w.out)
			if c.force {
				args += " --force"
			}
			if errs := do(t, 1, args); !strings.Contains(errs, c.want) {
				t.Errorf("miplc %s, %s: %q, want ...%s...", args, c.name, errs, c.want)
			}
			if names := differ(before, contents(t)); names != nil {
				t.Errorf("miplc %s, %s: changed %q", args, c.name, names)
			}
			if err := os.Remove(w.out); err != nil {
				t.Fatal(err)
			}
		}
		for _, input := range w.inputs { // by their own names
			if filepath.Ext(input) != filepath.Ext(w.out) {
				continue
			}
			before := contents(t)
			for _, spelling := range []string{input, "build/../" + input} {
				args := w.to(spelling) + " --force"
				if errs := do(t, 1, args); !strings.Contains(errs, "which is read") {
					t.Errorf("miplc %s: %q", args, errs)
				}
			}
			if names := differ(before, contents(t)); names != nil {
				t.Errorf("miplc %s over %s: changed %q", w.args, input, names)
			}
		}
	}
}

// A command writes a complete file, by its name or through a link, and no other file.
func TestFilesThatAreWritten(t *testing.T) {
	workshop(t)
	for _, w := range fileWriters {
		if strings.Contains(w.args, "sival6") { // its source file is not real
			continue
		}
		before := contents(t)
		do(t, 0, w.to("new/"+w.out))
		content := contents(t)["new/"+w.out]
		if content == "" {
			t.Errorf("miplc %s: no file was written", w.args)
		}
		put(t, "new/"+w.out, "old")
		do(t, 0, w.to("new/"+w.out)+" --force")
		before["new/"+w.out] = content
		links := map[string]string{"link-" + w.out: "new/" + w.out, "dangling-" + w.out: "new/second-" + w.out}
		for link, to := range links {
			if err := os.Symlink(to, link); err != nil {
				t.Logf("%v", err)
				continue
			}
			put(t, "new/"+w.out, "old")
			do(t, 0, w.to(link)+" --force")
			do(t, 0, w.to("new/"+w.out)+" --force")
			before[link], before[to] = to, content
		}
		if names := differ(before, contents(t)); names != nil {
			t.Errorf("miplc %s: unexpected content of %q", w.args, names)
		}
	}
}

// A command that writes a folder overwrites no file of the user, even with --force, no folder of
// another command, and no folder in use.
func TestFoldersThatStay(t *testing.T) {
	workshop(t)
	put(t, "file", "mine")
	for _, w := range folderWriters {
		put(t, "mine/"+w.file, "mine")
		put(t, "mine/figures/figure-1.svg", "mine")
		flags := []string{""}
		if strings.Contains(w.args, "quickstart") {
			flags = append(flags, " --force")
		}
		type refusal struct{ dir, want string }
		refusals := []refusal{{"mine", w.file}, {"file", "is a file"}, {"file/below", ""}}
		if w.by == "" {
			refusals[1].want = "not a directory"
		} else {
			other := fileio.ReportFolder
			if w.by == fileio.ReportFolder {
				other = fileio.RunFolder
			}
			marked(t, "other", other).Close()
			marked(t, "busy", w.by)
			refusals = append(refusals, refusal{"other", "was written by miplc " + string(other)},
				refusal{"busy", "another process of miplc is at work"})
		}
		for _, r := range refusals {
			for _, force := range flags {
				before := contents(t)
				args := w.to(r.dir) + force
				if errs := do(t, 1, args); !strings.Contains(errs, r.want) {
					t.Errorf("miplc %s: %q, want ...%s...", args, errs, r.want)
				}
				if names := differ(before, contents(t)); names != nil {
					t.Errorf("miplc %s: changed %q", args, names)
				}
			}
		}
		for _, dir := range []string{"mine", "other", "busy"} {
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// marked claims a folder.
func marked(t *testing.T, dir string, by fileio.FolderKind) *fileio.Folder {
	t.Helper()
	dir, err := filepath.Abs(dir) // the clean-up runs in another working folder
	if err != nil {
		t.Fatal(err)
	}
	f, err := fileio.LockFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	if err := f.Claim(by, []string{"x"}, nil); err != nil {
		t.Fatal(err)
	}
	return f
}

// Every command that writes files is in the tables above.
func TestAllWritersAreTried(t *testing.T) {
	tried := func(path string) bool {
		path = strings.TrimPrefix(path, "miplc ") + " "
		return slices.ContainsFunc(fileWriters, func(w fileWriter) bool { return strings.HasPrefix(w.args, path) }) ||
			slices.ContainsFunc(folderWriters, func(w folderWriter) bool { return strings.HasPrefix(w.args, path) })
	}
	con, _, _ := newConsole(nil)
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
		writes := cmd.Flags().Lookup("output") != nil || cmd.Flags().Lookup("svg") != nil ||
			cmd.Flags().Lookup("force") != nil || strings.Contains(cmd.Use, "OUT") || cmd.Name() == "init"
		if path := cmd.CommandPath(); writes && path != "miplc runtime install" && !tried(path) {
			t.Errorf("%s writes files and is not in the tables of this test", path)
		}
	}
	walk(newRoot(con))
}
