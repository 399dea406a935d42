package language

// Role says where in the list of blocks a kind may stand.
type Role uint8

const (
	RoleFeature    Role = iota // works on instances; before attention and pool (see Embeddings)
	RoleAttention              // scores instances; at most one, before the pool
	RolePool                   // turns bags into embeddings; at most one
	RoleClassifier             // ends the blocks, after the pool
)

// Kind is one kind of block, of term of the loss or of learner.
type Kind struct {
	Name string
	Doc  string
	args []Row

	onDevice bool // of learners: computes on the device of an engine

	// Of blocks:

	Role  Role
	Makes []string // names that equations may use for its results
	// Embeddings says that a feature block may also stand after the pool, where
	// it works on the embedding z of each bag.
	Embeddings bool
}

func (k Kind) word() string { return k.Name }

// Blocks is the table of the block kinds. What a kind computes and how it
// names its parameters is in package compile.
var Blocks = []Kind{
	{Name: "conv2d", Role: RoleFeature, Doc: "Convolution of images [channels, height, width] with a square kernel and a bias.",
		args: []Row{
			{Name: "channels", Type: Whole, Required: true, In: Between(1, maxExtent), Doc: "Output channels."},
			{Name: "kernel", Type: Whole, Required: true, In: Between(1, 4096), Doc: "Height and width of the kernel."},
			{Name: "stride", Type: Whole, Default: "1", In: Between(1, 4096), Doc: "Step of the kernel."},
			{Name: "pad", Type: Whole, Default: "0", In: Between(0, 4096), Doc: "Zeros added at each edge."},
		}},
	{Name: "maxpool2d", Role: RoleFeature, Doc: "Maximum over square windows of images; windows that do not fit are left out.",
		args: []Row{
			{Name: "kernel", Type: Whole, Required: true, Main: true, In: Between(1, 4096), Doc: "Height and width of a window."},
			{Name: "stride", Type: Whole, In: Between(1, 4096), Doc: "Step of the windows; default: kernel."},
		}},
	{Name: "flatten", Role: RoleFeature, Doc: "Turns each instance into one row of features."},
	{Name: "dense", Role: RoleFeature, Embeddings: true, Doc: "Fully connected layer with a bias.",
		args: []Row{
			{Name: "units", Type: Whole, Required: true, Main: true, In: Between(1, maxExtent), Doc: "Output features."},
		}},
	{Name: "dropout", Role: RoleFeature, Embeddings: true, Doc: "Sets features to zero at random in training and scales the others up; nothing in prediction.",
		args: []Row{
			{Name: "rate", Type: Real, Required: true, Main: true, In: upTo(0, 1), Doc: "Probability of a zero."},
		}},
	{Name: "relu", Role: RoleFeature, Embeddings: true, Doc: "max(x, 0)."},
	{Name: "tanh", Role: RoleFeature, Embeddings: true, Doc: "Hyperbolic tangent."},
	{Name: "sigmoid", Role: RoleFeature, Embeddings: true, Doc: "1 / (1 + exp(-x))."},
	{Name: "softplus", Role: RoleFeature, Embeddings: true, Doc: "log(1 + exp(x))."},
	{Name: "attention", Role: RoleAttention, Makes: []string{"s", "loga", "a"},
		Doc: "Attention scores a = sigmoid(s) of the instances (Eq. 2), loga their logarithm.",
		args: []Row{
			{Name: "kind", Type: Text, Default: "disambiguation", Main: true, Choices: []string{"disambiguation"}, Doc: "The gated attention of DEMIPL."},
			{Name: "gates", Type: Text, Default: "separate", Choices: []string{"separate", "shared"}, Doc: "separate: tanh and sigmoid have weights of their own (Eq. 2); shared: the same weights (the authors' program)."},
			{Name: "scorer", Type: Text, Default: "linear", Choices: []string{"linear", "mlp"}, Doc: "linear: the vector W without bias (Eq. 2); mlp: dense, ReLU, dense (the authors' program)."},
			{Name: "hidden", Type: Whole, Default: "128", In: Between(1, maxExtent), Doc: "Width of the mlp scorer."},
			{Name: "width", Type: Whole, Default: "0", In: Between(0, maxExtent), Doc: "Width of the gates; 0: number of classes (the paper)."},
		}},
	{Name: "pool", Role: RolePool, Makes: []string{"z"}, Doc: "One embedding z per bag.",
		args: []Row{
			{Name: "kind", Type: Text, Required: true, Main: true, Choices: []string{"attention", "mean", "max", "maxmin"},
				Doc: "attention: mean weighted with the scores (Eq. 3); mean; max; maxmin: maxima and minima side by side."},
		}},
	{Name: "classifier", Role: RoleClassifier, Makes: []string{"logits", "logp", "p"},
		Doc: "Dense layer from the embedding to the classes, then the link: probabilities p, logp their logarithm.",
		args: []Row{
			{Name: "link", Type: Text, Default: "softmax", Main: true, Choices: []string{"softmax", "bounded_sigmoid"},
				Doc: "softmax, or bounded_sigmoid: sigmoid, kept in [epsilon, 1 - epsilon] in training, then softmax (the authors' program)."},
			{Name: "epsilon", Type: Real, Default: "1e-05", In: Within(0, 0.5), Doc: "Bound of bounded_sigmoid."},
		}},
}

// lossKinds is the table of the terms of the loss.
var lossKinds = []Kind{
	{Name: "disambiguation", Doc: "Cross-entropy weighted with the label weights (Eq. 5), mean over the bags.",
		args: []Row{{Name: "weight", Type: Real, Default: "1", Main: true, In: AtLeast(0), Doc: "Factor of the term."}}},
	{Name: "attention", Doc: "Attention loss (Eq. 4): -sum of a log a over the instances, mean over the bags.",
		args: []Row{{Name: "weight", Type: Real, Default: "0.001", Main: true, In: AtLeast(0), Doc: "Factor of the term, lambda_a of Eq. 8."}}},
	{Name: "equation", Doc: "A term of your own.",
		args: []Row{
			{Name: "name", Type: Text, Required: true, Doc: "Name of the term in reports."},
			{Name: "value", Type: expression, Required: true, Doc: "Equation whose value is a single number."},
			{Name: "weight", Type: Real, Default: "1", In: AtLeast(0), Doc: "Factor of the term."},
		}},
}
