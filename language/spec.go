// Package language reads the YAML language of miplc into a typed Spec. Every value keeps its
// position, so that later stages can report errors at it.
package language

import (
	"crypto/sha256"
	"encoding/hex"
	"go/ast"

	"github.com/miplc/miplc/data/bagfile"
	"github.com/miplc/miplc/internal/diag"

	"github.com/miplc/miplc/language/schema"
)

// Spec is a file of the language after extends, --set and defaults.
type Spec struct {
	File        string // path or "builtin:name", for messages
	Name        schema.Str
	Description schema.Str
	Data        Data
	Learner     *Learner // nil: Model is trained; otherwise Model, Loss and Weights are empty
	Model       Network
	// Let are definitions, in order, that losses and the update of the label weights share. Their
	// names have the meaning of the equation that uses the definition.
	Let     []Equation
	Loss    []Loss
	Weights Weights
	Train   Train
	Export  Export

	schema.Origin // of all settings, for messages
}

// Data describes the source of the bags and their preparation.
type Data struct {
	// Set is "generated:prototypes" (a built-in generator) or the path of an
	// file in one of the formats of bagfile.Readable. Relative paths are searched in the working directory
	// and in the data directory.
	Set schema.Str
	// Generated has the settings of the generator if Set names one.
	Generated Generated
	// Shape reshapes each instance, e.g. [1, 28, 28]; empty: as stored.
	Shape schema.Ints
	// Classes is the number of classes to expect; 0: as stored.
	Classes schema.Int
	// SHA256 is the expected data.Dataset.Hash in hexadecimal; empty: any.
	SHA256 schema.Str
	// Normalize is "none", "training" (z-scores with statistics of the training
	// bags) or "all" (statistics of all bags, as in the authors' program).
	Normalize schema.Str
	// Labels is KnownLabels (the true label of a bag is its only candidate), MultiLabels (a bag has
	// any number of true labels) or empty (candidates as stored).
	Labels schema.Str
	// Sample is the number of instances of a bag that an epoch trains on; 0: all.
	Sample  schema.Int
	Columns Columns
	Encoder Encoder
	Split   Split
}

// Encoder is a pretrained network that computes the features of images. Without a file, the
// dataset has features.
type Encoder struct {
	File   schema.Str    // path of an ONNX file; empty: none
	Output schema.Str    // value of the file with the features; empty: its only output
	Size   schema.Int    // width and height of an image in pixels
	Mean   schema.Floats // by channel, subtracted from levels from 0 to 1; empty: 0
	Std    schema.Floats // by channel, divides; empty: 1
	Order  schema.Str    // of the channels: rgb or bgr
	Export schema.Str    // joined: the model file contains the encoder; model: it does not
}

// Columns declares columns of a CSV file that are not recognised by their names.
type Columns struct {
	Bag, Label, Candidates, InstanceLabel schema.Str  // names of the columns; empty: the usual ones
	Group                                 schema.Str  // name of the column; empty: that of Split
	Coordinates                           schema.Strs // of x and y; empty: x and y
	Ignore                                schema.Strs // not read
	Features                              schema.Strs // features although they are named like identifiers
}

// Generated has the settings of the built-in data generator (package generate).
type Generated struct {
	Bags       schema.Int   // number of bags
	Classes    schema.Int   // classes k
	Features   schema.Int   // dimension d of an instance
	Candidates schema.Int   // false positive labels r per bag
	Positives  schema.Float // share of positive instances in a bag
	MinSize    schema.Int   // instances of the smallest bag
	MaxSize    schema.Int   // instances of the largest bag
	Noise      schema.Float // standard deviation around the class prototypes
	Seed       schema.Int
}

// Split determines the parts of the bags. Index names a file of bag numbers. Otherwise the bags are
// divided into folds, or a share of them is drawn at random.
type Split struct {
	Train schema.Float // share of training bags; not used with Folds
	Folds schema.Int   // number of folds; 0: a share of the bags is drawn
	Fold  schema.Int   // the fold of the test bags, counted from 1
	Group schema.Str   // column of the groups whose bags stay together; empty: no groups
	// Validation is the share of the training bags that become validation bags; 0: none.
	Validation schema.Float
	Stratify   schema.Bool // the same share of every class
	Seed       schema.Int
	Index      schema.Str // path of a .mat with trainIndex and testIndex, or of a splits CSV
	Number     schema.Int // which split of an index CSV, counted from 1
}

