package graph

import (
	"strings"
	"testing"
)

func TestText(t *testing.T) {
	g, err := attentionGraph().Graph()
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "attention.txt", g.Text())
	golden(t, "attention.dot", g.DOT())
}

func TestVerifyFindsFaults(t *testing.T) {
	cases := []struct {
		name  string
		spoil func(g *Graph)
		want  string
	}{
		{"order", func(g *Graph) { g.Nodes[6].In[0] = g.Nodes[8] }, "stands after it"},
		{"id", func(g *Graph) { g.Nodes[3].ID = 4 }, "stands at place 3"},
		{"foreign input", func(g *Graph) { g.Nodes[6].In[1] = &Node{ID: 2, Shape: Shape{3, 2}} }, "of another graph"},
		{"shape", func(g *Graph) { g.Nodes[6].Shape = Shape{N, 3} }, "the op table gives float [N, 2]"},
		{"type", func(g *Graph) { g.Nodes[6].Type = Int }, "is marked int"},
		{"input name", func(g *Graph) { g.Nodes[3].Name = "Wv" }, "name that no other input or parameter has"},
		{"output name", func(g *Graph) { g.Outputs[1].Name = "probabilities" }, "name that no other output has"},
		{"output node", func(g *Graph) { g.Outputs[0].Node = &Node{} }, "output probabilities is a node of another graph"},
		{"extent", func(g *Graph) { g.Nodes[0].Shape = Shape{N, -7} }, "extents are at least 1"},
		{"arity", func(g *Graph) { g.Nodes[7].In = nil }, "takes 1 inputs, has 0"},
	}
	for _, c := range cases {
		g, err := attentionGraph().Graph()
		if err != nil {
			t.Fatal(err)
		}
		if err := Verify(g); err != nil {
			t.Fatal(err)
		}
		c.spoil(g)
		if err := Verify(g); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
}
