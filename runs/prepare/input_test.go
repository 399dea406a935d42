// The instances and classes of a spec whose data are not there, with a note of where the sizes come from.

package prepare

import (
	"strings"
	"testing"

	"github.com/miplc/miplc/data/bagfile"
	"github.com/miplc/miplc/language"
)

func loadSpec(t *testing.T, name string, set ...string) *language.Spec {
	t.Helper()
	s, err := language.Load(name, set...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSignature(t *testing.T) {
	cases := []struct {
		spec  string
		set   []string
		shape int // features of an instance
		k     int
		note  string
	}{
		{"quickstart", nil, 20, 5, ""},
		{"quickstart", []string{"data.generated.features=7", "data.generated.classes=3"}, 7, 3, ""},
		{"demipl", nil, 32, 5, "assumed sizes"},
		{"demipl-image", nil, 784, 5, "data.shape"},
		{"demipl", []string{"data.shape=[38]", "data.classes=13"}, 38, 13, "data.shape and data.classes"},
	}
	for _, c := range cases {
		sig, _, note, err := Describe(loadSpec(t, c.spec, c.set...), bagfile.Folder{})
		if err != nil {
			t.Errorf("%s %v: %v", c.spec, c.set, err)
			continue
		}
		n := 1
		for _, e := range sig.Instance {
			n *= e
		}
		if n != c.shape || sig.Classes != c.k || !strings.Contains(note, c.note) || (note == "") != (c.note == "") {
			t.Errorf("%s %v: %v, note %q", c.spec, c.set, sig, note)
		}
	}
}
