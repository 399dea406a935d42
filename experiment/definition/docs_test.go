// The examples in the documentation of experiments are valid, and its lists are complete.

package definition

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/miplc/miplc/internal/testkit/testsupport"
	"github.com/miplc/miplc/language/schema"
	"github.com/miplc/miplc/specs"
)

const (
	guide     = "../../docs/experiments.md"
	reference = "../../docs/experiment-reference.md"
	searches  = "../../docs/search.md"
)

// The examples of the pages are valid. The reference names every shipped experiment,
// every key and every kind of table and figure.
func TestReference(t *testing.T) {
	text := map[string]string{}
	for page, examples := range map[string]int{guide: 3, reference: 3, searches: 1} {
		src, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		text[page] = string(src)
		whole := wholeExamples(t, text[page])
		if len(whole) != examples {
			t.Errorf("%s has %d examples", page, len(whole))
		}
		for _, example := range whole {
			if _, err := Parse(page, []byte(example)); err != nil {
				t.Error(err)
			}
		}
	}
	testsupport.CheckLanguageTables(t, reference, map[string]string{
		"top": testsupport.Reference(rows), "data": testsupport.Reference(dataRows),
		"synth":    testsupport.Reference(synthRows),
		"learners": testsupport.Reference(learnerRows), "cases": testsupport.Reference(caseRows),
		"search":    testsupport.Reference(schema.Find(learnerRows, "search").Rows),
		"splits":    testsupport.Reference(schema.Find(rows, "splits").Rows),
		"attention": testsupport.Reference(attentionRows), "choose": testsupport.Reference(chooseRows),
		"report": testsupport.Reference(itemRows),
	})
	testsupport.CheckGolden(t, "../../specs/experiments/schema.json", Language.Schema())
	for _, kind := range itemKinds {
		what := "table"
		if kind.Figure {
			what = "figure"
		}
		if !strings.Contains(text[reference], "`"+what+": "+kind.Word+"`") {
			t.Errorf("%s: %s is not documented", what, kind.Word)
		}
	}
	for _, name := range specs.Experiments() {
		if !strings.Contains(text[reference], "| `"+name+"` |") {
			t.Errorf("the experiment %s is not mentioned", name)
		}
	}
}

// wholeExamples returns the YAML examples of a page. Those without a name extend the example with
// most keys, which is called mine.
func wholeExamples(t *testing.T, page string) []string {
	t.Helper()
	var whole []string
	all := -1
	for _, e := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(page, -1) {
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
	return whole
}
