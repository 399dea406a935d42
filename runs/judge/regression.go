// Logistic regression on candidate sets, whose label weights are its own predictions, as in PRODEN.

package judge

import (
	"context"
	"errors"
	"math"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/optimize"

	"github.com/miplc/miplc/data"
)

// Settings of the optimizer: it ends if no element of the mean gradient exceeds gradientLimit.
const (
	gradientLimit  = 1e-8
	maxEvaluations = 1000
	lbfgsStore     = 15 // steps that L-BFGS remembers
)

// regression minimises the sum over bags of -log(probability of the candidate set), plus half of the squared weights
// of the features, as scikit-learn's LogisticRegression does with C = 1; the intercepts have no penalty. The gradient
// is that of the cross-entropy with label weights that follow the prediction at every step: PRODEN's rule. So fitting
// scikit-learn's model with the final label weights changes nothing.
//
// The features are replaced by others with the same products, for which the curvature is nearly the same in all
// directions, so the optimizer needs few steps. If H = c X'X + penalty I = U'U, they are X inverse(U). For scores S =
// X W with weights V = U W, penalty |W|^2 = |V|^2 - c |S|^2.
type regression struct {
	classes   []int     // that are candidates of a training bag
	allowed   []float64 // [bags, classes]: 0 for candidates, -Inf for others
	penalty   float64
	curvature float64 // c

	features         *mat.Dense // of the training bags, [bags, width]
	scores, residual *mat.Dense // [bags, classes], at the weights of last
	last             []float64
	value            float64 // mean loss there
}

// newRegression returns the regression of the candidates of training bags.
func newRegression(set *data.Dataset, bags []int) *regression {
	used := make([]bool, set.Classes)
	for _, bag := range bags {
		for _, class := range set.CandidateList(bag) {
			used[class] = true
		}
	}
	r := &regression{penalty: 1}
	for class, is := range used {
		if is {
			r.classes = append(r.classes, class)
		}
	}
	for _, bag := range bags {
		mask := set.CandidateMask(bag)
		for _, class := range r.classes {
			r.allowed = append(r.allowed, math.Log(float64(mask[class])))
		}
	}
	if len(r.classes) == 2 {
		r.penalty = 2 // scikit-learn then has one column of weights, the difference of these two
	}
	r.curvature = 1 / float64(4*len(r.classes)) // between those of equal and of certain probabilities
	r.scores = mat.NewDense(len(bags), len(r.classes), nil)
	r.residual = mat.NewDense(len(bags), len(r.classes), nil)
	return r
}

// fit returns the scores of all rows of x, of which the first ones are training bags with columns of mean 0.
func (r *regression) fit(ctx context.Context, x *mat.Dense) (*mat.Dense, error) {
	n, k := r.scores.Dims()
	z, err := r.precondition(ctx, x)
	if err != nil {
		return nil, err
	}
	rows, width := z.Dims()
	r.features = z.Slice(0, n, 0, width).(*mat.Dense)
	problem := optimize.Problem{
		Func:   r.loss,
		Grad:   r.gradient,
		Status: func() (optimize.Status, error) { return optimize.NotTerminated, ctx.Err() },
	}
	settings := &optimize.Settings{GradientThreshold: gradientLimit, FuncEvaluations: maxEvaluations,
		Converger: optimize.NeverTerminate{}}
	// An error of the line search means that rounding prevents further progress.
	result, err := optimize.Minimize(problem, make([]float64, width*k), settings, &optimize.LBFGS{Store: lbfgsStore})
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if result == nil {
		return nil, err
	}
	scores := mat.NewDense(rows, k, nil)
	scores.Mul(z, mat.NewDense(width, k, result.X))
	return scores, nil
}

// loss returns the mean loss of the weights v. It sets scores and residual.
func (r *regression) loss(v []float64) float64 {
	if slices.Equal(v, r.last) {
		return r.value
	}
	r.last = append(r.last[:0], v...)
	n, k := r.scores.Dims()
	r.scores.Mul(r.features, mat.NewDense(len(v)/k, k, v))
	total := floats.Dot(v, v) / 2
	inside := make([]float64, k)
	for i := range n {
		s, p := r.scores.RawRowView(i), r.residual.RawRowView(i)
		floats.AddTo(inside, s, r.allowed[i*k:(i+1)*k])
		all, candidates := floats.LogSumExp(s), floats.LogSumExp(inside)
		total += all - candidates - r.curvature/2*floats.Dot(s, s)
		for j := range p {
			p[j] = math.Exp(s[j]-all) - math.Exp(inside[j]-candidates) - r.curvature*s[j]
		}
	}
	r.value = total / float64(n)
	return r.value
}

