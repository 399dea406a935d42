// Values of the functions that take several ops.

package compile_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/language"
)

// valueOf evaluates an equation of the training graph on two bags of instances with 4
// features: three instances, then one. A loss term sums its values, so that the graph
// has them.
func valueOf(t *testing.T, equation string, instances []float64) []float64 {
	t.Helper()
	src := `name: t
data: {normalize: none}
model:
  numbers: {two: 2, costs: [1, 2, 3, 4]}
  params: {C: [4, k]}
  functions:
    square: {args: [x], value: x * x}
    quartic: {args: [x], let: {y: square(x)}, value: square(y)}
  let:
    used: quartic(X) * costs * two
    e: "%s"
    p: softmax(matmul(bag_mean(X), C))
loss: [disambiguation, equation: {name: all, value: "sum(4 * e)"}]
`
	p, err := parseAs(t, fmt.Sprintf(src, equation), 4)
	if err != nil {
		t.Fatal(err)
	}
	env := randomEnv(p, p.Train, []int{3, 1})
	env.Values[compile.InInstances] = graph.NewTensor([]int{4, 4}, instances...)
	g := *p.Train
	summed := g.Output(compile.TermPrefix + "all").In[0]
	g.Outputs = append(g.Outputs[:len(g.Outputs):len(g.Outputs)], graph.Output{Name: "e", Node: summed})
	values := eval(t, &g, env)["e"].Data
	for i := range values {
		values[i] /= 4
	}
	return values
}

// Functions that are composed of several operations compute their formulas.
func TestComposedFunctions(t *testing.T) {
	x := []float64{
		1, 2, 3, 6,
		-1, 5, 0, 0,
		1, 2, -3, 4,
		7, 0, 0, 1,
	}
	root := func(v float64) float64 { return math.Sqrt(v + 1e-5) }
	for equation, want := range map[string][]float64{
		"(X > 1) + 10 * (X >= 1) + 100 * (X < 1) + 1000 * (X <= 1) + 10000 * (X == 1)": {
			11010, 11, 11, 11, 1100, 11, 1100, 1100, 11010, 11, 1100, 11, 11, 1100, 1100, 11010},
		"X * costs":                              {1, 4, 9, 24, -1, 10, 0, 0, 1, 4, -9, 16, 7, 0, 0, 4},
		"quartic(sum(X, 1)) + sum(square(X), 1)": {20736 + 50, 256 + 26, 256 + 30, 4096 + 50},
		"layer_norm(X, 2, costs)": {
			2*(1-3)/root(3.5) + 1, 2*(2-3)/root(3.5) + 2, 3, 2*(6-3)/root(3.5) + 4,
			2*(-1-1)/root(5.5) + 1, 2*(5-1)/root(5.5) + 2, 2*(0-1)/root(5.5) + 3, 2*(0-1)/root(5.5) + 4,
			1, 2*(2-1)/root(6.5) + 2, 2*(-3-1)/root(6.5) + 3, 2*(4-1)/root(6.5) + 4,
			2*(7-2)/root(8.5) + 1, 2*(0-2)/root(8.5) + 2, 2*(0-2)/root(8.5) + 3, 2*(1-2)/root(8.5) + 4},
		"bag_norm(sum(X, 1), 3, 1)": {3*(12-20.0/3)/root(128.0/9) + 1, 3*(4-20.0/3)/root(128.0/9) + 1,
			3*(4-20.0/3)/root(128.0/9) + 1, 1},
		"bag_top(X, two)": {1, 1, 1, 1, 0, 1, 1, 0, 1, 0, 0, 1, 1, 1, 1, 1},
		"flatten(bag_matmul(X, concat(sum(X, 1), max(X, 1))))": {
			12 - 4 + 4, 6 - 5 + 4, 24 + 20 + 8, 12 + 25 + 8, 36 + 0 - 12, 18 + 0 - 12, 72 + 0 + 16, 36 + 0 + 16,
			56, 49, 0, 0, 0, 0, 8, 7},
		"bag_scores(X, bag_matmul(bag_top(max(X, 1), 1), X))":       {50, 9, 20, 50},
		"flatten(bag_matmul(bag_top(max(X, 1), 1), X))":             {1, 2, 3, 6, 7, 0, 0, 1},
		"bag_attention(X, X, X, two) - bag_attention(X, X, X, two)": make([]float64, 16),
		"flatten(max(split(X, 2), 2))":                              {2, 6, 5, 0, 2, 4, 7, 1},
		"flatten(sum(split(X, two), 1))":                            {4, 8, -1, 5, -2, 6, 7, 1},
		"dropout(X, 0)":                                             x,
		"random(X, 1, 0.5)":                                         {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1},
	} {
		got := valueOf(t, equation, x)
		if len(got) != len(want) {
			t.Errorf("%s has %d values, expected %d", equation, len(got), len(want))
			continue
		}
		for i := range want {
			if math.Abs(got[i]-want[i]) > 1e-9*math.Max(1, math.Abs(want[i])) {
				t.Errorf("%s: value %d is %v, expected %v", equation, i, got[i], want[i])
				break
			}
		}
	}
}

