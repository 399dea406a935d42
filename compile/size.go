package compile

import "github.com/miplc/miplc/internal/diag"

// maxOps bounds the graph that a spec describes, before it is cleaned. The models
// of the field have some hundred operations; each takes a thousand bytes or more
// in every stage, and gradients and sessions many times that.
const maxOps = 20_000

// oversize reports a graph that has grown too large by the place of a block or an
// equation. It is told once.
func (l *lowering) oversize(pos diag.Pos) bool {
	if l.b.Len() <= maxOps {
		return false
	}
	if !l.full {
		l.full = true
		l.errs.Add(diag.Errorf(pos, "the model has more than %d operations up to here", maxOps))
	}
	return true
}
