// The table of functions of equations.

package language

import (
	"fmt"
	"strings"

	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/language/schema"
)

// ArgKind is the kind of an argument of a function.
type ArgKind uint8

// The kinds of arguments.
const (
	ArgValue   ArgKind = iota // any expression
	ArgAxis                   // a literal whole number, negative from the end
	ArgNumber                 // a literal number with an optional sign
	ArgSetting                // a literal number, or the name of a number or size
)

// FunctionArg is an argument of a function.
type FunctionArg struct {
	Name     string
	Kind     ArgKind
	optional bool // may be omitted; then later arguments are omitted too
}

func value(name string) FunctionArg          { return FunctionArg{Name: name} }
func number(name string) FunctionArg         { return FunctionArg{Name: name, Kind: ArgNumber} }
func setting(name string) FunctionArg        { return FunctionArg{Name: name, Kind: ArgSetting} }
func args(list ...FunctionArg) []FunctionArg { return list }

func values(names ...string) (list []FunctionArg) {
	for _, name := range names {
		list = append(list, value(name))
	}
	return list
}

func optional(a FunctionArg) FunctionArg {
	a.optional = true
	return a
}

var axis = FunctionArg{Name: "axis", Kind: ArgAxis}

// Function is a function that equations can call.
type Function struct {
	Name     string
	Args     []FunctionArg
	variadic bool // the last argument may be repeated
	Doc      string
}

// Signature returns the form of a call, such as sum(x, [axis]). Arguments in brackets may be omitted; with ..., the
// last one may be repeated.
func (f *Function) Signature() string {
	var args []string
	for _, a := range f.Args {
		if a.optional {
			a.Name = "[" + a.Name + "]"
		}
		args = append(args, a.Name)
	}
	if f.variadic {
		args = append(args, "...")
	}
	return f.Name + "(" + strings.Join(args, ", ") + ")"
}

// Arity returns the minimum and maximum number of arguments; most is -1 if there is no maximum.
func (f *Function) Arity() (least, most int) {
	for _, a := range f.Args {
		if !a.optional {
			least++
		}
	}
	if f.variadic {
		return least, -1
	}
	return least, len(f.Args)
}

// ArgKind returns the kind of argument i.
func (f *Function) ArgKind(i int) ArgKind { return f.Args[min(i, len(f.Args)-1)].Kind }

func (f *Function) arityText() string {
	least, most := f.Arity()
	switch {
	case most < 0:
		return fmt.Sprintf("at least %s", diag.Count(least, "argument"))
	case least != most:
		return fmt.Sprintf("%d or %s", least, diag.Count(most, "argument"))
	}
	return diag.Count(least, "argument")
}