// Comparisons with NaN are false, as in NumPy and PyTorch.
func TestComparisonsOfNaN(t *testing.T) {
	nan := math.NaN()
	x := []float64{nan, 1, nan, 0, nan, nan, nan, nan, 1, 1, 1, 1, 2, 2, 2, 2}
	for _, op := range []string{">", ">=", "<", "<=", "=="} {
		for i, v := range valueOf(t, "X "+op+" 1", x) {
			if math.IsNaN(x[i]) && v != 0 {
				t.Errorf("NaN %s 1 is %v", op, v)
			}
		}
	}
}

// A head attends only to its columns.
func TestHeadsOfAttention(t *testing.T) {
	x := []float64{1, 2, 3, 6, -1, 5, 0, 0, 1, 2, -3, 4, 7, 0, 0, 1}
	both := valueOf(t, "bag_attention(X, X, X, 2)", x)
	for half := range 2 {
		y := make([]float64, 16)
		for i := range y {
			if i%4/2 == half {
				y[i] = x[i]
			}
		}
		// The other columns are 0, so that they change neither scores nor values; the scale is that of 4 columns.
		alone := valueOf(t, "bag_attention(X * sqrt(2), X, X)", y)
		for i := range alone {
			if i%4/2 == half && math.Abs(alone[i]-both[i]) > 1e-9 {
				t.Errorf("head %d: value %d is %v, expected %v", half, i, both[i], alone[i])
			}
		}
	}
}

// A prediction has no dropout, and uses the given number in place of random draws.
func TestDrawsOfPredictions(t *testing.T) {
	const src = "name: t\nmodel: {params: {C: [d, k]}, let: {p: \"softmax(matmul(%s, C))\"}}\nloss: [disambiguation]\n"
	for with, without := range map[string]string{
		"bag_mean(dropout(X, 0.5))":               "bag_mean(X)",
		"dropout(bag_mean(X), 0.25)":              "bag_mean(X)",
		"bag_mean(X * random(X, 0.3, 0.75))":      "bag_mean(X * 0.75)",
		"bag_mean(X * uniform(X, 0.75))":          "bag_mean(X * 0.75)",
		"bag_mean(X * random(sum(X, 1), 0.3, 1))": "bag_mean(X)",
		"bag_mean(X * exp(normal(X)))":            "bag_mean(X)",
	} {
		p, err := parse(t, fmt.Sprintf(src, with))
		if err != nil {
			t.Fatal(err)
		}
		q, err := parse(t, fmt.Sprintf(src, without))
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Masks) != 1 || p.Masks[0].Name != "dropout1.mask" {
			t.Errorf("%s: the masks are %v", with, p.Masks)
		}
		env := randomEnv(p, p.Infer, []int{3, 1})
		if !near(eval(t, p.Infer, env)[compile.OutProbabilities], eval(t, q.Infer, env)[compile.OutProbabilities]) {
			t.Errorf("the prediction of %s is not that of %s", with, without)
		}
	}
}