// gradient sets g to the gradient of the mean loss at the weights v.
func (r *regression) gradient(g, v []float64) {
	r.loss(v)
	n, k := r.scores.Dims()
	mat.NewDense(len(v)/k, k, g).Mul(r.features.T(), r.residual)
	floats.Add(g, v)
	floats.Scale(1/float64(n), g)
}

// precondition returns the features X inverse(U) of all bags, with a column for the intercept.
func (r *regression) precondition(ctx context.Context, x *mat.Dense) (*mat.Dense, error) {
	n, _ := r.scores.Dims()
	rows, width := x.Dims()
	var err error
	if width > n { // n features give the same products
		if x, err = kernelFeatures(ctx, x, n); err != nil {
			return nil, err
		}
		width = n
	}
	z := mat.NewDense(rows, width+1, nil)
	h := mat.NewDense(width, width, nil)
	if err := inBlocks(ctx, n, func(from, to int) {
		var product mat.Dense
		block := x.Slice(from, to, 0, width)
		product.Mul(block.T(), block)
		h.Add(h, &product)
	}); err != nil {
		return nil, err
	}
	z.Slice(0, rows, 0, width).(*mat.Dense).Copy(x)
	h.Scale(r.curvature, h)
	if err := solveRight(ctx, z.Slice(0, rows, 0, width).(*mat.Dense), h, r.penalty); err != nil {
		return nil, err
	}
	for i := range rows {
		z.Set(i, width, 1/math.Sqrt(r.curvature*float64(n)))
	}
	return z, nil
}

// ridge is added to the products of bags. It is far below the penalty, and far above their rounding.
const ridge = 1e-6

// kernelFeatures returns features, one for each of the first n rows, with nearly the same products with these rows as
// x.
func kernelFeatures(ctx context.Context, x *mat.Dense, n int) (*mat.Dense, error) {
	rows, width := x.Dims()
	k := mat.NewDense(rows, n, nil)
	training := x.Slice(0, n, 0, width)
	err := inBlocks(ctx, rows, func(from, to int) {
		k.Slice(from, to, 0, n).(*mat.Dense).Mul(x.Slice(from, to, 0, width), training.T())
	})
	if err != nil {
		return nil, err
	}
	return k, solveRight(ctx, k, mat.DenseCopyOf(k.Slice(0, n, 0, n)), ridge)
}

// solveRight replaces x by x inverse(U), where U'U = h + diagonal I.
func solveRight(ctx context.Context, x, h *mat.Dense, diagonal float64) error {
	rows, width := x.Dims()
	symmetric, largest := mat.NewSymDense(width, h.RawMatrix().Data), 0.0
	for j := range width {
		largest = max(largest, symmetric.At(j, j))
	}
	for j := range width { // what rounding needs is far below diagonal for z-scores without extreme outliers
		symmetric.SetSym(j, j, symmetric.At(j, j)+max(diagonal, 1e-12*largest))
	}
	var c mat.Cholesky
	if !c.Factorize(symmetric) {
		return errors.New("the products of the pooled features are not finite")
	}
	var u mat.TriDense
	c.UTo(&u)
	return inBlocks(ctx, rows, func(from, to int) {
		block := x.Slice(from, to, 0, width).(*mat.Dense).RawMatrix()
		blas64.Trsm(blas.Right, blas.NoTrans, 1, u.RawTriangular(), block)
	})
}

// inBlocks calls f with ranges of rows until the context ends.
func inBlocks(ctx context.Context, rows int, f func(from, to int)) error {
	const block = 256
	for from := 0; from < rows; from += block {
		if err := ctx.Err(); err != nil {
			return err
		}
		f(from, min(from+block, rows))
	}
	return ctx.Err()
}
