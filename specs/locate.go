package specs

import "github.com/miplc/miplc/internal/diag"

// Locate fills in the source line of a diagnostic at a place in the spec's
// files, and the width of the underline where it has none, so that later
// stages report errors as the reader does.
func (s *Spec) Locate(d diag.Diagnostic) diag.Diagnostic {
	lines := s.Sources[d.Pos.File]
	if d.Line == "" && d.Pos.Line >= 1 && d.Pos.Line <= len(lines) {
		d.Line = lines[d.Pos.Line-1]
	}
	if d.Width == 0 && d.Line != "" {
		d.Width = tokenWidth(d.Line, d.Pos.Col)
	}
	return d
}