// The share of the normal distribution below a draw is the uniform number it is made from.
func TestNormalDraws(t *testing.T) {
	const src = "name: t\nmodel: {params: {C: [500, k]}, let: {p: \"softmax(bag_sum(sum(X, 1)) * sum(C + normal(C), " +
		"0))\", drawn: normal(C)}}\nloss: [disambiguation, equation: {name: e, value: sum(drawn)}]\n"
	p, err := parse(t, src)
	if err != nil {
		t.Fatal(err)
	}
	g := *p.Train
	g.Outputs = []graph.Output{{Name: "e", Node: g.Output(compile.TermPrefix + "e").In[0]}}
	k := p.Signature.Classes
	env := randomEnv(p, p.Train, []int{3, 1})
	values := eval(t, &g, env)["e"].Data
	bits := env.Values["dropout2.mask"].Data
	for i, v := range values {
		u := math.Ldexp(1, -17)
		for bit := range 16 {
			u += bits[i/k*16*k+bit*k+i%k] * math.Ldexp(1, -bit-2)
		}
		if below := 0.5 * math.Erfc(-v/math.Sqrt2); math.Abs(below-u) > 1e-5*min(u, 1-u) {
			t.Fatalf("a share of %v is below the draw %v of the uniform number %v", below, v, u)
		}
	}
}

// batch_norm standardises over the rows of a batch, and predictions with the running statistics.
func TestBatchNormOfEquations(t *testing.T) {
	const src = `name: t
model: {params: {C: [d, k]}, let: {s: "%s", p: softmax(s)}}
loss: [disambiguation%s]
train: {batch: %d}
`
	p, err := parse(t, fmt.Sprintf(src, "batch_norm(bag_sum(batch_norm(matmul(X, C), 2, 0)), 1, 1)", "", 4))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, q := range p.Params {
		names = append(names, fmt.Sprint(q.Name, q.Statistic))
	}
	if got := strings.Join(names, " "); got != "Cfalse batch_norm1.meantrue batch_norm1.variancetrue "+
		"batch_norm2.meantrue batch_norm2.variancetrue" {
		t.Errorf("the parameters are %s", got)
	}
	for _, c := range []struct {
		equation, loss string
		batch          int
		want           string
	}{
		{"batch_norm(bag_sum(matmul(X, C)), 1, 0)", "", 1, "but train.batch is 1"},
		{"batch_norm(sum(X, 1) * sum(C), 1, 0) + batch_norm(C, 1, 0)", "", 4, "needs one row of numbers per instance or bag"},
		{"matmul(bag_sum(X), C)", ", equation: {name: e, value: \"sum(batch_norm(s, 1, 0))\"}", 4,
			"only model.let may use it"},
	} {
		if _, err := parse(t, fmt.Sprintf(src, c.equation, c.loss, c.batch)); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: the error is %v", c.equation, err)
		}
	}
}

// A step with a single bag has no deviation over its bags, and a bag of one instance has none over its
// instances: batch_norm takes the running statistics as in predictions, and leaves them as they are.
func TestBatchNormOfOneRow(t *testing.T) {
	p, err := parse(t, "name: t\nmodel: {blocks: [dense: 4, batch_norm, pool: mean, dense: 3, batch_norm, classifier: "+
		"softmax]}\ndata: {normalize: none}\nloss: [disambiguation]\ntrain: {batch: 4}\n")
	if err != nil {
		t.Fatal(err)
	}
	env := randomEnv(p, p.Train, []int{1})
	for _, q := range p.Params {
		if strings.HasSuffix(q.Name, ".variance") {
			for i, v := range env.Values[q.Name].Data {
				env.Values[q.Name].Data[i] = 1 + v*v
			}
		}
	}
	got, want := eval(t, p.Train, env), eval(t, p.Infer, env)
	if out := compile.OutProbabilities; !near(got[out], want[out]) {
		t.Errorf("the probabilities are %v in training, %v in predictions", got[out].Data, want[out].Data)
	}
	for _, q := range p.Params {
		if next := got[compile.StatisticPrefix+q.Name]; q.Statistic && !near(next, env.Values[q.Name]) {
			t.Errorf("%s changes from %v to %v", q.Name, env.Values[q.Name].Data, next.Data)
		}
	}
}

// An equation that losses and the update share sees the label weights of each.
func TestSharedEquations(t *testing.T) {
	const src = `name: t
model: {blocks: [pool: mean, classifier: softmax]}
let:
  total: sum(w * costs, 1)
  twice: 2 * total
loss: [disambiguation, equation: {name: e, value: "mean(twice + total)"}]
weights: {update: "0.5 * w + 0 * total"}
`
	spec := strings.Replace(src, "model: {", "model: {numbers: {costs: [1, 10, 100, 1000, 10000]}, ", 1)
	p, err := parse(t, spec)
	if err != nil {
		t.Fatal(err)
	}
	q, err := parse(t, strings.NewReplacer("twice + total", "3 * sum(w * costs, 1)", "0 * total", "0 * p").Replace(spec))
	if err != nil {
		t.Fatal(err)
	}
	env := randomEnv(p, p.Train, []int{3, 1})
	got, want := eval(t, p.Train, env), eval(t, q.Train, env)
	for _, name := range []string{compile.TermPrefix + "e", compile.OutLabelWeights} {
		if !near(got[name], want[name]) {
			t.Errorf("%s is %v, expected %v", name, got[name], want[name])
		}
	}
}

