package compile

import (
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/diag"
)

// maxLearned bounds the learned numbers of a model: an ONNX file is a protocol
// buffer, which holds at most 2 GiB.
const maxLearned = 1<<29 - 1<<20

// maxOps bounds the graph that a spec describes, before it is cleaned. The models
// of the field have some hundred operations; each takes a thousand bytes or more
// in every stage, and gradients and sessions many times that.
const maxOps = 20_000

// oversize reports a graph that has grown too large by the place of a block or an
// equation. It is told once.
func (l *builder) oversize(pos diag.Pos) bool {
	if l.b.Len() <= maxOps && l.inlined <= maxOps {
		return false
	}
	if !l.full {
		l.full = true
		l.errs.Add(diag.Errorf(pos, "the model has more than %d operations up to here", maxOps))
	}
	return true
}

// weigh counts the numbers of a parameter and reports the first that is too much.
func (l *builder) countParameter(p *graph.Node) {
	before := l.learned
	if l.learned += p.Shape.Elements(1, 1); before <= maxLearned && l.learned > maxLearned {
		l.errs.Add(diag.Errorf(p.Pos, "the model has %.0f parameters up to here, with the %v of %s; %d are the most", l.learned, p.Shape, p.Name, maxLearned).
			WithNote("a model file holds at most 2 GiB"))
	}
}
