package compile

import (
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/extent"
)

// NamedParams gives a training step the parameters as inputs under their own names
// and shapes, beside the flat vector that the update reads. A caller binds them
// to windows into that vector, so nothing is cut at run time.
func NamedParams(p *Program, step *graph.Graph) (*graph.Graph, error) {
	starts := map[int]Param{}
	at := 0
	for _, q := range p.Params {
		starts[at] = q
		at += extent.Size(q.Shape)
	}
	b := graph.NewBuilder(step.Name)
	inputs := map[string]*graph.Node{}
	input := func(q Param) *graph.Node {
		if inputs[q.Name] == nil {
			inputs[q.Name] = b.Input(q.Name, graph.Float, static(q.Shape))
		}
		return inputs[q.Name]
	}
	of := b.Copy(step, func(n *graph.Node) *graph.Node {
		if q, ok := windowOf(n, starts); ok && n.Shape.Equal(static(q.Shape)) {
			return input(q)
		}
		if n.Op == graph.OpReshape {
			if q, ok := windowOf(n.In[0], starts); ok {
				return b.Reshape(input(q), n.Shape)
			}
		}
		return nil
	})
	for _, o := range step.Outputs {
		b.Output(o.Name, of[o.Node.ID])
	}
	return finished(b)
}

// windowOf recognises a parameter cut out of the flat vector, in its own shape
// or flat.
func windowOf(n *graph.Node, starts map[int]Param) (Param, bool) {
	cut := n
	if n.Op == graph.OpReshape {
		cut = n.In[0]
	}
	if cut.Op != graph.OpSlice || cut.In[0].Op != graph.OpInput || cut.In[0].Name != InParams {
		return Param{}, false
	}
	q, ok := starts[cut.Attrs.Start]
	return q, ok && cut.Attrs.End-cut.Attrs.Start == extent.Size(q.Shape)
}

func static(shape []int) graph.Shape {
	s := make(graph.Shape, len(shape))
	for i, e := range shape {
		s[i] = graph.Dim(e)
	}
	return s
}

// Bagwise builds the two halves of a training step that sends the bags of a
// batch through one by one: the gradients of one bag (parameters are inputs
// under their own names, outputs have graph.GradPrefix), and the update from
// their mean. Nil where a bag cannot stand alone, see graph.Separable. The
// order of additions differs from Step's, nothing else.
func Bagwise(p *Program) (gradients, update *graph.Graph, err error) {
	if p.Renew != nil || !graph.Separable(p.Train) {
		return nil, nil, nil
	}
	if gradients, err = bagGradients(p); err != nil {
		return nil, nil, err
	}
	update, err = Update(p)
	return gradients, update, err
}

func bagGradients(p *Program) (*graph.Graph, error) {
	single, err := graph.SingleBag(p.Train)
	if err != nil {
		return nil, err
	}
	g, err := gradients(p, single)
	if err != nil {
		return nil, err
	}
	b := graph.NewBuilder("gradients")
	params := map[string]*graph.Node{}
	for _, q := range p.Params {
		params[q.Name] = b.Input(q.Name, graph.Float, static(q.Shape))
	}
	of := b.Copy(g, bind(b, map[string]*graph.Node{}, params))
	for _, o := range g.Outputs {
		b.Output(o.Name, of[o.Node.ID])
	}
	return finished(b)
}