// Errors in functions are reported at the position of the error.
func TestFaultsOfFunctionsAtTheirPlace(t *testing.T) {
	head := "name: t\nmodel:\n  params: {C: [d, k]}\n  numbers: {beta: 0.5}\n  functions:\n" +
		"    f: {args: [x, y], let: {u: \"x + y\"}, value: \"bag_sum(u)\"}\n" +
		"    g: {args: [x], value: \"f(x, x)\"}\n  let:\n"
	for src, want := range map[string]string{
		"    z: g(bag_sum(X)) + g(bag_sum(X))\n": "test.yaml:6:50: bag_sum: needs one " +
			"row per instance, [N, ...], not [B, 7]\nf is called at test.yaml:7:28\ng is called at test.yaml:9:8",
		"    z: f(X, C)\n": "test.yaml:6:33: +: shapes [N, 7] " +
			"and [7, 5] do not fit together: N against 7\nf is called at test.yaml:9:8",
		"    z: bag_sum(bag_top(X, beta)) + f(X, 1)\n": "test.yaml:9:27: the argument n of " +
			"bag_top must be a whole number from 1 to 64 that does not change",
		"    z: f(dropout(X, C), 1)\n": "test.yaml:9:21: the argument rate " +
			"of dropout must be a number from 0 to 1 that does not change",
		"    z: f(dropout(X, 1), 1)\n": "test.yaml:9:21: dropout with a " +
			"rate of 1 gives only zeros",
		"    z: f(X + dropout(sum(C), 0.5), 1)\n": "test.yaml:9:14: dropout needs one " +
			"row per instance or bag, [N, ...] or [B, ...], or the shape of a parameter, not []",
		"    z: f(split(X, 2), 1)\n": "test.yaml:9:10: split needs rows " +
			"of numbers that divide into 2 parts, not [N, 7]",
		"    z: f(bag_attention(X, X, X, 2), 1)\n": "test.yaml:9:10: bag_attention: the " +
			"7 columns of [N, 7] do not divide into 2 heads",
		"    z: f(bag_attention(X, X, C, 1, split(bag_sum(X), 1), bag_sum(X)), 1)\n": "test.yaml:9:10: bag_attention " +
			"needs one row per instance, [N, ...], not [7, 5]",
		"    z: f(bag_attention(X, X, X, 1, X), 1)\n": "test.yaml:9:10: bag_attention: " +
			"extra keys need values, as the argument after them",
		"    z: f(bag_attention(X, X, X, 1, split(bag_sum(X), 1), bag_sum(X)), 1)\n": "test.yaml:9:10: bag_attention: " +
			"extra keys and values of each bag are [B, c, 7] and [B, c, 7], c at most 256, not [B, 1, 7] and [B, 7]; " +
			"split(x, 1) makes one of each row of x",
		"    z: f(bag_scores(X, bag_sum(X)), 1)\n": "test.yaml:9:10: bag_scores needs " +
			"instances [N, d] and a matrix [B, c, d] for each bag, they are [N, 7] and [B, 7]",
		"    z: f(of_bag(bag_matmul(X, bag_sum(X))), 1)\n": "test.yaml:9:17: bag_matmul needs " +
			"one row per instance, [N, ...], not [B, 7]",
		"    z: f(flatten(sum(C)), 1)\n": "test.yaml:9:10: flatten needs rows " +
			"of numbers, such as [N, a, b], not []",
	} {
		_, err := parse(t, head+src+"    used: g(X)\n    p: softmax(matmul(z, C) * beta)\nloss: [disambiguation]\n")
		if err == nil {
			t.Errorf("no error for %s", src)
			continue
		}
		if got := withNotes(err); got != want {
			t.Errorf("%s\nis\n%s\nexpected\n%s", src, got, want)
		}
	}
}

