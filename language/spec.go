// Package language reads the YAML language of miplc into a typed Spec. Every value keeps its
// position, so that later stages can report errors at it.
package language

import (
	"crypto/sha256"
	"encoding/hex"
	"go/ast"

	"github.com/miplc/miplc/data/formats"
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
	Search  Search // not part of a complete spec

	schema.Origin // of all settings, for messages
	source        []byte
	overrides     []schema.Override
}

// Data describes the source of the bags and their preparation; dataRows describes its keys.
type Data struct {
	Set       schema.Str
	Generated Generated
	Shape     schema.Ints
	Classes   schema.Int
	SHA256    schema.Str // of data.Dataset.Hash, in hexadecimal
	Normalize schema.Str
	Labels    schema.Str // KnownLabels, MultiLabels, NoisyLabels or empty
	Sample    schema.Int
	Columns   Columns
	Encoder   Encoder
	Split     Split
}

// Encoder is a pretrained network that computes the features of images. Without a file, the
// dataset has features. encoderRows and encoderInputRows describe its keys.
type Encoder struct {
	File, Output schema.Str
	Size         schema.Int
	Mean, Std    schema.Floats
	Order        schema.Str
	Export       schema.Str // ExportJoined or model
}

// Columns declares columns of a CSV file that are not recognised by their names; columnRows describes its keys.
type Columns struct {
	Bag, Label, Candidates, InstanceLabel, Group schema.Str
	Coordinates, Ignore, Features                schema.Strs
}

// Generated has the settings of the built-in data generator (package generate); generatedRows describes its keys.
type Generated struct {
	Bags, Classes, Features, Candidates schema.Int
	Positives                           schema.Float
	MinSize, MaxSize                    schema.Int
	Noise                               schema.Float
	Seed                                schema.Int
}

// Split determines the parts of the bags. Index names a file of bag numbers. Otherwise the bags are
// divided into folds, or a share of them is drawn at random. splitRows describes its keys.
type Split struct {
	Train       schema.Float
	Folds, Fold schema.Int
	Group       schema.Str
	Validation  schema.Float
	Stratify    schema.Bool
	Seed        schema.Int
	Index       schema.Str
	Number      schema.Int
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

// Number names a setting of the equations, e.g. beta: 2, or several numbers, e.g. costs: [1, 2, 0.5].
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
	// Init is "fan_in" (uniform in +-1/sqrt(fan in)), "zeros", "ones", "normal" (standard deviation Scale), "uniform"
	// (+-Scale) or "constant" (Scale).
	Init  schema.Str
	Scale schema.Float
	FanIn schema.Str // size used as fan in; default: the first of Shape
}

// Equation is one definition "name: expression" in Go's expression grammar.
type Equation struct {
	Name schema.Str
	Text schema.Str // the expression
	// Expr is the parsed expression: names, numbers, + - * /, unary minus, parentheses and calls of Functions with the
	// right number of arguments.
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
	Kind     schema.Str // a name of LossTerms
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
// 7); weightsRows describes its keys.
type Weights struct {
	Schedule   schema.Str
	Order      schema.Str
	FirstEpoch schema.Int
	Update     *Equation // replaces Eq. 7; nil: Eq. 7
}

// Train has the settings of the optimizer and the training loop; trainRows describes its keys. A setting of another
// optimizer or schedule is an error, unless it is inherited.
type Train struct {
	Epochs, Batch, Seed          schema.Int
	Init                         Init
	Sampling                     schema.Str
	Optimizer                    schema.Str
	LR, Momentum                 schema.Float
	Nesterov                     schema.Bool
	Beta1, Beta2, Alpha, Epsilon schema.Float
	WeightDecay, Clip            schema.Float
	Accumulate                   schema.Int
	ClassWeights                 schema.Value[ClassWeights]
	Schedule                     schema.Str
	Warmup, DecayEvery           schema.Int
	DecayAt                      schema.Ints
	DecayFactor                  schema.Float
	DecayPatience                schema.Int
	DecayMeasure                 schema.Str
	Engine, Best                 schema.Str
	Patience, MinEpochs          schema.Int // of early_stopping
	Refit                        schema.Bool
	EvalEvery, Checkpoint        schema.Int
}

// Init names the model whose parameters a training starts with; initRows describes its keys.
type Init struct {
	Model  schema.Str
	Except schema.Strs
	SHA256 schema.Str
}

// Export has the settings of the ONNX file; exportRows describes its keys.
type Export struct {
	Signature   schema.Str
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
func (s *Spec) HasColumns() bool { return formats.WithColumns().Match(s.Data.Set.V) }

// Settings returns a copy of the spec without its name, description, dataset and split. Trainings with equal
// settings, bags and split have equal results.
func (s *Spec) Settings() *Spec {
	c := *s
	c.Name, c.Description = schema.Str{}, schema.Str{}
	c.Data.Set, c.Data.SHA256, c.Data.Generated, c.Data.Split = schema.Str{}, schema.Str{}, Generated{}, Split{}
	c.Data.Labels, c.Data.Columns = schema.Str{}, Columns{}
	return &c
}
