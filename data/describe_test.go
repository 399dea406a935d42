// Descriptions and pictures of datasets.

package data_test

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/miplc/miplc/data"

	"github.com/miplc/miplc/data/generate"
	"github.com/miplc/miplc/internal/testkit/testsupport"
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

func TestDrawBag(t *testing.T) {
	features := small()
	features.ClassNames[0] = "<wren&>"
	images, err := generate.Prototypes(generate.PrototypeOptions{Bags: 4, Classes: 2, Features: 12, Positives: 0.5,
		MinSize: 12, MaxSize: 12, Noise: 1})
	if err != nil {
		t.Fatal(err)
	}
	gray, color := *images, *images
	gray.Shape, color.Shape = []int{1, 3, 4}, []int{3, 2, 2}
	for _, c := range []struct {
		name             string
		d                *data.Dataset
		bag              int
		pictures, frames int
		text             string
	}{
		{"features", features, 0, 1, 1, "bag 1: 2 instances"},
		{"features, none positive", features, 1, 1, 1, "jay, <tspan font-weight=\"bold\">crow</tspan>"},
		{"names", features, 0, 1, 1, "&lt;wren&amp;&gt;"},
		{"grey", &gray, 3, 12, 6, "bag 4: 12 instances"},
		{"colour", &color, 0, 12, 6, "bag 1: 12 instances"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b bytes.Buffer
			if err := data.DrawBag(&b, c.d, c.bag); err != nil {
				t.Fatal(err)
			}
			svg := b.String()
			if err := testsupport.CheckSVG(b.Bytes()); err != nil {
				t.Error(err)
			}
			if n := strings.Count(svg, "<image "); n != c.pictures {
				t.Errorf("%d pictures, want %d", n, c.pictures)
			}
			if n := strings.Count(svg, `"#d7301f"`); n != c.frames {
				t.Errorf("%d frames, want %d", n, c.frames)
			}
			if !strings.Contains(svg, c.text) {
				t.Errorf("the title lacks %q", c.text)
			}
		})
	}
	if err := data.DrawBag(io.Discard, features, 3); err == nil ||
		!strings.Contains(err.Error(), "no bag 4; bags count from 1 to 3") {
		t.Errorf("a bag out of range: %v", err)
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