// Network is the section model of a spec: the network from the instances to the class probabilities,
// as blocks, as equations, or as blocks followed by equations.
type Network struct {
	Pos    diag.Pos
	Blocks []Block
	Sizes  []Size // named sizes for parameter shapes and equations
	// Numbers are named settings of the equations of model, loss and weights.
	Numbers []Number
	Params  []Param // learned values used by equations
	// Functions can be called by the equations of model, loss and weights, and by later
	// functions.
	Functions []UserFunction
	Let       []Equation // definitions in order; each may use earlier ones
	// Attention and Probabilities name the equations or block results that are the outputs of
	// the model: scores [N, 1] and probabilities [B, k]. LogProbabilities, if not empty,
	// replace log(probabilities). ClassAttention, if not empty, is an output with the scores of
	// each class [N, k].
	Attention        schema.Str
	ClassAttention   schema.Str
	Probabilities    schema.Str
	LogProbabilities schema.Str
	Threshold        schema.Float // probability above which a class is predicted, with MultiLabels
}

// Block is a block of a model. The table Blocks defines the arguments of its kind, their types and
// defaults.
type Block struct {
	Kind schema.Str
	Args map[string]schema.Arg
}

// Setting is a value with a name.
type Setting[T any] struct {
	Name schema.Str
	V    schema.Value[T]
}

// Size is a named size, e.g. m: 128.
type Size = Setting[int]

// Number names a setting of the equations, e.g. beta: 2, or several numbers, e.g.
// costs: [1, 2, 0.5].
type Number = Setting[Literal]

// Literal is the value of a Number: one number or a list.
type Literal struct {
	Values []float64
	List   bool
}

// Param is a learned value of equations.
type Param struct {
	Name  schema.Str
	Shape []schema.Str // each an integer or the name of a size: d, k, h or one of Sizes
	// Init is "fan_in" (uniform in +-1/sqrt(fan in)), "zeros", "ones",
	// "normal" (standard deviation Scale), "uniform" (+-Scale) or "constant" (Scale).
	Init  schema.Str
	Scale schema.Float
	FanIn schema.Str // size used as fan in; default: the first of Shape
}

// Equation is one definition "name: expression" in Go's expression grammar.
type Equation struct {
	Name schema.Str
	Text schema.Str // the expression
	// Expr is the parsed expression: names, numbers, + - * /, unary minus,
	// parentheses and calls of Functions with the right number of arguments.
	Expr ast.Expr
	// At returns the position in the file of a byte offset into Text.V.
	At func(offset int) diag.Pos
	// LineAt returns the source line at that offset, for messages.
	LineAt func(offset int) string
}

// UserFunction is a function that a spec defines. A call is replaced by Value, with the arguments
// of the call in place of Args.
type UserFunction struct {
	Name  schema.Str
	Args  []schema.Str
	Let   []Equation // local definitions, in order
	Value *Equation
}

// Loss is one term of the training loss: a named one, or an equation.
type Loss struct {
	Kind     schema.Str // "disambiguation", "binary_cross_entropy", "attention" or "equation"
	Weight   schema.Float
	Name     schema.Str // of an equation term
	Equation Equation   // of an equation term; its value must be a scalar
}

// Term returns the name of the term, unique in the loss.
func (l *Loss) Term() string {
	if l.Kind.V == "equation" {
		return l.Name.V
	}
	return l.Kind.V
}

// Weights determines the updates of the label weights of each bag during training (paper Eq. 6 and
// 7).
type Weights struct {
	// Schedule of lambda: "linear" (T-t)/T, "progressive" 0, "averaging" 1.
	Schedule schema.Str
	// Order is "before_loss" (paper: the loss of epoch t uses the weights of
	// epoch t), "after_loss" (the authors' program: those of epoch t-1) or
	// "after_step" (those of epoch t-1; the new ones are computed with the parameters after the
	// step).
	Order schema.Str
	// FirstEpoch is the number t of the first epoch: 1 (paper) or 0 (program).
	FirstEpoch schema.Int
	// Update replaces Eq. 7: an equation [B, k] of w (previous weights), p (probabilities), S
	// (candidates) and lambda. nil: Eq. 7.
	Update *Equation
}

