// The key learner.

package language

import (
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/miplc/miplc/internal/diag"

	"github.com/miplc/miplc/language/schema"
)

// Learner names a learner that is fitted to the training bags as a whole, in place of a model that is trained by
// gradient steps.
type Learner struct {
	Pos  diag.Pos
	Kind schema.Str
	Args map[string]schema.Arg // each argument of the kind
}

// learnerKinds is the table of the learners. fit in train/engines/fitted.go calls the package of a kind.
var learnerKinds = []Kind{
	{Name: "pl-aggd", Doc: "Adaptive graph guided disambiguation (PL-AGGD, KDD 2019) on one vector per bag: alternates " +
		"a neighbour graph and labelling confidences, then fits kernel ridge regression.",
		args: []schema.Row{
			{Name: "vector", Default: "mean", Choices: []string{"mean", "maxmin"},
				Doc: "Vector of a bag: the mean of its instances, or their maxima and minima, concatenated."},
			{Name: "neighbours", Type: schema.Whole, Default: "10", In: schema.Closed(1, 10000),
				Doc: "Number of neighbours of each training vector in the graph, or all others if there are fewer."},
			{Name: "width", Type: schema.Real, Default: "0", In: schema.AtLeast(0),
				Doc: "Width sigma of the kernel exp(-d^2 / (2 sigma^2)). 0: mean distance between two training vectors."},
			{Name: "gamma", Type: schema.Real, Default: "0.05", In: schema.Above(0),
				Doc: "Weight of the norm of the regression."},
			{Name: "lambda", Type: schema.Real, Default: "1", In: schema.AtLeast(0),
				Doc: "Weight of the features in the graph."},
			{Name: "mu", Type: schema.Real, Default: "1", In: schema.Above(0),
				Doc: "Weight of the labelling confidences in the graph, and of the graph in the confidences."},
			{Name: "iterations", Type: schema.Whole, Default: "10", In: schema.Closed(0, 10000),
				Doc: "Number of updates of graph, confidences and regression."},
		}},
	{Name: "miplgp", usesEngine: true, Doc: "One Gaussian process per class on instances that have the candidates of " +
		"their bag and a class of negatives (MIPLGP, Tang, Zhang, Zhang). A bag gets the class of its most confident " +
		"instance.",
		args: []schema.Row{
			{Name: "iterations", Type: schema.Whole, Default: "500", In: schema.Closed(0, 100000),
				Doc: "Steps of Adam on the hyper-parameters."},
			{Name: "lr", Type: schema.Real, Default: "0.1", In: schema.Above(0),
				Doc: "Learning rate of the first step; it follows a cosine to 0."},
			{Name: "epsilon", Type: schema.Real, Default: "0.0001", In: schema.Above(0),
				Doc: "Number added to each confidence to obtain a Dirichlet parameter."},
			{Name: "confidences", Default: "prior", Choices: []string{"prior", "posterior"},
				Doc: "Source of updated confidences. Leave it at `prior`, as in the program of MIPLGP's authors; with " +
					"`posterior`, nearly all instances tend to become negative."},
			{Name: "samples", Type: schema.Whole, Default: "512", In: schema.Closed(1, 1000000),
				Doc: "Number of posterior draws for sampled predictions; the exported model uses mean and variance instead."},
			{Name: "solver", Default: "auto", Choices: []string{"auto", "exact", "cg", "inducing"},
				Doc: "`exact`: Cholesky. `cg`: conjugate gradients with all instances. `inducing`: inducing points. `auto`: " +
					"`exact` up to 1,500 instances, `cg` up to 20,000, else `inducing`."},
			{Name: "inducing", Type: schema.Whole, Default: "1000", In: schema.Closed(1, 20000),
				Doc: "Number of inducing points, drawn from the instances. With `cg` they are used only for the variance."},
			{Name: "subset", Type: schema.Whole, Default: "0", In: schema.AtLeast(0),
				Doc: "Number of instances, in whole bags, for learning the hyper-parameters, with a tenth as many inducing " +
					"points. 0 means all. Predictions always use all."},
			{Name: "lengthscale", Type: schema.Real, Default: "0", In: schema.AtLeast(0),
				Doc: "Initial lengthscale of the kernel, in units of the features. 0 means the median distance between two " +
					"instances. The program of MIPLGP's authors starts at 0.6931."},
			{Name: "probes", Type: schema.Whole, Default: "10", In: schema.Closed(1, 10000),
				Doc: "`cg`: number of random vectors for trace estimates."},
			{Name: "rank", Type: schema.Whole, Default: "100", In: schema.Closed(0, 10000),
				Doc: "`cg`: rank of the preconditioner."},
			{Name: "tolerance", Type: schema.Real, Default: "0.001", In: schema.Open(0, 1),
				Doc: "`cg`: relative residual at which a system is solved."},
		}},
}

// trained reports whether the spec has a model that is trained by gradient steps, and not a learner.
func (s *Spec) trained() bool { return s.Learner == nil }

// Fitted reports whether the spec has a learner in place of a model.
func (s *Spec) Fitted() bool { return s.Learner != nil }

