package progress

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/miplc/miplc/internal/plain"
)

// Line is a line of a terminal that redraws itself.
type Line struct {
	W     io.Writer
	width int // characters that stand on it
}

// Draw writes the text over what stands there.
func (l *Line) Draw(text string) {
	text = plain.Line(text)
	width := utf8.RuneCountInString(text)
	fmt.Fprintf(l.W, "\r%s%s", text, strings.Repeat(" ", max(0, l.width-width)))
	l.width = width
}

// Clear wipes what stands there, for another text.
func (l *Line) Clear() {
	if l.width > 0 {
		fmt.Fprintf(l.W, "\r%s\r", strings.Repeat(" ", l.width))
		l.width = 0
	}
}

// End leaves the cursor on a fresh line.
func (l *Line) End() {
	if l.width > 0 {
		fmt.Fprintln(l.W)
		l.width = 0
	}
}
