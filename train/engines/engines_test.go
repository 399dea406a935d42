package engines_test

import (
	"strings"
	"testing"

	"github.com/miplc/miplc/runtime/ortlib/ortest"
	"github.com/miplc/miplc/train/engines"
)

func TestChoose(t *testing.T) {
	library := ortest.Library(t)
	for _, c := range []struct {
		name   string
		r      engines.Request
		engine string
		err    string
	}{
		{"auto with the library", engines.Request{Library: library}, "ort", ""},
		{"auto without it", engines.Request{Library: t.TempDir()}, "gorgonia", ""},
		{"gorgonia by name", engines.Request{Engine: "gorgonia"}, "gorgonia", ""},
		{"ort by name", engines.Request{Engine: "ort", Library: library}, "ort", ""},
		{"ort without the library", engines.Request{Engine: "ort", Library: t.TempDir()}, "", "engine ort:"},
		{"provider without the library", engines.Request{Provider: "cuda", Library: t.TempDir()}, "", "execution provider cuda:"},
		{"provider of another engine", engines.Request{Engine: "gorgonia", Provider: "cuda"}, "", "belongs to the engine ort"},
		{"a slip", engines.Request{Engine: "gorgnia"}, "", `did you mean "gorgonia"?`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := engines.Choose(c.r)
			switch {
			case c.err != "":
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("error %v, want ...%s...", err, c.err)
				}
			case err != nil:
				t.Error(err)
			case got.Name != c.engine:
				t.Errorf("engine %s, want %s", got.Name, c.engine)
			case c.r.Engine == "" && got.Reason == "":
				t.Error("auto does not say why")
			}
		})
	}
}
