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

// argKinds are the kinds of arguments by their names; all others are ArgValue.
var argKinds = map[string]ArgKind{"axis": ArgAxis, "lo": ArgNumber, "hi": ArgNumber, "n": ArgSetting,
	"heads": ArgSetting, "rate": ArgSetting, "prediction": ArgSetting}

// Function is a function that equations can call.
type Function struct {
	// Signature is the form of a call, such as sum(x, [axis]). Arguments in brackets may be omitted; with ..., the
	// last one may be repeated.
	Signature, Doc string

	Name     string
	Args     []string // names of the arguments
	optional int      // number of the last arguments that may be omitted
	variadic bool
}

// Arity returns the minimum and maximum number of arguments; most is -1 if there is no maximum.
func (f *Function) Arity() (least, most int) {
	least, most = len(f.Args)-f.optional, len(f.Args)
	if f.variadic {
		most = -1
	}
	return least, most
}

// ArgKind returns the kind of argument i.
func (f *Function) ArgKind(i int) ArgKind { return argKinds[f.Args[min(i, len(f.Args)-1)]] }

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
var Functions = func() []Function {
	list := make([]Function, len(functionTable))
	for i, row := range functionTable {
		name, args, _ := strings.Cut(strings.TrimSuffix(row.signature, ")"), "(")
		args, variadic := strings.CutSuffix(args, ", ...")
		list[i] = Function{Signature: row.signature, Doc: row.doc, Name: name, optional: strings.Count(args, "["),
			Args: strings.Split(strings.NewReplacer("[", "", "]", "").Replace(args), ", "), variadic: variadic}
	}
	return list
}()

var functionTable = []struct{ signature, doc string }{
	{"matmul(a, b)", "Product of two matrices [m, n] and [n, q]."},
	{"transpose(x)", "Matrix with rows and columns swapped."},
	{"exp(x)", "e to the power x."},
	{"log(x)", "Natural logarithm."},
	{"sqrt(x)", "Square root."},
	{"abs(x)", "Absolute value."},
	{"tanh(x)", "Hyperbolic tangent."},
	{"sigmoid(x)", "1 / (1 + exp(-x))."},
	{"softplus(x)", "log(1 + exp(x)), without overflow."},
	{"relu(x)", "max(x, 0); gradient 0 at 0."},
	{"erf(x)", "Error function, 2/sqrt(pi) times the integral of exp(-t*t) for t from 0 to x."},
	{"clamp(x, lo, hi)", "x kept in [lo, hi], two numbers; gradient 0 outside."},
	{"softmax(x)", "Softmax along the last axis."},
	{"log_softmax(x)", "Logarithm of the softmax along the last axis."},
	{"masked_softmax(x, m)", "Softmax along the last axis over the entries where m is 1; 0 where m is 0, and everywhere " +
		"where m has no 1."},
	{"sum(x, [axis])", "Sum of all elements (a single number), or along an axis, which stays with size 1."},
	{"mean(x, [axis])", "Mean of all elements (a single number), or along an axis, which stays with size 1."},
	{"max(x, axis)", "Maximum along an axis, which stays with size 1."},
	{"maximum(x, y)", "The larger of two values, element by element."},
	{"minimum(x, y)", "The smaller of two values, element by element."},
	{"concat(x, y, ...)", "Concatenation along the last axis."},
	{"bag_sum(x)", "Sum over the instances of each bag: [N, ...] to [B, ...]."},
	{"bag_mean(x)", "Mean over the instances of each bag: [N, ...] to [B, ...]."},
	{"bag_max(x)", "Maximum over the instances of each bag: [N, ...] to [B, ...]."},
	{"bag_min(x)", "Minimum over the instances of each bag: [N, ...] to [B, ...]."},
	{"bag_count(x)", "Number of instances of each bag, [B, 1]. Only the rows of x, [N, ...], are counted; its values do " +
		"not matter."},
	{"bag_softmax(x)", "Softmax over the instances of each bag, per column: [N, ...] to [N, ...]."},
	{"bag_attention(q, k, v, [heads], [keys], [values])", "Scaled dot-product attention among the instances of each " +
		"bag, see [below](#attention-among-instances): queries and keys [N, d], values [N, m] to [N, m]."},
	{"of_bag(y)", "Repeats the row of each bag for its instances: [B, ...] to [N, ...]."},
	{"bag_matmul(x, y)", "For each bag the matrix product of its rows of x, transposed, and its rows of y: [N, a] and " +
		"[N, b] to [B, a, b]. The smaller of a and b is at most 256."},
	{"bag_scores(x, m)", "Dot products of each instance with the rows of the matrix of its bag: [N, d] and [B, c, d] to " +
		"[N, c], c at most 256. With queries m of each bag, bag_softmax(bag_scores(k, m) / sqrt(d)) are the weights of an " +
		"attention."},
	{"bag_top(s, n)", "1 at the n largest values of each bag, per column, else 0; the first of equal values counts. All " +
		"instances of a smaller bag get 1. n is at most 64. [N, ...] to [N, ...], without gradient."},
	{"flatten(x)", "One row of all values for each index of the first axis: [B, a, b] to [B, a*b]."},
	{"split(x, n)", "The values of each row as n rows, which flatten undoes: [B, n*a] to [B, n, a]."},
	{"layer_norm(x, gain, bias)", "gain * (x - mean) / sqrt(variance + 1e-5) + bias, with mean and variance (divided by " +
		"the count) along the last axis."},
	{"bag_norm(x, gain, bias)", "The same with mean and variance over the instances of each bag, per column (instance " +
		"normalisation): [N, ...] to [N, ...]. In training and in predictions alike."},
	{"batch_norm(x, gain, bias)", "The same with mean and variance over the rows of the batch, [N, m] or [B, m], in " +
		"training; in predictions, and for a single row, with their running means, in which a batch has a share of 0.1. " +
		"Only in equations of the model."},
	{"dropout(x, rate)", "In training, sets random values of x to zero with probability rate and divides the others by " +
		"1 - rate; x in predictions."},
	{"random(x, rate, prediction)", "In training, 1 with probability rate, else 0, drawn anew in each step for every " +
		"value of x; the number prediction in predictions."},
	{"uniform(x, prediction)", "In training, a number between 0 and 1 for every value of x, drawn anew in each step " +
		"from 16 random bits; the number prediction in predictions. x is [N, ...], [B, ...] or has the shape of a " +
		"parameter."},
	{"normal(x)", "In training, a number of the standard normal distribution for every value of x, between -4.4 and " +
		"4.4; 0 in predictions."},
	{"stop_gradient(x)", "x, as a constant for the gradient."},
}

// Word returns the name of the function.
func (f Function) Word() string { return f.Name }

// FunctionNamed returns the row of a function, or nil.
func FunctionNamed(name string) *Function { return schema.Find(Functions, name) }
