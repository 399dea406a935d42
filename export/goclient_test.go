// Generated Go clients have valid and distinct names, fit their model, and notice when its contract changes.

package export_test

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/miplc/miplc/export"
	"github.com/miplc/miplc/internal/contract"
)

// Whatever classes are called, they become different Go names.
func TestAnyClasses(t *testing.T) {
	for _, classes := range [][]string{
		{"blue jay", "Blue-Jay", "blue_jay", "BlueJay"},
		{"es", "s", "", "class"},
		{"0", "1", "-", "--", "2"},
		{"łódź", "東京", "a\nb", "*/ \" ` //", "\u202e"},
	} {
		source, err := export.GoPackage("mine", "type", &contract.Metadata{Contract: contract.ContractBag,
			Classes: classes, InputShape: []int{2, 3}})
		if err != nil {
			t.Errorf("%q: %v", classes, err)
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), "client.go", source, 0)
		if err != nil {
			t.Errorf("%q: %v", classes, err)
			continue
		}
		if file.Name.Name != "mine" {
			t.Errorf("package %s", file.Name.Name)
		}
		seen := map[string]bool{}
		for _, line := range strings.Split(string(source), "\n") {
			if name, _, comment := strings.Cut(strings.TrimSpace(line), " "); comment && strings.HasPrefix(name, "Class") &&
				strings.Contains(line, "// \"") {
				if seen[name] {
					t.Errorf("%q: %s is there twice", classes, name)
				}
				seen[name] = true
			}
		}
		if len(seen) != len(classes) {
			t.Errorf("%q: constants %v", classes, seen)
		}
	}
}

// Images of a model with an encoder are levels from 0 to 1, and no package is called main.
func TestImages(t *testing.T) {
	meta := &contract.Metadata{Contract: contract.ContractBag, Classes: []string{"a", "b"}, InputShape: []int{3, 8, 8}}
	for _, c := range []struct {
		encoder *contract.Encoder
		want    string
	}{
		{nil, "\n// Instance is one instance of a bag: raw features, as they were measured.\ntype Instance [3][8][8]float32"},
		{&contract.Encoder{EncoderInput: contract.EncoderInput{Size: 8}},
			"\n// Instance is one image of a bag, resized to 8 x 8 pixels: red, green and blue levels from 0 to 1.\ntype " +
				"Instance [3][8][8]float32"},
	} {
		meta.Encoder = c.encoder
		if source, err := export.GoPackage("mine", "", meta); err != nil ||
			!strings.Contains(string(source), c.want) {
			t.Errorf("%v\n%s", err, source)
		}
	}
	if _, err := export.GoPackage("main", "", meta); err == nil {
		t.Error("package main")
	}
}

// The client of a model with several labels per bag has them in its predictions.
func TestSeveralLabels(t *testing.T) {
	meta := &contract.Metadata{Contract: contract.ContractBag, Classes: []string{"a", "b"}, InputShape: []int{2}}
	one, err := export.GoPackage("mine", "", meta)
	if err != nil || strings.Contains(string(one), "Labels") {
		t.Errorf("%v\n%s", err, one)
	}
	single, threshold := meta.ContractHash(), 0.5
	meta.Threshold = &threshold
	many, err := export.GoPackage("mine", "", meta)
	if err != nil || !strings.Contains(string(many), "out.Labels = append(out.Labels, Class(label))") ||
		meta.ContractHash() == single {
		t.Errorf("%v\n%s", err, many)
	}
}

// The client of a model with an attention of each class has it in its predictions.
func TestClassAttention(t *testing.T) {
	meta := &contract.Metadata{Contract: contract.ContractBag, Classes: []string{"a", "b"}, InputShape: []int{2}}
	for _, has := range []bool{false, true} {
		meta.ClassAttention = has
		source, err := export.GoPackage("mine", "", meta)
		if err != nil || strings.Contains(string(source), "copy(out.ClassAttention[:], p.ClassAttention)") != has {
			t.Errorf("%v\n%s", err, source)
		}
	}
}

func TestPackageNames(t *testing.T) {
	meta := &contract.Metadata{Classes: []string{"a"}, InputShape: []int{3}}
	for _, name := range []string{"", "_", "a b", "func", "1"} {
		if _, err := export.GoPackage(name, "", meta); err == nil ||
			!strings.Contains(err.Error(), "not the name of a Go package") {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// The hash is that of what callers rely on, and of nothing else.
// A package is named after its folder, as Go's tools expect.
func TestPackageOf(t *testing.T) {
	for dir, want := range map[string]string{
		"internal/birds": "birds", "My-Birds_2/": "mybirds2", "2birds": "birds", "type": "typemodel", "./a/../b": "b",
		"42": "model",
	} {
		if got, err := export.PackageOf(dir); err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", dir, got, err, want)
		}
	}
}

// A folder takes one package: the file of another would break the build of both.
func TestCheckFolder(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	check := func(what, pkg, want string) {
		t.Helper()
		err := export.CheckFolder(dir, pkg)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", what, err, want)
		}
	}
	check("an empty folder", "birds", "")
	put("readme.md", "birds")
	put("tool.go", "//go:build ignore\n\npackage main\n")
	check("a program that is not built", "birds", "")
	put("birds.go", "package birds\n")
	put("birds_test.go", "package birds_test\n")
	check("the same package", "birds", "")
	check("another package", "bees", "contains the package birds")
	put("main.go", "package main\n")
	check("two packages", "birds", "contains the packages")
	if err := export.CheckFolder(filepath.Join(dir, "new"), "birds"); err != nil {
		t.Errorf("a new folder: %v", err)
	}
}

func TestContractHash(t *testing.T) {
	base := contract.Metadata{Contract: contract.ContractBag, Classes: []string{"a", "b"}, InputShape: []int{3}, Seed: 1}
	same := base
	same.Seed, same.SpecSHA256, same.Engine = 2, "x", "native"
	if base.ContractHash() != same.ContractHash() {
		t.Error("a model that was trained anew has another hash")
	}
	for name, change := range map[string]func(*contract.Metadata){
		"order":    func(m *contract.Metadata) { m.Classes = []string{"b", "a"} },
		"names":    func(m *contract.Metadata) { m.Classes = []string{"a", "c"} },
		"shape":    func(m *contract.Metadata) { m.InputShape = []int{1, 3} },
		"contract": func(m *contract.Metadata) { m.Contract = contract.ContractBatch },
		"output":   func(m *contract.Metadata) { m.ClassAttention = true },
	} {
		other := base
		change(&other)
		if other.ContractHash() == base.ContractHash() {
			t.Errorf("another %s, the same hash", name)
		}
	}
}
