// The training step as one gradient per bag and one update, for images.

package compile

import (
	"github.com/miplc/miplc/compile/graph"
	"github.com/miplc/miplc/internal/ndarray"
)

// NamedParams gives a training step the parameters as inputs with their own names and
// shapes, in addition to the flat vector that the update reads. A caller binds them to
// parts of that vector, so nothing is copied at run time.
func NamedParams(p *Program, step *graph.Graph) (*graph.Graph, error) {
	starts, at := map[int]Param{}, 0
	for _, q := range p.Params {
		starts[at] = q
		at += ndarray.Size(q.Shape)
	}
	b := graph.NewBuilder(step.Name)
	return copied(b, step, func(n *graph.Node) *graph.Node {
		if n.Op != graph.OpSlice || n.In[0].Op != graph.OpInput || n.In[0].Name != InParams {
			return nil
		}
		q := starts[n.Attrs.Start]
		return b.Reshape(b.Input(q.Name, graph.Float, static(q.Shape)), n.Shape)
	})
}

func static(shape []int) graph.Shape {
	s := make(graph.Shape, len(shape))
	for i, e := range shape {
		s[i] = graph.Dim(e)
	}
	return s
}

// Bagwise builds the two parts of a training step that processes the bags of a batch
// separately: the gradients of one bag (parameters are inputs with their own names,
// outputs have the prefix graph.GradPrefix), and the update from their mean. It returns
// nil if bags cannot be separated, see graph.Separable. Compared with Step, only the
// order of additions differs.
func Bagwise(p *Program) (gradients, update *graph.Graph, err error) {
	if p.WeightUpdate != nil || !graph.Separable(p.Train) {
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
	return copied(b, g, bind(b, map[string]*graph.Node{}, params))
}