// Train has the settings of the optimizer and the training loop.
type Train struct {
	Epochs schema.Int
	Batch  schema.Int // bags per step
	Seed   schema.Int
	Init   Init
	// Sampling is "shuffle" (every bag once per epoch) or "balanced" (draws with replacement, each
	// of a class, all equally likely, and then of a bag with this candidate).
	Sampling schema.Str
	// Optimizer is "sgd", "adam", "adamw" or "rmsprop". A setting of another optimizer is an
	// error, unless it is inherited.
	Optimizer   schema.Str
	LR          schema.Float
	Momentum    schema.Float // of sgd and rmsprop
	Nesterov    schema.Bool  // of sgd
	Beta1       schema.Float // of adam and adamw
	Beta2       schema.Float // of adam and adamw
	Alpha       schema.Float // of rmsprop
	Epsilon     schema.Float // of adam, adamw and rmsprop
	WeightDecay schema.Float
	Clip        schema.Float // maximum norm of the gradient; 0: no limit
	Accumulate  schema.Int   // steps whose gradients are averaged for an update
	// ClassWeights are the factors of the classes in the loss terms disambiguation and
	// binary_cross_entropy.
	ClassWeights schema.Value[ClassWeights]
	// Schedule of the learning rate is "cosine" (to 0, per epoch), "constant", "step" or
	// "plateau".
	Schedule      schema.Str
	Warmup        schema.Int   // epochs in which the rate rises to LR
	DecayEvery    schema.Int   // of step: epochs between two decays, unless DecayAt is given
	DecayAt       schema.Ints  // of step: epochs after which the rate decays
	DecayFactor   schema.Float // of step and plateau
	DecayPatience schema.Int   // of plateau: bad epochs before a decay
	DecayMeasure  schema.Str   // of plateau: measure of the validation bags; empty: the training loss
	Engine        schema.Str   // "auto", "gorgonia", "ort", "xla"
	Best          schema.Str   // measure of the validation bags that chooses the epoch; empty: the last epoch
	Patience      schema.Int   // of early stopping: epochs without improvement; 0: none
	MinEpochs     schema.Int   // of early stopping: epochs before which training does not end
	Refit         schema.Bool  // train again on training and validation bags, for the number of epochs that Best chose
	EvalEvery     schema.Int   // epochs between two measurements of the accuracies
	Checkpoint    schema.Int   // epochs between two checkpoints; 0: no checkpoints
}

// Init names the model whose parameters a training starts with.
type Init struct {
	Model  schema.Str  // path of the ONNX file; empty: parameters are drawn
	Except schema.Strs // parameters that are drawn nevertheless
	SHA256 schema.Str  // expected hash of the file in hexadecimal; empty: any
}

// Export has the settings of the ONNX file.
type Export struct {
	Signature   schema.Str // "bag" or "batch"
	Opset       schema.Int
	Temperature schema.Value[Temperature]
}

// YAML returns the complete spec: every key that applies, with defaults, without extends. Parse
// reads it back to an equal spec.
func (s *Spec) YAML() []byte { return schema.Encode(specRows, s) }

// Identity returns the SHA-256, in hexadecimal, of the complete spec without train.engine. Checkpoints and
// summaries record the engine separately, because auto may select different engines on different machines.
func (s *Spec) Identity() string {
	sum := sha256.Sum256(s.WithEngine("").YAML())
	return hex.EncodeToString(sum[:])
}

// WithEngine returns a copy of the spec with another train.engine. The copy shares all
// other values with the spec.
func (s *Spec) WithEngine(name string) *Spec {
	c := *s
	c.Train.Engine.V = name
	return &c
}

// HasColumns reports whether the dataset is a file with named columns: CSV.
func (s *Spec) HasColumns() bool { return bagfile.WithColumns().Match(s.Data.Set.V) }

// Settings returns a copy of the spec without its name, description, dataset and split. Trainings with equal
// settings, bags and split have equal results.
func (s *Spec) Settings() *Spec {
	c := *s
	c.Name, c.Description = schema.Str{}, schema.Str{}
	c.Data.Set, c.Data.SHA256, c.Data.Generated, c.Data.Split = schema.Str{}, schema.Str{}, Generated{}, Split{}
	c.Data.Labels, c.Data.Columns = schema.Str{}, Columns{}
	return &c
}