// Functions that call each other exponentially often give an error instead of a huge graph.
func TestFunctionsThatExplode(t *testing.T) {
	var src strings.Builder
	src.WriteString("name: t\nmodel:\n  params: {C: [d, k]}\n  functions:\n    f0: {args: [x], value: x}\n")
	for i := range 60 {
		fmt.Fprintf(&src, "    f%d: {args: [x], value: \"f%d(f%d(x))\"}\n", i+1, i, i)
	}
	src.WriteString("  let:\n    p: softmax(matmul(bag_sum(f60(X)), C))\nloss: [disambiguation]\n")
	if _, err := parse(t, src.String()); err == nil || !strings.Contains(err.Error(), "more than 20000 operations") {
		t.Errorf("the error is %v", err)
	}
}

// withNotes formats errors with their notes, one line each.
func withNotes(err error) string {
	list, _ := diag.ListOf(err)
	var lines []string
	for _, d := range list {
		lines = append(lines, d.Error())
		lines = append(lines, d.Notes...)
	}
	return strings.Join(lines, "\n")
}

// Each call of a function draws again. An equation shared by losses and the update draws once. A
// uniform number has 16 random bits.
func TestRandomDraws(t *testing.T) {
	const src = `name: t
model:
  params: {C: [d, k]}
  functions:
    noisy: {args: [x], value: "dropout(x, 0.5)"}
  let: {p: "softmax(matmul(bag_mean(noisy(X) + noisy(X)), C))"}
let: {noise: "uniform(p, 0.5)"}
loss: [disambiguation, equation: {name: e, value: mean(noise)}]
weights: {update: w * noise}
`
	p, err := parse(t, src)
	if err != nil {
		t.Fatal(err)
	}
	want := "[{dropout1.mask [N, 7] 0.5 dropout} {dropout2.mask [N, 7] 0.5 dropout} {dropout3.mask [B, 80] 0.5 uniform}]"
	if got := fmt.Sprint(p.Masks); got != want {
		t.Fatalf("the masks are %s, expected %s", got, want)
	}
	env := randomEnv(p, p.Train, []int{3, 1})
	mask := env.Values["dropout3.mask"]
	for _, c := range []struct {
		bit  func(i int) float64
		want float64
	}{
		{func(int) float64 { return 0 }, math.Ldexp(1, -17)},
		{func(int) float64 { return 2 }, 1 - math.Ldexp(1, -17)},
		{func(i int) float64 { return 2 * float64(1-min(1, i%80/5)) }, 0.5 + math.Ldexp(1, -17)},
	} {
		for i := range mask.Data {
			mask.Data[i] = c.bit(i)
		}
		if got := eval(t, p.Train, env)[compile.TermPrefix+"e"].Data[0]; got != c.want {
			t.Errorf("the mean of the draws is %v, expected %v", got, c.want)
		}
	}
}

// Calls in an equation of --set, which has only one position, draw separately too.
func TestRandomDrawsOfOverrides(t *testing.T) {
	const src = `name: t
model:
  params: {C: [d, k]}
  functions:
    noisy: {args: [x], value: "dropout(x, 0.5)"}
  let: {p: "softmax(matmul(bag_mean(noisy(X)), C))"}
loss: [disambiguation]
`
	s, err := language.Parse("t.yaml", []byte(src),
		"model.let.p=softmax(matmul(bag_mean(dropout(X, 0.5) + dropout(X, 0.5) + noisy(X) + noisy(X)), C))")
	if err != nil {
		t.Fatal(err)
	}
	p, err := compile.Compile(s, compile.Signature{Instance: []int{7}, Classes: 5})
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Masks) != 4 {
		t.Errorf("four draws have the masks %v", p.Masks)
	}
}

// A draw without effect has no mask: in an equation that nothing uses, or as the argument of which a function reads
// only the shape.
func TestRandomDrawsWithoutEffect(t *testing.T) {
	const src = `name: t
model:
  params: {C: [d, k]}
  let:
    x: dropout(X, 0.5)
    unused: x * 2
    p: softmax(matmul(bag_mean(X * random(x, 0.5, 1)), C) / bag_count(x))
loss: [disambiguation]
`
	p, err := parse(t, src)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(p.Masks); got != "[{dropout2.mask [N, 7] 0.5 random}]" {
		t.Errorf("the masks are %s", got)
	}
}
