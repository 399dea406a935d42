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

// TestMap compares the table of docs/architecture.md with the imports of the code, except for
// imports of tests. A row describes a folder and the folders below it without a row. A package may
// import only packages of rows above its own.
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
			t.Errorf("docs/architecture.md:%d: there is no package in %s: delete the row, or rename it if the folder was renamed", r.line+1, r.folder)
			continue
		}
		for _, to := range want {
			if at := rowIndex(rows, to); at > i {
				t.Errorf("docs/architecture.md: %s imports %s, which is below it in the map. Packages may import only rows above. Move the code to its stage, or move the row if the order is wrong", r.folder, to)
			}
		}
		if slices.Equal(want, r.imports) {
			continue
		}
		if testsupport.Update() {
			lines[r.line] = r.written(want)
			continue
		}
		t.Errorf("docs/architecture.md:%d: the map says that %s imports\n    %s\nthe code has\n    %s\nIf the change is intended, run `%s` and read the diff. Otherwise remove the import.",
			r.line+1, r.folder, listed(r.imports), listed(want), remedy)
	}
	if testsupport.Update() && !t.Failed() {
		if err := os.WriteFile(mapFile, []byte(strings.Join(lines, "\n")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// row is one line of the map: a folder, its description, and the folders it imports.
type row struct {
	line    int
	folder  string
	middle  []string // the columns between, unchanged
	imports []string
}

const mapHead = "| folder | stage | contents | imports |"

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

// rowOf returns the row with the longest folder that contains the package, or -1.
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

// imports returns the rows that the packages of each row import, in the order of the map.
func imports(t *testing.T, rows []row) map[string][]string {
	found := make(map[string]map[int]bool)
	all, err := folders()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		from := rowOf(rows, p.path)
		if from < 0 {
			t.Errorf("no row of the map in docs/architecture.md contains %s: add one below all packages that it imports (| %s | stage | contents |  |) and run `%s`", p.path, p.path, remedy)
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

// pkg is a package of this module and the packages of the module that it imports, by folder.
type pkg struct {
	path    string
	imports []string
}

// folders reads the imports of all files except tests, under any build tags. It parses the files
// itself, because the test cache does not notice that the output of another program changed.
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
