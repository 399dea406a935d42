package language

// Role says where in the list of blocks a kind may stand.
type Role uint8

const (
	RoleFeature    Role = iota // works on instances; before attention and pool (see Embeddings)
	RoleAttention              // scores instances; at most one, before the pool
	RolePool                   // turns bags into embeddings; at most one
	RoleClassifier             // ends the blocks, after the pool
)

// BlockKind is one kind of block of model.blocks.
type BlockKind struct {
	Name  string
	Doc   string
	Role  Role
	Makes []string // names that equations may use for its results
	// Embeddings says that a feature block may also stand after the pool, where
	// it works on the embedding z of each bag.
	Embeddings bool
	args       []row
}

// Args lists the names of the arguments; Block.Args has each of them.
func (k *BlockKind) Args() []string { return namesOf(k.args) }

// Blocks is the table of the block kinds. What a kind computes and how it
// names its parameters is in package compile.
var Blocks = []BlockKind{
	{Name: "conv2d", Role: RoleFeature, Doc: "Convolution of images [channels, height, width] with a square kernel and a bias.",
		args: []row{
			{name: "channels", typ: tInt, required: true, in: between(1, maxExtent), doc: "Output channels."},
			{name: "kernel", typ: tInt, required: true, in: between(1, 4096), doc: "Height and width of the kernel."},
			{name: "stride", typ: tInt, def: "1", in: between(1, 4096), doc: "Step of the kernel."},
			{name: "pad", typ: tInt, def: "0", in: between(0, 4096), doc: "Zeros added at each edge."},
		}},
	{Name: "maxpool2d", Role: RoleFeature, Doc: "Maximum over square windows of images; windows that do not fit are left out.",
		args: []row{
			{name: "kernel", typ: tInt, required: true, main: true, in: between(1, 4096), doc: "Height and width of a window."},
			{name: "stride", typ: tInt, in: between(1, 4096), doc: "Step of the windows; default: kernel."},
		}},
	{Name: "flatten", Role: RoleFeature, Doc: "Turns each instance into one row of features."},
	{Name: "dense", Role: RoleFeature, Embeddings: true, Doc: "Fully connected layer with a bias.",
		args: []row{
			{name: "units", typ: tInt, required: true, main: true, in: between(1, maxExtent), doc: "Output features."},
		}},
	{Name: "dropout", Role: RoleFeature, Embeddings: true, Doc: "Sets features to zero at random in training and scales the others up; nothing in prediction.",
		args: []row{
			{name: "rate", typ: tFloat, required: true, main: true, in: upTo(0, 1), doc: "Probability of a zero."},
		}},
	{Name: "relu", Role: RoleFeature, Embeddings: true, Doc: "max(x, 0)."},
	{Name: "tanh", Role: RoleFeature, Embeddings: true, Doc: "Hyperbolic tangent."},
	{Name: "sigmoid", Role: RoleFeature, Embeddings: true, Doc: "1 / (1 + exp(-x))."},
	{Name: "softplus", Role: RoleFeature, Embeddings: true, Doc: "log(1 + exp(x))."},
	{Name: "attention", Role: RoleAttention, Makes: []string{"s", "loga", "a"},
		Doc: "Attention scores a = sigmoid(s) of the instances (Eq. 2), loga their logarithm.",
		args: []row{
			{name: "kind", typ: tString, def: "disambiguation", main: true, choices: []string{"disambiguation"}, doc: "The gated attention of DEMIPL."},
			{name: "gates", typ: tString, def: "separate", choices: []string{"separate", "shared"}, doc: "separate: tanh and sigmoid have weights of their own (Eq. 2); shared: the same weights (the authors' program)."},
			{name: "scorer", typ: tString, def: "linear", choices: []string{"linear", "mlp"}, doc: "linear: the vector W without bias (Eq. 2); mlp: dense, ReLU, dense (the authors' program)."},
			{name: "hidden", typ: tInt, def: "128", in: between(1, maxExtent), doc: "Width of the mlp scorer."},
			{name: "width", typ: tInt, def: "0", in: between(0, maxExtent), doc: "Width of the gates; 0: number of classes (the paper)."},
		}},
	{Name: "pool", Role: RolePool, Makes: []string{"z"}, Doc: "One embedding z per bag.",
		args: []row{
			{name: "kind", typ: tString, required: true, main: true, choices: []string{"attention", "mean", "max", "maxmin"},
				doc: "attention: mean weighted with the scores (Eq. 3); mean; max; maxmin: maxima and minima side by side."},
		}},
	{Name: "classifier", Role: RoleClassifier, Makes: []string{"logits", "logp", "p"},
		Doc: "Dense layer from the embedding to the classes, then the link: probabilities p, logp their logarithm.",
		args: []row{
			{name: "link", typ: tString, def: "softmax", main: true, choices: []string{"softmax", "bounded_sigmoid"},
				doc: "softmax, or bounded_sigmoid: sigmoid, kept in [epsilon, 1 - epsilon] in training, then softmax (the authors' program)."},
			{name: "epsilon", typ: tFloat, def: "1e-05", in: within(0, 0.5), doc: "Bound of bounded_sigmoid."},
		}},
}

// BlockNamed returns the row of a kind, or nil.
func BlockNamed(name string) *BlockKind {
	for i := range Blocks {
		if Blocks[i].Name == name {
			return &Blocks[i]
		}
	}
	return nil
}

func blockNames() []string {
	list := make([]string, len(Blocks))
	for i := range Blocks {
		list[i] = Blocks[i].Name
	}
	return list
}

// lossKind is one kind of term of the loss.
type lossKind struct {
	name string
	doc  string
	args []row
}

var lossKinds = []lossKind{
	{name: "disambiguation", doc: "Cross-entropy weighted with the label weights (Eq. 5), mean over the bags.",
		args: []row{{name: "weight", typ: tFloat, def: "1", main: true, in: atLeast(0), doc: "Factor of the term."}}},
	{name: "attention", doc: "Attention loss (Eq. 4): -sum of a log a over the instances, mean over the bags.",
		args: []row{{name: "weight", typ: tFloat, def: "0.001", main: true, in: atLeast(0), doc: "Factor of the term, lambda_a of Eq. 8."}}},
	{name: "equation", doc: "A term of your own.",
		args: []row{
			{name: "name", typ: tString, required: true, doc: "Name of the term in reports."},
			{name: "value", typ: tExpression, required: true, doc: "Equation whose value is a single number."},
			{name: "weight", typ: tFloat, def: "1", in: atLeast(0), doc: "Factor of the term."},
		}},
}

func lossNamed(name string) *lossKind {
	for i := range lossKinds {
		if lossKinds[i].name == name {
			return &lossKinds[i]
		}
	}
	return nil
}

func lossNames() []string {
	list := make([]string, len(lossKinds))
	for i := range lossKinds {
		list[i] = lossKinds[i].name
	}
	return list
}
