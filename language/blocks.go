// The table of blocks.

package language

import "github.com/miplc/miplc/language/schema"

// Role determines the possible positions of a kind in the list of blocks.
type Role uint8

const (
	RoleFeature    Role = iota // works on instances; before attention and pool (see AfterPool)
	RoleAttention              // scores instances; at most one, before the pool
	RolePool                   // turns bags into embeddings; at most one
	RoleClassifier             // ends the blocks, after the pool
)

// Kind is a kind of block, of loss term or of learner.
type Kind struct {
	Name string
	Doc  string
	args []schema.Row

	usesEngine bool // of learners: computes with the kernels of the engine native

	// Of blocks:

	Role    Role
	Results []string // names that equations may use for its results
	// AfterPool allows a feature block after the pool, where it transforms the embedding z of each bag.
	AfterPool bool

	// Of loss terms:

	Reads         []string // names, as in equations, of the values that the term needs
	labels        labelCount
	weighsClasses bool // by train.class_weights
}

// Word returns the name of the kind.
func (k Kind) Word() string { return k.Name }

// Blocks is the table of the kinds of blocks. Package compile defines what they compute and the
// names of their parameters.
var Blocks = []Kind{
	{Name: "conv2d", Role: RoleFeature, Doc: "Convolution of images [channels, height, width] with a square kernel and " +
		"a bias.",
		args: []schema.Row{
			{Name: "channels", Type: schema.Whole, Required: true, In: schema.Closed(1, schema.MaxSize),
				Doc: "Output channels."},
			{Name: "kernel", Type: schema.Whole, Required: true, In: schema.Closed(1, 4096),
				Doc: "Height and width of the kernel."},
			{Name: "stride", Type: schema.Whole, Default: "1", In: schema.Closed(1, 4096), Doc: "Step of the kernel."},
			{Name: "pad", Type: schema.Whole, Default: "0", In: schema.Closed(0, 4096), Doc: "Zeros added at each edge."},
		}},
	{Name: "maxpool2d", Role: RoleFeature, Doc: "Maximum over square windows of images; incomplete windows are dropped.",
		args: []schema.Row{
			{Name: "kernel", Type: schema.Whole, Required: true, Main: true, In: schema.Closed(1, 4096),
				Doc: "Height and width of a window."},
			{Name: "stride", Type: schema.Whole, In: schema.Closed(1, 4096),
				Doc: "Step of the windows.", DefaultDoc: "`kernel`"},
		}},
	{Name: "flatten", Role: RoleFeature, Doc: "Flattens each instance to a vector of features."},
	{Name: "dense", Role: RoleFeature, AfterPool: true, Doc: "Fully connected layer with a bias.",
		args: []schema.Row{
			{Name: "units", Type: schema.Whole, Required: true, Main: true, In: schema.Closed(1, schema.MaxSize),
				Doc: "Output features."},
		}},
	{Name: "dropout", Role: RoleFeature, AfterPool: true, Doc: "In training, sets random features to zero and scales " +
		"up the others; no effect in predictions.",
		args: []schema.Row{
			{Name: "rate", Type: schema.Real, Required: true, Main: true, In: schema.HalfOpen(0, 1),
				Doc: "Probability of a zero."},
		}},
	{Name: "batch_norm", Role: RoleFeature, AfterPool: true, Doc: "Batch normalisation of features: (x - mean) / " +
		"sqrt(variance + 1e-5) * weight + bias. In training with mean and variance over the instances, or after the pool " +
		"over the bags, of the batch; in predictions, and for a single instance or bag, with their running means.",
		args: []schema.Row{
			{Name: "momentum", Type: schema.Real, Default: "0.1", Main: true, In: schema.Open(0, 1),
				Doc: "Share of the batch in the new running mean."},
		}},
	{Name: "relu", Role: RoleFeature, AfterPool: true, Doc: "max(x, 0)."},
	{Name: "tanh", Role: RoleFeature, AfterPool: true, Doc: "Hyperbolic tangent."},
	{Name: "sigmoid", Role: RoleFeature, AfterPool: true, Doc: "1 / (1 + exp(-x))."},
	{Name: "softplus", Role: RoleFeature, AfterPool: true, Doc: "log(1 + exp(x))."},
	{Name: "attention", Role: RoleAttention, Results: []string{"s", "loga", "a"},
		Doc: "Attention scores `a` = sigmoid(`s`) of the instances (Eq. 2); `loga` is their logarithm.",
		args: []schema.Row{
			{Name: "kind", Default: "disambiguation", Main: true, Choices: []string{"disambiguation"},
				Doc: "The gated attention of DEMIPL."},
			{Name: "gates", Default: "separate", Choices: []string{"separate", "shared"},
				Doc: "`separate`: tanh and sigmoid have different weights (Eq. 2). `shared`: the same weights (program of " +
					"DEMIPL's authors)."},
			{Name: "scorer", Default: "linear", Choices: []string{"linear", "mlp"},
				Doc: "`linear`: the vector W without bias (Eq. 2). `mlp`: dense, ReLU, dense (program of DEMIPL's authors)."},
			{Name: "hidden", Type: schema.Whole, Default: "128", In: schema.Closed(1, schema.MaxSize),
				Doc: "Width of the hidden layer of `scorer: mlp`."},
			{Name: "width", Type: schema.Whole, Default: "0", In: schema.Closed(0, schema.MaxSize),
				Doc: "Width of the gates. 0: number of classes (paper)."},
		}},
	{Name: "pool", Role: RolePool, Results: []string{"z"}, Doc: "Aggregates the instances of each bag to one vector `z`.",
		args: []schema.Row{
			{Name: "kind", Required: true, Main: true, Choices: []string{"attention", "mean", "max",
				"maxmin"},
				Doc: "`attention`: mean weighted by the attention scores (Eq. 3). `maxmin`: maxima and minima, concatenated."},
		}},
	{Name: "classifier", Role: RoleClassifier, Results: []string{"logits", "logp", "p"},
		Doc: "Dense layer from `z` to the classes (`logits`), then the link: probabilities `p` and their logarithm `logp`.",
		args: []schema.Row{
			{Name: "link", Default: "softmax", Main: true, Choices: []string{"softmax", "bounded_sigmoid",
				sigmoidLink},
				Doc: "`bounded_sigmoid`: sigmoid, clamped to [epsilon, 1 - epsilon] in training, then softmax (program of " +
					"DEMIPL's authors). `sigmoid`: the probability of each class by itself; the default and only choice with " +
					"`data.labels: multi`."},
			{Name: "epsilon", Type: schema.Real, Default: "1e-05", In: schema.Open(0, 0.5), Doc: "Bound of `bounded_sigmoid`."},
		}},
}
