// Commands write complete files and folders, and overwrite nothing of the user.

package cli

import (
	"image"
	"image/png"
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

// writer is a command that writes one file or a folder.
type writer struct {
	args   string
	out    string            // a valid name of the file, or a required file of the folder
	inputs []string          // what the command of a file reads
	by     fileio.FolderKind // of a folder; empty: the folder is not marked
}

// to returns the command line that writes to a path.
func (w *writer) to(path string) string { return strings.Replace(w.args, place, path, 1) }

// fileWriters are all commands that write one file. The first input of a row has the extension that
// the output needs, if it needs one.
var fileWriters = []writer{
	{"predict build bags.csv -o OUT", "p.csv", []string{"bags.csv", "build/model.onnx"}, ""},
	{"data synth prototypes --bags 10 -o OUT", "s.npz", nil, ""},
	{"data synth sival6-mipl --source source -o OUT", "s.csv.gz", []string{"source/mil/sival6/instances.csv.gz"}, ""},
	{"data bags --generator row images -o OUT", "b.npz", []string{"images/x/1.png"}, ""},
	{"data crowd w1.csv w2.csv w3.csv -o OUT", "c.csv", []string{"w2.csv"}, ""},
	{"data crowd w1.csv w2.csv w3.csv --bags bags.csv -o OUT", "cb.csv", []string{"bags.csv", "w3.csv"}, ""},
	{"data import bags.csv OUT", "i.csv", []string{"bags.csv"}, ""},
	{"data inspect bags.csv --bag a --svg OUT", "d.svg", []string{"bags.csv"}, ""},
}

// folderWriters are all commands that write a folder.
var folderWriters = []writer{
	{"init OUT", "model.yaml", nil, ""},
	{"build quickstart -o OUT", "graph.txt", nil, fileio.BuildFolder},
	{"train quickstart -o OUT --set train.epochs=1", "spec.yaml", nil, fileio.RunFolder},
	{"experiment e.yaml -o OUT", "plan.json", nil, fileio.ExperimentFolder},
	{"experiment plan e.yaml -o OUT", "shards.json", nil, fileio.ExperimentFolder},
	{"report done -o OUT", "report.md", nil, fileio.ReportFolder},
	{"gen go build --package m -o OUT", "m.go", nil, ""},
	{"export build --name m --triton OUT", "m/config.pbtxt", nil, ""},
	{"export build --docker OUT", "Dockerfile", nil, ""},
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
	if err := filepath.WalkDir(".", func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if found[path] = d.Type().String(); d.Type().IsRegular() {
			text, err := os.ReadFile(path)
			found[path] = string(text)
			return err
		}
		if d.Type()&os.ModeSymlink != 0 {
			found[path], err = os.Readlink(path)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return found
}

// unchanged fails the test if a file appeared, vanished or changed.
func unchanged(t *testing.T, args string, want map[string]string) {
	t.Helper()
	got := contents(t)
	for name := range got {
		if _, there := want[name]; !there {
			t.Errorf("miplc %s: there is a new file %s", args, name)
		}
	}
	for name, text := range want {
		if got[name] != text {
			t.Errorf("miplc %s: unexpected content of %s", args, name)
		}
	}
}

// refused runs a command that must fail with a message and change nothing.
func refused(t *testing.T, args, want string) {
	t.Helper()
	before := contents(t)
	if errs := do(t, 1, args); !strings.Contains(errs, want) {
		t.Errorf("miplc %s: %q, want ...%s...", args, errs, want)
	}
	unchanged(t, args, before)
}

// A command that writes one file rejects paths that it must not replace, and changes nothing. All write through package
// fileio, whose tests try each obstacle, so that here one command meets most of them, and the others meet a file and
// links to what they read.
func TestFilesThatStay(t *testing.T) {
	workshop(t)
	put(t, "old", "old")
	for i, w := range fileWriters {
		try := func(want, flags string, err error) {
			t.Helper()
			if err != nil {
				t.Logf("%s: %v", w.out, err) // the system has no links
				return
			}
			refused(t, w.to(w.out)+flags, want)
			if err := os.Remove(w.out); err != nil {
				t.Fatal(err)
			}
		}
		try("exists already", "", os.Symlink("old", w.out))
		if i == 0 {
			try("exists already", "", os.Link("old", w.out))
			try("is a folder", " --force", os.Mkdir(w.out, 0o755))
			try("write-protected", " --force", os.WriteFile(w.out, nil, 0o444))
			try("which is read", " --force", os.Link(w.inputs[0], w.out))
		}
		for _, input := range w.inputs {
			try("which is read", " --force", os.Symlink(input, w.out))
			if filepath.Ext(input) == filepath.Ext(w.out) { // by its own name
				refused(t, w.to("build/../"+input)+" --force", "which is read")
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
		want := contents(t)
		do(t, 0, w.to("new/"+w.out))
		content := contents(t)["new/"+w.out]
		if content == "" {
			t.Errorf("miplc %s: no file was written", w.args)
		}
		put(t, "new/"+w.out, "old")
		link := w.out
		if err := os.Symlink("new/"+w.out, link); err != nil {
			t.Log(err)
			link = "new/" + w.out
		}
		do(t, 0, w.to(link)+" --force")
		want[link], want["new/"+w.out] = "new/"+w.out, content
		unchanged(t, w.args, want)
	}
}

// A command that writes a folder overwrites no file of the user, even with --force, no folder of
// another command, and no folder in use.
func TestFoldersThatStay(t *testing.T) {
	workshop(t)
	put(t, "file", "mine")
	for _, w := range folderWriters {
		put(t, "mine/"+w.out, "mine")
		put(t, "mine/figures/figure-1.svg", "mine")
		refusals := map[string]string{"mine": w.out, "file": "is a file", "file/below": ""}
		if w.by == "" {
			refusals["file"] = "not a directory"
		} else {
			other := fileio.ReportFolder
			if w.by == fileio.ReportFolder {
				other = fileio.RunFolder
			}
			marked(t, "other", other).Close()
			marked(t, "busy", w.by)
			refusals["other"], refusals["busy"] = "was written by miplc "+string(other), "another process of miplc is at work"
		}
		for dir, want := range refusals {
			refused(t, w.to(dir), want)
			if strings.Contains(w.args, "quickstart") {
				refused(t, w.to(dir)+" --force", want)
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
		return slices.ContainsFunc(slices.Concat(fileWriters, folderWriters), func(w writer) bool {
			return strings.HasPrefix(w.args, path)
		})
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
