package definition

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/miplc/miplc/internal/testsupport"
	"github.com/miplc/miplc/language/languagetest"
	"github.com/miplc/miplc/language/schema"
	"github.com/miplc/miplc/specs"
)

// The examples of the reference are valid, and it names every shipped experiment and every kind of
// table and figure.
func TestReference(t *testing.T) {
	src, err := os.ReadFile("../../docs/experiments.md")
	if err != nil {
		t.Fatal(err)
	}
	examples := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(src), -1)
	var whole []string // examples without a name extend the example with most keys
	all := -1
	for _, e := range examples {
		switch {
		case strings.HasPrefix(e[1], "name:"):
			if strings.HasPrefix(e[1], "name: mine\n") {
				all = len(whole)
			}
			whole = append(whole, e[1])
		case all < 0:
			t.Fatalf("the example above has no name: mine\n%s", e[1])
		default:
			whole[all] += e[1]
		}
	}
	if len(whole) < 6 {
		t.Fatalf("found %d examples only", len(whole))
	}
	for _, text := range whole {
		if _, err := Parse("experiments.md", []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	languagetest.Tables(t, "../../docs/experiments.md", map[string]string{
		"top": schema.Reference(rows), "data": schema.Reference(dataRows), "synth": schema.Reference(synthRows),
		"learners": schema.Reference(learnerRows), "cases": schema.Reference(caseRows), "splits": schema.Reference(splitRows),
		"attention": schema.Reference(attentionRows), "choose": schema.Reference(chooseRows), "report": schema.Reference(itemRows),
	})
	testsupport.CheckGolden(t, "../../specs/experiments/schema.json", Language.Schema())
	for _, kind := range itemKinds {
		if !strings.Contains(string(src), "`"+strings.Replace(kind, " ", ": ", 1)+"`") {
			t.Errorf("%s is not documented", kind)
		}
	}
	for _, name := range specs.Experiments() {
		if !strings.Contains(string(src), "| `"+name+"` |") {
			t.Errorf("the experiment %s is not mentioned", name)
		}
	}
}
