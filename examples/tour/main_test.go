// The tour prints what docs/tour.md quotes, and its model learns.

package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/miplc/miplc/internal/testkit/testsupport"
)

// TestTour checks the output of the tour, and that the quotes in docs/tour.md are in the program.
func TestTour(t *testing.T) {
	var b strings.Builder
	if err := tour(&b); err != nil {
		t.Fatal(err)
	}
	testsupport.CheckGolden(t, "testdata/output.txt", b.String())
	program, page := read(t, "main.go"), read(t, "../../docs/tour.md")
	blocks := strings.Split(page, "\n```")
	quotes := 0
	for i := 1; i < len(blocks); i += 2 { // inside of the fences
		kind, text, _ := strings.Cut(blocks[i], "\n")
		source := map[string]string{"go": program, "text": b.String(), "yaml": program}[kind]
		quotes++
		for _, part := range strings.Split(text, "\n...\n") {
			if !strings.Contains(source, strings.TrimSpace(part)) {
				t.Errorf("docs/tour.md has a quote that is not in the %s:\n%s", kind, part)
			}
		}
	}
	if quotes < 6 {
		t.Errorf("docs/tour.md has only %d quotes", quotes)
	}
}

// The loss falls, and the gradient is the slope of the loss.
func TestTourLearns(t *testing.T) {
	var b strings.Builder
	if err := tour(&b); err != nil {
		t.Fatal(err)
	}
	var gradient, difference, before, after float64
	for line := range strings.Lines(b.String()) {
		fmt.Sscanf(line, "== check: Wv[0] has gradient %f, finite difference %f", &gradient, &difference)
		fmt.Sscanf(line, "== step: loss %f before, %f after", &before, &after)
	}
	if gradient == 0 || gradient != difference || after >= before || after == 0 {
		t.Errorf("gradient %g, finite difference %g; loss %g before, %g after", gradient, difference, before, after)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
