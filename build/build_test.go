package build

import (
	"testing"

	"github.com/miplc/miplc/internal/testkit/ortest"
	"github.com/miplc/miplc/language"
)

func BenchmarkBuild(b *testing.B) {
	lib := ortest.Library(b)
	for b.Loop() {
		s, err := language.Load("demipl-program", "data.classes=5")
		if err != nil {
			b.Fatal(err)
		}
		if _, err := Build(Options{Spec: s, Dir: b.TempDir(), Library: lib}); err != nil {
			b.Fatal(err)
		}
	}
}
