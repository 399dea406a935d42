// Validation reports all errors of a spec at once, each at the line that causes it.

package prepare

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/miplc/miplc/data/bagfile"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/testkit/testsupport"
	"github.com/miplc/miplc/language"
)

// Validate reports all errors of a spec at once, including shapes and splits, each at the line that
// the user wrote.
func TestValidateWrongSpecs(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.yaml")
	if err != nil || len(files) < 15 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		_, err := Validate(filepath.ToSlash(file), nil, bagfile.Folder{})
		if err == nil {
			t.Errorf("%s is accepted as valid", file)
			continue
		}
		var out strings.Builder
		diag.Render(&out, err)
		testsupport.CheckGolden(t, strings.TrimSuffix(file, ".yaml")+".out", out.String())
	}
}

// Inherited settings that cannot apply to the new model are dropped.
func TestInheritedAttentionLoss(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "mean.yaml")
	text := "extends: quickstart\nmodel:\n  blocks: [pool: mean, classifier]\n"
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	spec, err := language.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	if len(spec.Loss) != 1 || spec.Loss[0].Kind.V != "disambiguation" {
		t.Errorf("the loss is %+v", spec.Loss)
	}
	if v, err := Validate(file, nil, bagfile.Folder{}); err != nil || v.Parameters != 105 {
		t.Errorf("%+v, %v", v, err)
	}
}
