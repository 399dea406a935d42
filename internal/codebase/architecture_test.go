package codebase

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/miplc/miplc/internal/testsupport"
)

const (
	module  = "github.com/miplc/miplc/"
	root    = "../.."
	mapFile = root + "/docs/architecture.md"
	remedy  = "go test ./internal/codebase -update"
)

// TestMap holds the table of docs/architecture.md to the imports of the code,
// those of tests left aside. A row speaks for a folder and for the folders below
// it that have no row. Rows stand in the order of the arrows.
func TestMap(t *testing.T) {
	text, err := os.ReadFile(mapFile)
	if err != nil {
		t.Fatal(err)
	}
	lines, rows := readMap(t, string(text))
	drawn := imports(t, rows)
	for i, r := range rows {
		want, there := drawn[r.folder]
		if !there {
			t.Errorf("docs/architecture.md:%d: no package is at %s: delete the row or give it the folder's new name", r.line+1, r.folder)
			continue
		}
		for _, to := range want {
			if at := rowIndex(rows, to); at > i {
				t.Errorf("docs/architecture.md: %s imports %s, which stands below it in the map: arrows go up only. Move the code to where its stage is, or, if the order of the rows is wrong, move the row", r.folder, to)
			}
		}
		if slices.Equal(want, r.imports) {
			continue
		}
		if testsupport.Update() {
			lines[r.line] = r.written(want)
			continue
		}
		t.Errorf("docs/architecture.md:%d: the map says that %s imports\n    %s\nthe code has\n    %s\nIf the change is meant, run `%s` and read the diff; if not, take the import back.",
			r.line+1, r.folder, listed(r.imports), listed(want), remedy)
	}
	if testsupport.Update() && !t.Failed() {
		if err := os.WriteFile(mapFile, []byte(strings.Join(lines, "\n")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// row is one line of the map: a folder, what stands beside it, and the folders
// it imports.
type row struct {
	line    int
	folder  string
	middle  []string // the columns between, kept as they are
	imports []string
}

const mapHead = "| folder | stage | holds | imports |"

func readMap(t *testing.T, text string) (lines []string, rows []row) {
	lines = strings.Split(text, "\n")
	head := slices.Index(lines, mapHead)
	if head < 0 {
		t.Fatalf("docs/architecture.md has no line %q", mapHead)
	}
	for i := head + 2; i < len(lines) && strings.HasPrefix(lines[i], "|"); i++ {
		cells := strings.Split(strings.Trim(lines[i], "|"), "|")
		if len(cells) != 4 {
			t.Fatalf("docs/architecture.md:%d: a row has 4 columns", i+1)
		}
		r := row{line: i, folder: strings.TrimSpace(cells[0]), middle: cells[1:3]}
		if names := strings.TrimSpace(cells[3]); names != "" {
			r.imports = strings.Split(names, ", ")
		}
		rows = append(rows, r)
	}
	return lines, rows
}

// helper reports a row of stage "all", which every folder may import.
func (r row) helper() bool { return strings.TrimSpace(r.middle[0]) == "all" }

func (r row) written(imports []string) string {
	return "| " + r.folder + " |" + strings.Join(r.middle, "|") + "| " + strings.Join(imports, ", ") + " |"
}

func listed(names []string) string {
	if len(names) == 0 {
		return "nothing of ours"
	}
	return strings.Join(names, ", ")
}

func rowIndex(rows []row, folder string) int {
	return slices.IndexFunc(rows, func(r row) bool { return r.folder == folder })
}

// rowOf returns the row with the longest folder that holds the package, or -1.
func rowOf(rows []row, path string) int {
	best := -1
	for i, r := range rows {
		within := path == r.folder || strings.HasPrefix(path, r.folder+"/")
		if within && (best < 0 || len(r.folder) > len(rows[best].folder)) {
			best = i
		}
	}
	return best
}

// imports are, by row, the rows that its packages import, in the order of the map.
func imports(t *testing.T, rows []row) map[string][]string {
	found := make(map[string]map[int]bool)
	all, err := folders()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		from := rowOf(rows, p.path)
		if from < 0 {
			t.Errorf("no row of the map in docs/architecture.md holds %s: add one below all that it imports (| %s | stage | what it holds |  |) and run `%s`", p.path, p.path, remedy)
			continue
		}
		folder := rows[from].folder
		if found[folder] == nil {
			found[folder] = make(map[int]bool)
		}
		for _, imported := range p.imports {
			if to := rowOf(rows, imported); to >= 0 && to != from && !rows[to].helper() {
				found[folder][to] = true
			}
		}
	}
	drawn := make(map[string][]string, len(found))
	for folder, tos := range found {
		drawn[folder] = nil
		for i, r := range rows {
			if tos[i] {
				drawn[folder] = append(drawn[folder], r.folder)
			}
		}
	}
	return drawn
}

// pkg is a package of ours and the packages of ours that it imports, by their
// folders.
type pkg struct {
	path    string
	imports []string
}

// folders reads the imports of all files but tests, under any build tags. It
// reads them itself, since what a test learns from another program makes its
// cached result stale without a word.
var folders = sync.OnceValues(func() ([]pkg, error) {
	byPath := make(map[string]*pkg)
	var all []pkg
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && path != root && (name == "testdata" || name[0] == '.' || name[0] == '_') {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		dir = filepath.ToSlash(dir)
		if byPath[dir] == nil {
			byPath[dir] = &pkg{path: dir}
		}
		for _, spec := range file.Imports {
			if imported, ours := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), module); ours {
				byPath[dir].imports = append(byPath[dir].imports, imported)
			}
		}
		return nil
	})
	for _, p := range byPath {
		all = append(all, *p)
	}
	return all, err
})
