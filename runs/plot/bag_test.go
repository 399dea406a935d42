// Pictures of bags with features, grey and coloured images.

package plot

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/generate"
	"github.com/miplc/miplc/internal/testkit/testsupport"
)

func TestBag(t *testing.T) {
	features := &data.Dataset{Name: "small", Shape: []int{2}, Instances: []float32{0.5, -1, 2, 1e-20, 3, 4, 0, 1, -7.25,
		3e8, 0.1, 0.2}, Offsets: []int{0, 2, 3, 6}, Candidates: []uint8{1, 1, 0, 0, 1, 1, 1, 0, 1}, Classes: 3,
		Labels: []int{0, 2, -1}, InstLabels: []int{0, -1, 2, -1, -1, 1}, ClassNames: []string{"<wren&>", "jay", "crow"}}
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
			if err := Bag(&b, c.d, c.bag); err != nil {
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
	if err := Bag(io.Discard, features, 3); err == nil ||
		!strings.Contains(err.Error(), "no bag 4; bags count from 1 to 3") {
		t.Errorf("a bag out of range: %v", err)
	}
}
