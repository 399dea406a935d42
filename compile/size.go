// Limits on the size of graphs and parameters.

package compile

import (
	"github.com/miplc/miplc/compile/graph"
	"github.com/miplc/miplc/internal/diag"
)

// maxParams is the maximum number of learned numbers of a model, because an ONNX file is a protocol
// buffer of at most 2 GiB.
const maxParams = 1<<29 - 1<<20

// maxOps is the maximum number of operations that a spec describes, before optimisation. Published
// models have some hundred operations. Each takes a thousand bytes or more in every stage, and
// gradients and sessions take many times that.
const maxOps = 20_000

// oversize reports, once, that the graph is too large at the position of a block or an equation.
func (l *lowerer) oversize(pos diag.Pos) bool {
	if l.b.Len() <= maxOps && l.inlined <= maxOps {
		return false
	}
	if !l.reportedSize {
		l.reportedSize = true
		l.errs.Add(diag.Errorf(pos, "the model has more than %d operations up to here", maxOps))
	}
	return true
}

// countParameter adds the size of a parameter to l.learned. It reports, once, that the model has more than
// maxParams numbers.
func (l *lowerer) countParameter(p *graph.Node) {
	before := l.paramCount
	if l.paramCount += p.Shape.Elements(1, 1); before <= maxParams && l.paramCount > maxParams {
		l.errs.Add(diag.Errorf(p.Pos, "the model has %.0f parameters up to here, with the %v of %s; the maximum is %d",
			l.paramCount, p.Shape, p.Name, maxParams).
			WithNote("a model file has at most 2 GiB"))
	}
}
