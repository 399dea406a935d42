// The table of functions of equations.

package language

import (
	"fmt"

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

// Function is a function that equations can call.
type Function struct {
	Name string
	// Args are the names of the arguments, for messages, and ArgKinds their kinds. The last
	// Optional arguments may be omitted. With Variadic the last one may be repeated.
	Args     []string
	ArgKinds []ArgKind
	Optional int
	Variadic bool
	Doc      string
}

// signature returns the form of a call: "sum(x, axis)".
func (f *Function) signature() string {
	s := f.Name + "("
	for i, a := range f.Args {
		if i > 0 {
			s += ", "
		}
		if i >= len(f.Args)-f.Optional {
			a = "[" + a + "]"
		}
		s += a
	}
	if f.Variadic {
		s += ", ..."
	}
	return s + ")"
}

// Arity returns the minimum and maximum number of arguments; most is -1 if there is no maximum.
func (f *Function) Arity() (least, most int) {
	least, most = len(f.Args)-f.Optional, len(f.Args)
	if f.Variadic {
		most = -1
	}
	return least, most
}

// ArgKind returns the kind of argument i.
func (f *Function) ArgKind(i int) ArgKind {
	return f.ArgKinds[min(i, len(f.ArgKinds)-1)]
}

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

func unary(name, doc string) Function {
	return Function{Name: name, Args: []string{"x"}, ArgKinds: []ArgKind{ArgValue}, Doc: doc}
}

func binary(name, a, b, doc string) Function {
	return Function{Name: name, Args: []string{a, b}, ArgKinds: []ArgKind{ArgValue, ArgValue}, Doc: doc}
}

func reduction(name string, optional int, doc string) Function {
	return Function{Name: name, Args: []string{"x", "axis"}, ArgKinds: []ArgKind{ArgValue, ArgAxis}, Optional: optional,
		Doc: doc}
}

// Functions is the table of the functions of the language.
var Functions = []Function{
	binary("matmul", "a", "b", "Product of two matrices [m, n] and [n, q]."),
	unary("transpose", "Matrix with rows and columns swapped."),
	unary("exp", "e to the power x."),
	unary("log", "Natural logarithm."),
	unary("sqrt", "Square root."),
	unary("abs", "Absolute value."),
	unary("tanh", "Hyperbolic tangent."),
	unary("sigmoid", "1 / (1 + exp(-x))."),
	unary("softplus", "log(1 + exp(x)), without overflow."),
	unary("relu", "max(x, 0); gradient 0 at 0."),
	unary("erf", "Error function, 2/sqrt(pi) times the integral of exp(-t*t) for t from 0 to x."),
	{Name: "clamp", Args: []string{"x", "lo", "hi"}, ArgKinds: []ArgKind{ArgValue, ArgNumber, ArgNumber},
		Doc: "x kept in [lo, hi], two numbers; gradient 0 outside."},
	unary("softmax", "Softmax along the last axis."),
	unary("log_softmax", "Logarithm of the softmax along the last axis."),
	binary("masked_softmax", "x", "m", "Softmax along the last axis over the entries where m is 1; 0 where m is 0, and "+
		"everywhere where m has no 1."),
	reduction("sum", 1, "Sum of all elements (a single number), or along an axis, which stays with size 1."),
	reduction("mean", 1, "Mean of all elements (a single number), or along an axis, which stays with size 1."),
	reduction("max", 0, "Maximum along an axis, which stays with size 1."),
	binary("maximum", "x", "y", "The larger of two values, element by element."),
	binary("minimum", "x", "y", "The smaller of two values, element by element."),
	{Name: "concat", Args: []string{"x", "y"}, ArgKinds: []ArgKind{ArgValue, ArgValue}, Variadic: true,
		Doc: "Concatenation along the last axis."},
	unary("bag_sum", "Sum over the instances of each bag: [N, ...] to [B, ...]."),
	unary("bag_mean", "Mean over the instances of each bag: [N, ...] to [B, ...]."),
	unary("bag_max", "Maximum over the instances of each bag: [N, ...] to [B, ...]."),
	unary("bag_min", "Minimum over the instances of each bag: [N, ...] to [B, ...]."),
	unary("bag_count", "Number of instances of each bag, [B, 1]. Only the rows of x, [N, ...], are counted; its values "+
		"do not matter."),
	unary("bag_softmax", "Softmax over the instances of each bag, per column: [N, ...] to [N, ...]."),
	{Name: "bag_attention", Args: []string{"q", "k", "v", "heads", "keys", "values"}, ArgKinds: []ArgKind{ArgValue,
		ArgValue, ArgValue, ArgSetting, ArgValue, ArgValue}, Optional: 3,
		Doc: "Scaled dot-product attention among the instances of each bag, see [below](#attention-among-instances): " +
			"queries and keys [N, d], values [N, m] to [N, m]."},
	{Name: "of_bag", Args: []string{"y"}, ArgKinds: []ArgKind{ArgValue},
		Doc: "Repeats the row of each bag for its instances: [B, ...] to [N, ...]."},
	binary("bag_matmul", "x", "y", "For each bag the matrix product of its rows of x, transposed, and its rows of y: "+
		"[N, a] and [N, b] to [B, a, b]. The smaller of a and b is at most 256."),
	binary("bag_scores", "x", "m", "Dot products of each instance with the rows of the matrix of its bag: [N, d] and "+
		"[B, c, d] to [N, c], c at most 256. With queries m of each bag, bag_softmax(bag_scores(k, m) / sqrt(d)) are the "+
		"weights of an attention."),
	{Name: "bag_top", Args: []string{"s", "n"}, ArgKinds: []ArgKind{ArgValue, ArgSetting},
		Doc: "1 at the n largest values of each bag, per column, else 0; the first of equal values counts. All instances " +
			"of a smaller bag get 1. n is at most 64. [N, ...] to [N, ...], without gradient."},
	unary("flatten", "One row of all values for each index of the first axis: [B, a, b] to [B, a*b]."),
	{Name: "split", Args: []string{"x", "n"}, ArgKinds: []ArgKind{ArgValue, ArgSetting},
		Doc: "The values of each row as n rows, which flatten undoes: [B, n*a] to [B, n, a]."},
	{Name: "layer_norm", Args: []string{"x", "gain", "bias"}, ArgKinds: []ArgKind{ArgValue, ArgValue, ArgValue},
		Doc: "gain * (x - mean) / sqrt(variance + 1e-5) + bias, with mean and variance (divided by the count) along the " +
			"last axis."},
	{Name: "bag_norm", Args: []string{"x", "gain", "bias"}, ArgKinds: []ArgKind{ArgValue, ArgValue, ArgValue},
		Doc: "The same with mean and variance over the instances of each bag, per column (instance normalisation): [N, " +
			"...] to [N, ...]. In training and in predictions alike."},
	{Name: "batch_norm", Args: []string{"x", "gain", "bias"}, ArgKinds: []ArgKind{ArgValue, ArgValue, ArgValue},
		Doc: "The same with mean and variance over the rows of the batch, [N, m] or [B, m], in training; in predictions, " +
			"and for a single row, with their running means, in which a batch has a share of 0.1. Only in equations of the " +
			"model."},
	{Name: "dropout", Args: []string{"x", "rate"}, ArgKinds: []ArgKind{ArgValue, ArgSetting},
		Doc: "In training, sets random values of x to zero with probability rate and divides the others by 1 - rate; x in " +
			"predictions."},
	{Name: "random", Args: []string{"x", "rate", "prediction"}, ArgKinds: []ArgKind{ArgValue, ArgSetting, ArgSetting},
		Doc: "In training, 1 with probability rate, else 0, drawn anew in each step for every value of x; the number " +
			"prediction in predictions."},
	{Name: "uniform", Args: []string{"x", "prediction"}, ArgKinds: []ArgKind{ArgValue, ArgSetting},
		Doc: "In training, a number between 0 and 1 for every value of x, drawn anew in each step from 16 random bits; " +
			"the number prediction in predictions. x is [N, ...], [B, ...] or has the shape of a parameter."},
	unary("normal", "In training, a number of the standard normal distribution for every value of x, between -4.4 and "+
		"4.4; 0 in predictions."),
	unary("stop_gradient", "x, as a constant for the gradient."),
}

// Word returns the name of the function.
func (f Function) Word() string { return f.Name }

// FunctionNamed returns the row of a function, or nil.
func FunctionNamed(name string) *Function { return schema.Find(Functions, name) }
