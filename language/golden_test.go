// Messages for bad specs, shipped specs with their defaults, and the JSON Schema.

package language

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/testkit/testsupport"
	"github.com/miplc/miplc/specs"
)

var setComment = regexp.MustCompile(`(?m)^# set: (.*)$`)

// setsOf reads the overrides of a test file from its comments.
func setsOf(src []byte) []string {
	var sets []string
	for _, m := range setComment.FindAllSubmatch(src, -1) {
		sets = append(sets, string(m[1]))
	}
	return sets
}

func TestBadSpecs(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.yaml")
	if err != nil || len(files) < 60 {
		t.Fatalf("%d wrong specs, at least 60 are expected (%v)", len(files), err)
	}
	for _, file := range files {
		file = filepath.ToSlash(file)
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			src, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			spec, err := Parse(file, src, setsOf(src)...)
			if err == nil {
				t.Fatalf("no error; the spec is\n%s", spec.YAML())
			}
			var out bytes.Buffer
			diag.Render(&out, err)
			testsupport.CheckGolden(t, strings.TrimSuffix(file, ".yaml")+".out", out.Bytes())
			checkPlaces(t, err, src)
		})
	}
}

// checkPlaces checks that every diagnostic has a position that exists.
func checkPlaces(t *testing.T, err error, src []byte) {
	t.Helper()
	list, ok := err.(diag.List)
	if !ok {
		t.Fatalf("the error is a %T, not a diag.List", err)
	}
	for _, d := range list {
		if d.Pos.Source() == "" {
			t.Errorf("no file: %v", d)
		}
		if d.Pos.Setting != "" || d.Line == "" {
			continue
		}
		if n := len([]rune(d.Line)); d.Pos.Col < 1 || d.Pos.Col > n+1 || d.Width < 1 || d.Pos.Col+d.Width > n+2 {
			t.Errorf("%v: columns %d to %d in a line of %d characters", d, d.Pos.Col, d.Pos.Col+d.Width, n)
		}
		if strings.HasSuffix(d.Pos.File, ".yaml") && !bytes.Contains(src, []byte(d.Line)) {
			if base, err := os.ReadFile(d.Pos.File); err != nil || !bytes.Contains(base, []byte(d.Line)) {
				t.Errorf("%v: the line %q is not in the file", d, d.Line)
			}
		}
	}
}

func TestShippedSpecs(t *testing.T) {
	want := []string{"abmil", "acmil", "agopmipl", "clam-mb", "clam-sb", "demipl", "demipl-av", "demipl-cdl",
		"demipl-equations", "demipl-image", "demipl-md", "demipl-mlp", "demipl-pr", "demipl-program",
		"dsmil", "elimipl", "elimipl-image", "fastmipl", "gated-abmil", "instance-max", "instance-mean", "lws-maxmin",
		"lws-maxmin-mlp", "lws-mean", "lws-mean-mlp", "miplgp", "miplma", "miplma-image",
		"pl-aggd-maxmin", "pl-aggd-mean", "proden-maxmin", "proden-maxmin-mlp", "proden-mean", "proden-mean-mlp", "promipl",
		"quickstart",
		"rc-maxmin", "rc-maxmin-mlp", "rc-mean", "rc-mean-mlp", "transmil", "uamipl"}
	if d := cmp.Diff(want, specs.Models()); d != "" {
		t.Fatal(d)
	}
	for _, name := range specs.Models() {
		spec, err := Load(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if spec.Name.V != name {
			t.Errorf("%s: the name is %q", name, spec.Name.V)
		}
		if spec.File != "builtin:"+name {
			t.Errorf("%s: the file is %q", name, spec.File)
		}
		src, ok := specs.Model(name)
		if !ok || !bytes.HasPrefix(src, []byte("# yaml-language-server: $schema=./schema.json\n")) {
			t.Errorf("%s: no modeline at the top", name)
		}
		testsupport.CheckGolden(t, "testdata/good/"+name+".yaml", spec.YAML())
	}
}

func TestSchemaFile(t *testing.T) {
	testsupport.CheckGolden(t, "../specs/models/schema.json", Dialect.Schema())
}
