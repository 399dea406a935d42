// Descriptions and pictures of datasets.

package data_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/miplc/miplc/data"

	"github.com/miplc/miplc/data/generate"
)

func TestDescribe(t *testing.T) {
	s := data.Describe(small())
	want := `| Dataset | #bags | #ins | #dim | avg. #ins | #class | avg. #CLs |
|---|---:|---:|---:|---:|---:|---:|
| small | 3 | 6 | 2 | 2 | 3 | 2 |
`
	if got := data.StatsMarkdown(s); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	for _, line := range []string{
		"instances per bag: 1 to 3\n", "candidate labels per bag: 2 to 2\n", "positive instances: 50.0 %\n",
		"| wren | 1 | 2 | 1 |\n", "| jay | 0 | 2 | 1 |\n", "| crow | 1 | 2 | 1 |\n",
	} {
		if !strings.Contains(s.Details(), line) {
			t.Errorf("the details lack %q:\n%s", line, s.Details())
		}
	}
	other := small()
	other.InstLabels[1] = 1 // a jay in a bag with the true label wren is not positive
	if s := data.Describe(other); s.ByClass[1].Positive != 1 || s.PositiveShare != 0.5 {
		t.Errorf("instances of other classes: %+v", s)
	}
	bare := small()
	bare.InstLabels, bare.Labels = nil, nil
	if s := data.Describe(bare); s.PositiveShare != -1 || !strings.Contains(s.Details(), "positive instances: unknown") ||
		strings.Contains(s.Details(), "| positive instances") {
		t.Errorf("unknown instance labels: %+v", s)
	}
}

func TestDescribeConstantFeatures(t *testing.T) {
	const line = "features with the same value in all instances: 1 of 2\n"
	d := small()
	if text := data.Describe(d).Details(); strings.Contains(text, "same value") {
		t.Error(text)
	}
	for i := 1; i < len(d.Instances); i += 2 {
		d.Instances[i] = 7
	}
	if text := data.Describe(d).Details(); !strings.Contains(text, line) {
		t.Error(text)
	}
}

func ExampleStatsMarkdown() {
	d, err := generate.Prototypes(generate.DefaultPrototypes)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(data.StatsMarkdown(data.Describe(d)))
	// Output:
	// | Dataset | #bags | #ins | #dim | avg. #ins | #class | avg. #CLs |
	// |---|---:|---:|---:|---:|---:|---:|
	// | prototypes | 300 | 3468 | 20 | 11.56 | 5 | 2 |
}
