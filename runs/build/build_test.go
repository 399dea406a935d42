// A build without a training graph is refused with the reason; a benchmark measures how long other builds take.

package build

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/testkit/enginetest"
	"github.com/miplc/miplc/language"
)

func TestLearnerWithoutGraphs(t *testing.T) {
	spec, err := language.Load("pl-aggd-mean", "data.set=generated:prototypes")
	if err != nil {
		t.Fatal(err)
	}
	wrong := (*diag.InvalidError)(nil)
	if _, err := Run(context.Background(), Task{Spec: spec, Dir: t.TempDir()}); !errors.As(err, &wrong) ||
		!strings.Contains(err.Error(), "nothing to build") {
		t.Errorf("error %v", err)
	}
}

func BenchmarkRun(b *testing.B) {
	enginetest.Library(b)
	for b.Loop() {
		s, err := language.Load("demipl-program", "data.classes=5")
		if err != nil {
			b.Fatal(err)
		}
		if _, err := Run(context.Background(), Task{Spec: s, Dir: b.TempDir()}); err != nil {
			b.Fatal(err)
		}
	}
}