// NoEngine is train.engine of a spec whose learner is fitted without an engine.
const NoEngine = "none"

// usesEngine reports whether the spec uses an engine: its model is trained, or its learner
// computes with the kernels of the engine native.
func (s *Spec) usesEngine() bool {
	if s.trained() {
		return true
	}
	kind := schema.Find(learnerKinds, s.Learner.Kind.V)
	return kind != nil && kind.usesEngine
}

// kindRow describes learner.kind in messages and in the schema.
var kindRow = schema.Row{Name: "kind", Required: true, Doc: "Kind of the learner."}

var learnerType = schema.CustomType{Noun: "a map", Schema: learnerSchema(), Read: readLearner, Write: writeLearner}

// readLearner decodes learner: {kind: word, arguments}, or a word.
func readLearner(r *schema.Reader, _ string, key, n *schema.Node, to any) {
	l := &Learner{Pos: key.Pos()}
	*to.(**Learner) = l
	word, args := n, (*schema.Node)(nil)
	switch {
	case n.IsMap():
		if word = n.Get(kindRow.Name); word == nil {
			r.AddFault(n.Errorf("learner.kind is missing").WithNote("known: %s", strings.Join(schema.Words(learnerKinds), ", ")))
			return
		}
		args = n.WithoutKey(kindRow.Name)
	case !n.IsScalar():
		r.AddFault(n.Errorf("learner must be a map such as {kind: %s}, not %s", learnerKinds[0].Name, n.Describe()))
		return
	}
	name, ok := r.Text(&kindRow, "learner.kind", word)
	if !ok {
		return
	}
	kind := schema.Find(learnerKinds, name)
	if kind == nil {
		r.UnknownWord(word, "learner", schema.Words(learnerKinds))
		return
	}
	l.Kind = schema.Str{V: name, Pos: word.Pos()}
	l.Args = r.Args("learner", kind.args, schema.Entry{Word: word, Args: args})
}

// resolveLearner rejects settings that have no effect with a learner, and drops inherited ones.
func (c *checker) resolveLearner() {
	l := c.spec.Learner
	if c.spec.Multi() {
		note(c.clash([]diag.Pos{l.Pos, c.spec.Data.Labels.Pos}, "a learner needs one label per bag, but data.labels is "+
			"multi"), "train a model, such as extends: demipl")
	}
	for _, name := range []string{"model", "loss", "weights"} {
		if pos := c.KeyPos(name); c.writtenWith(pos, l.Pos) {
			note(c.add(pos, "%s has no effect with learner", name),
				"a learner (at %s) has its own model and is not trained by gradient steps: remove one of the two", l.Pos)
		}
	}
	if pos := c.spec.Data.Sample.Pos; c.writtenWith(pos, l.Pos) {
		c.add(pos, "data.sample has no effect: a learner is fitted to all instances of the training bags")
	}
	c.spec.Data.Sample = schema.Int{}
	for i := range trainRows {
		row := &trainRows[i]
		if row.Applies == nil || row.Applies(c.spec) {
			continue
		}
		value := row
		if row.Field == nil { // a section
			value = schema.MainRow(row.Rows)
		}
		pos := value.PosOf(c.spec)
		if !c.writtenWith(pos, l.Pos) {
			continue
		}
		e := c.add(pos, "train.%s has no effect: a learner is not trained by gradient steps", row.Name)
		if kind := schema.Find(learnerKinds, l.Kind.V); kind != nil {
			note(e, "settings of %s: %s, in learner", kind.Name, strings.Join(schema.Words(kind.args), ", "))
		}
	}
	if subset, confidences := l.Args["subset"], l.Args["confidences"]; subset.Int() > 0 &&
		confidences.Str() == "posterior" {
		c.clash([]diag.Pos{subset.Pos, confidences.Pos}, "learner.subset must be 0 with confidences: posterior, which "+
			"change at every instance, not %d", subset.Int())
	}
	c.spec.Model, c.spec.Loss, c.spec.Weights = Network{}, nil, Weights{}
}

// writeLearner writes the section with all arguments.
func writeLearner(from any) *yaml.Node {
	l, m := *from.(**Learner), schema.MapNode(0)
	schema.Put(m, kindRow.Name, schema.TextNode(l.Kind.V))
	for _, row := range schema.Find(learnerKinds, l.Kind.V).args {
		schema.Put(m, row.Name, schema.ValueNode(l.Args[row.Name].V))
	}
	return m
}

// learnerSchema allows a plain word or the arguments of one of the kinds.
func learnerSchema() schema.Object {
	forms := []schema.Object{{"type": "string", "enum": schema.Words(learnerKinds)}}
	for _, k := range learnerKinds {
		kind := kindRow
		kind.Required, kind.Choices = false, []string{k.Name}
		form := schema.SectionSchema(append([]schema.Row{kind}, k.args...))
		form["description"] = schema.Plain(k.Doc)
		forms = append(forms, form)
	}
	return schema.Object{"anyOf": forms}
}
