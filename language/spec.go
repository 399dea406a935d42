// Package language reads the YAML language of miplc into a typed spec whose every
// value knows its place, so that later stages can report errors there too.
package language

import (
	"go/ast"

	"github.com/miplc/miplc/internal/diag"
)

// Value is a setting with the place it was written at. A default has the zero
// position.
type Value[T any] struct {
	V   T
	Pos diag.Pos
}

// Set reports whether the value was written down rather than defaulted.
func (v Value[T]) Set() bool { return !v.Pos.IsZero() }

func (v Value[T]) place() diag.Pos { return v.Pos }

type (
	Str   = Value[string]
	Int   = Value[int]
	Float = Value[float64]
	Bool  = Value[bool]
	Ints  = Value[[]int]
)

// Spec is one file of the language after extends, --set and defaults.
type Spec struct {
	File        string // path or "builtin:name", for messages
	Name        Str
	Description Str
	Data        Data
	Learner     *Learner // nil: Model is trained; else Model, Loss and Weights are empty
	Model       Model
	Loss        []Loss
	Weights     Weights
	Train       Train
	Export      Export

	Origin // of all settings, for messages
}

// Data says where the bags come from and how they are prepared.
type Data struct {
	// Set is "generated:prototypes" (a built-in generator) or the path of an
	// .npz, .mat, .csv or .csv.gz file; relative paths are looked up beside the
	// working directory and in the data directory.
	Set Str
	// Generated holds the settings of the generator when Set names one.
	Generated Generated
	// Shape reshapes each instance, e.g. [1, 28, 28]; empty: as stored.
	Shape Ints
	// Classes is the number of classes to expect; 0: as stored.
	Classes Int
	// Normalize is "none", "training" (z-scores with statistics of the training
	// bags) or "all" (statistics of all bags, as the authors' program does).
	Normalize Str
	Split     Split
}

// Generated parametrises the built-in data generator (package data).
type Generated struct {
	Bags       Int   // bags in all
	Classes    Int   // classes k
	Features   Int   // dimension d of an instance
	Candidates Int   // false positive labels r per bag
	Positives  Float // share of positive instances in a bag
	MinSize    Int   // instances of the smallest bag
	MaxSize    Int   // instances of the largest bag
	Noise      Float // standard deviation around the class prototypes
	Seed       Int
}

// Split says which bags train. Index names a file of bag numbers; else a share
// of the bags is drawn at random.
type Split struct {
	Train Float // share of training bags
	Seed  Int
	Index Str // path of a .mat with trainIndex and testIndex, or of a splits CSV
	Part  Int // which split of an index CSV, counted from 1
}

// Model describes the network from the instances to the class probabilities,
// as named blocks, as equations, or as blocks followed by equations.
type Model struct {
	Pos    diag.Pos
	Blocks []Block
	Sizes  []Size // names for extents used in parameter shapes and equations
	// Numbers are named settings of the equations of model, loss and weights.
	Numbers []Number
	Params  []Param    // learned values used by Let
	Let     []Equation // definitions in order; later ones may use earlier ones
	// Attention and Probabilities name the equations (or block results) that
	// are the model's outputs: scores [N, 1] and probabilities [B, k].
	// Log-probabilities, if named, are used in place of log(probabilities).
	Attention        Str
	Probabilities    Str
	LogProbabilities Str
}

// Block is one named block. Args holds what its kind allows; which arguments
// exist, their types and defaults is fixed by the table in blocks.go.
type Block struct {
	Kind Str
	Args map[string]Arg
}

// Setting is a value with a name of its own.
type Setting[T any] struct {
	Name Str
	V    Value[T]
}

// Size names an extent, e.g. m: 128.
type Size = Setting[int]

// Number names a setting of the equations, e.g. beta: 2.
type Number = Setting[float64]

// Param is one learned value of the equation level.
type Param struct {
	Name  Str
	Shape []Str // each an integer or the name of an extent: d, k, h or one of Sizes
	// Init is "fan_in" (uniform in +-1/sqrt(fan in)), "zeros", "ones",
	// "normal" (standard deviation Scale) or "uniform" (+-Scale).
	Init  Str
	Scale Float
	FanIn Str // extent that counts as fan in; default: the first of Shape
}

// Equation is one definition "name: expression" in Go's expression grammar.
type Equation struct {
	Name Str
	Text Str // the expression
	// Expr is the parsed expression: names, numbers, + - * /, unary minus,
	// parentheses and calls of Functions with the right number of arguments.
	// At gives the places of its parts.
	Expr ast.Expr
	// At gives the place in the file of the byte offset into Text.V.
	At func(offset int) diag.Pos
	// LineAt gives the source line for messages at that offset.
	LineAt func(offset int) string
}

// Loss is one term of the training loss: a named one, or an equation.
type Loss struct {
	Kind     Str // "disambiguation", "attention" or "equation"
	Weight   Float
	Name     Str      // of an equation term
	Equation Equation // of an equation term; its value must be a scalar
}

// Term is the name of the term among those of the loss.
func (l *Loss) Term() string {
	if l.Kind.V == "equation" {
		return l.Name.V
	}
	return l.Kind.V
}

// Weights says how the label weights of each bag change during training
// (paper Eq. 6 and 7).
type Weights struct {
	// Schedule of lambda: "linear" (T-t)/T, "progressive" 0, "averaging" 1.
	Schedule Str
	// Order is "before_loss" (paper: the loss of epoch t uses the weights of
	// epoch t), "after_loss" (the authors' program: those of epoch t-1) or
	// "after_step" (those of epoch t-1; the new ones are taken from the
	// parameters after the step).
	Order Str
	// FirstEpoch is the number t of the first epoch: 1 (paper) or 0 (program).
	FirstEpoch Int
	// Update, when given, replaces Eq. 7: an equation [B, k] of w (previous
	// weights), p (probabilities), S (candidates) and lambda.
	Update *Equation
}

// Train holds the settings of the optimiser and the loop.
type Train struct {
	Epochs      Int
	Batch       Int // bags per step
	Seed        Int
	LR          Float
	Momentum    Float
	Nesterov    Bool
	WeightDecay Float
	Schedule    Str // of the learning rate: "cosine" (to 0, per epoch) or "constant"
	Engine      Str // "auto", "gorgonia", "ort", "xla"
	EvalEvery   Int // epochs between two measurements of the accuracies
	Checkpoint  Int // epochs between two checkpoints; 0: none
}

// Export holds the settings of the ONNX file.
type Export struct {
	Signature Str // "bag" or "batch"
	Opset     Int
}