// Functions is the table of the functions of the language.
var Functions = []Function{
	{Name: "matmul", Args: values("a", "b"), Doc: "Product of two matrices [m, n] and [n, q]."},
	{Name: "transpose", Args: values("x"), Doc: "Matrix with rows and columns swapped."},
	{Name: "exp", Args: values("x"), Doc: "e to the power x."},
	{Name: "log", Args: values("x"), Doc: "Natural logarithm."},
	{Name: "sqrt", Args: values("x"), Doc: "Square root."},
	{Name: "abs", Args: values("x"), Doc: "Absolute value."},
	{Name: "tanh", Args: values("x"), Doc: "Hyperbolic tangent."},
	{Name: "sigmoid", Args: values("x"), Doc: "1 / (1 + exp(-x))."},
	{Name: "softplus", Args: values("x"), Doc: "log(1 + exp(x)), without overflow."},
	{Name: "relu", Args: values("x"), Doc: "max(x, 0); gradient 0 at 0."},
	{Name: "erf", Args: values("x"),
		Doc: "Error function, 2/sqrt(pi) times the integral of exp(-t*t) for t from 0 to x."},
	{Name: "clamp", Args: args(value("x"), number("lo"), number("hi")),
		Doc: "x kept in [lo, hi], two numbers; gradient 0 outside."},
	{Name: "softmax", Args: values("x"), Doc: "Softmax along the last axis."},
	{Name: "log_softmax", Args: values("x"), Doc: "Logarithm of the softmax along the last axis."},
	{Name: "masked_softmax", Args: values("x", "m"),
		Doc: "Softmax along the last axis over the entries where m is 1; 0 where m is 0, and everywhere where m has " +
			"no 1."},
	{Name: "sum", Args: args(value("x"), optional(axis)),
		Doc: "Sum of all elements (a single number), or along an axis, which stays with size 1."},
	{Name: "mean", Args: args(value("x"), optional(axis)),
		Doc: "Mean of all elements (a single number), or along an axis, which stays with size 1."},
	{Name: "max", Args: args(value("x"), axis), Doc: "Maximum along an axis, which stays with size 1."},
	{Name: "maximum", Args: values("x", "y"), Doc: "The larger of two values, element by element."},
	{Name: "minimum", Args: values("x", "y"), Doc: "The smaller of two values, element by element."},
	{Name: "concat", Args: values("x", "y"), variadic: true, Doc: "Concatenation along the last axis."},
	{Name: "bag_sum", Args: values("x"), Doc: "Sum over the instances of each bag: [N, ...] to [B, ...]."},
	{Name: "bag_mean", Args: values("x"), Doc: "Mean over the instances of each bag: [N, ...] to [B, ...]."},
	{Name: "bag_max", Args: values("x"), Doc: "Maximum over the instances of each bag: [N, ...] to [B, ...]."},
	{Name: "bag_min", Args: values("x"), Doc: "Minimum over the instances of each bag: [N, ...] to [B, ...]."},
	{Name: "bag_count", Args: values("x"),
		Doc: "Number of instances of each bag, [B, 1]. Only the rows of x, [N, ...], are counted; its values do not " +
			"matter."},
	{Name: "bag_softmax", Args: values("x"),
		Doc: "Softmax over the instances of each bag, per column: [N, ...] to [N, ...]."},
	{Name: "bag_attention", Args: args(value("q"), value("k"), value("v"), optional(setting("heads")),
		optional(value("keys")), optional(value("values"))),
		Doc: "Scaled dot-product attention among the instances of each bag, see " +
			"[below](#attention-among-instances): queries and keys [N, d], values [N, m] to [N, m]."},
	{Name: "of_bag", Args: values("y"), Doc: "Repeats the row of each bag for its instances: [B, ...] to [N, ...]."},
	{Name: "bag_matmul", Args: values("x", "y"),
		Doc: "For each bag the matrix product of its rows of x, transposed, and its rows of y: [N, a] and [N, b] to " +
			"[B, a, b]. The smaller of a and b is at most 256."},
	{Name: "bag_scores", Args: values("x", "m"),
		Doc: "Dot products of each instance with the rows of the matrix of its bag: [N, d] and [B, c, d] to [N, c], " +
			"c at most 256. With queries m of each bag, bag_softmax(bag_scores(k, m) / sqrt(d)) are the weights of an " +
			"attention."},
	{Name: "bag_top", Args: args(value("s"), setting("n")),
		Doc: "1 at the n largest values of each bag, per column, else 0; the first of equal values counts. All " +
			"instances of a smaller bag get 1. n is at most 64. [N, ...] to [N, ...], without gradient."},
	{Name: "flatten", Args: values("x"),
		Doc: "One row of all values for each index of the first axis: [B, a, b] to [B, a*b]."},
	{Name: "split", Args: args(value("x"), setting("n")),
		Doc: "The values of each row as n rows, which flatten undoes: [B, n*a] to [B, n, a]."},
	{Name: "layer_norm", Args: values("x", "gain", "bias"),
		Doc: "gain * (x - mean) / sqrt(variance + 1e-5) + bias, with mean and variance (divided by the count) along " +
			"the last axis."},
	{Name: "bag_norm", Args: values("x", "gain", "bias"),
		Doc: "The same with mean and variance over the instances of each bag, per column (instance normalisation): " +
			"[N, ...] to [N, ...]. In training and in predictions alike."},
	{Name: "batch_norm", Args: values("x", "gain", "bias"),
		Doc: "The same with mean and variance over the rows of the batch, [N, m] or [B, m], in training; in " +
			"predictions, and for a single row, with their running means, in which a batch has a share of 0.1. Only " +
			"in equations of the model."},
	{Name: "dropout", Args: args(value("x"), setting("rate")),
		Doc: "In training, sets random values of x to zero with probability rate and divides the others by 1 - " +
			"rate; x in predictions."},
	{Name: "random", Args: args(value("x"), setting("rate"), setting("prediction")),
		Doc: "In training, 1 with probability rate, else 0, drawn anew in each step for every value of x; the " +
			"number prediction in predictions."},
	{Name: "uniform", Args: args(value("x"), setting("prediction")),
		Doc: "In training, a number between 0 and 1 for every value of x, drawn anew in each step from 16 random " +
			"bits; the number prediction in predictions. x is [N, ...], [B, ...] or has the shape of a parameter."},
	{Name: "normal", Args: values("x"),
		Doc: "In training, a number of the standard normal distribution for every value of x, between -4.4 and 4.4; " +
			"0 in predictions."},
	{Name: "stop_gradient", Args: values("x"), Doc: "x, as a constant for the gradient."},
}

// Word returns the name of the function.
func (f Function) Word() string { return f.Name }

// FunctionNamed returns the row of a function, or nil.
func FunctionNamed(name string) *Function { return schema.Find(Functions, name) }
