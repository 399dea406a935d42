// Lowering of the blocks of a spec: layers, attention, pooling, classifiers.

package compile

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"github.com/miplc/miplc/graph"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/ndarray"
	"github.com/miplc/miplc/language"
	"github.com/miplc/miplc/language/schema"
)

// blocks lowers the named blocks in order. After a block with an error the values of the following
// blocks are unknown, so that the error is not repeated.
func (l *lowerer) blocks() {
	for i := range l.spec.Model.Blocks {
		blk := &l.spec.Model.Blocks[i]
		// A block is lowered if it has no error and its input is known.
		if blk.Kind.V != "" && blk.Args != nil && l.env[l.current()] != nil && !l.oversize(blk.Kind.Pos) {
			name := l.numbered(strings.TrimSuffix(blk.Kind.V, "2d"))
			l.b.At(blk.Kind.Pos).Label(name)
			before := len(l.errs)
			if lower, ok := lowering(l, blockLowerings, blk.Kind); ok {
				lower(l, blk, name)
			}
			if err := l.b.Err(); err != nil && len(l.errs) == before {
				l.errs.AddError(blk.Kind.Pos, fmt.Errorf("block %s: %w", blk.Kind.V, err))
			}
			if len(l.errs) == before {
				l.b.Name(l.env[l.current()], name)
				continue
			}
		}
		l.markUnknown("H", "h")
		for _, kind := range language.Blocks {
			l.markUnknown(kind.Results...)
		}
		return
	}
}

// current returns the name of the input of a block: the features of the instances, or after a pool
// the embeddings.
func (l *lowerer) current() string {
	if l.pooled {
		return "z"
	}
	return "H"
}

// blockLowerings has the lowering of each row of language.Blocks. name is that of the block, for its parameters.
var blockLowerings = map[string]func(l *lowerer, blk *language.Block, name string){
	"conv2d":     (*lowerer).conv2d,
	"maxpool2d":  (*lowerer).maxPool2d,
	"flatten":    (*lowerer).flatten,
	"dense":      (*lowerer).denseBlock,
	"relu":       activation((*graph.Builder).Relu),
	"tanh":       activation((*graph.Builder).Tanh),
	"sigmoid":    activation((*graph.Builder).Sigmoid),
	"softplus":   activation((*graph.Builder).Softplus),
	"dropout":    (*lowerer).dropout,
	"batch_norm": (*lowerer).batchNorm,
	"attention":  (*lowerer).attention,
	"pool":       (*lowerer).pool,
	"classifier": (*lowerer).classifier,
}

// activation returns the lowering of a block that applies a function to each feature.
func activation(f func(*graph.Builder, *graph.Node) *graph.Node) func(*lowerer, *language.Block, string) {
	return func(l *lowerer, _ *language.Block, _ string) { l.env[l.current()] = f(l.b, l.env[l.current()]) }
}

// lowering returns the entry of a table for a word of the language. Tests check that every word has one.
func lowering[T any](l *lowerer, table map[string]T, word schema.Str) (entry T, ok bool) {
	if entry, ok = table[word.V]; !ok {
		l.errs.Add(diag.Errorf(word.Pos, "bug: there is no lowering of %q", word.V))
	}
	return entry, ok
}

// word returns an argument of a block that is one of several words.
func word(blk *language.Block, arg string) schema.Str {
	return schema.Str{V: blk.Args[arg].Str(), Pos: blk.Args[arg].Pos}
}

// numbered returns the name of the next block of a kind: conv1, conv2, ...
func (l *lowerer) numbered(kind string) string {
	l.counts[kind]++
	return fmt.Sprintf("%s%d", kind, l.counts[kind])
}

func (l *lowerer) wantRows(blk *language.Block, h *graph.Node) bool {
	if len(h.Shape) == 2 {
		return true
	}
	l.errs.Add(diag.Errorf(blk.Kind.Pos, "block %s needs one row of features per instance, it gets %v", blk.Kind.V,
		h.Shape).
		WithNote("put a flatten block before it"))
	return false
}

// fanIn is PyTorch's default initialisation of linear and convolution layers, weights
// and biases alike: uniform in +-1/sqrt(fan in).
func fanIn(n int) Init { return Init{Kind: "uniform", Scale: 1 / math.Sqrt(float64(n))} }

func (l *lowerer) maxPool2d(blk *language.Block, _ string) {
	k, s := blk.Args["kernel"].Int(), blk.Args["stride"].Int()
	l.env["H"] = l.b.MaxPool2D(l.env["H"], [2]int{k, k}, [2]int{s, s})
}

func (l *lowerer) flatten(*language.Block, string) {
	h := l.env["H"]
	l.env["H"] = l.b.Reshape(h, graph.Shape{h.Shape[0], graph.Dim(ndarray.Size(h.Shape[1:]))})
}

func (l *lowerer) denseBlock(blk *language.Block, name string) {
	at := l.current()
	if h := l.env[at]; l.wantRows(blk, h) {
		l.env[at] = l.dense(name, h, blk.Args["units"].Int())
	}
}

// dense computes x W + b with W [in, out].
func (l *lowerer) dense(name string, x *graph.Node, units int) *graph.Node {
	in := int(x.Shape[1])
	return l.affine(x, l.param(name+".weight", fanIn(in), in, units), l.param(name+".bias", fanIn(in), units))
}

func (l *lowerer) affine(x, w, bias *graph.Node) *graph.Node {
	return l.b.Add(l.b.MatMul(x, w), bias)
}

func (l *lowerer) conv2d(blk *language.Block, name string) {
	b, h := l.b, l.env["H"]
	if len(h.Shape) != 4 {
		l.errs.Add(diag.Errorf(blk.Kind.Pos, "conv2d needs images [N, channels, height, width], it gets %v", h.Shape).
			WithNote("give the shape of one image in data.shape, e.g. shape: [1, 28, 28]"))
		return
	}
	out, k, s, pad := blk.Args["channels"].Int(), blk.Args["kernel"].Int(), blk.Args["stride"].Int(), blk.Args["pad"].Int()
	in := int(h.Shape[1])
	w := l.param(name+".weight", fanIn(in*k*k), out, in, k, k)
	bias := l.param(name+".bias", fanIn(in*k*k), out)
	y := b.Conv2D(h, w, [2]int{s, s}, [2]int{pad, pad})
	l.env["H"] = b.Add(y, b.Reshape(bias, graph.Shape{1, graph.Dim(out), 1, 1}))
}

func (l *lowerer) dropout(blk *language.Block, name string) {
	rate := blk.Args["rate"].Float()
	if !l.training || rate == 0 {
		return
	}
	at := l.current()
	h := l.env[at]
	l.env[at] = l.b.Mul(h, l.mask(name, h.Shape, rate, "dropout"))
}

// mask adds an input for a function, whose elements are 0 with probability rate, else 1/(1-rate).
func (l *lowerer) mask(name string, shape graph.Shape, rate float64, function string) *graph.Node {
	mask := Mask{Name: name + ".mask", Shape: shape.Clone(), Drop: rate, Function: function}
	l.masks = append(l.masks, mask)
	return l.b.Input(mask.Name, graph.Float, mask.Shape)
}

// batchPlace returns the place of train.batch if it overrides the batch of the file with the place at, else at.
func batchPlace(spec *language.Spec, at diag.Pos) diag.Pos {
	if batch := spec.KeyPos("train.batch"); !batch.IsZero() && spec.ExtendedBy(at, batch) {
		return batch
	}
	return at
}

// batchNorm is BatchNorm1d of PyTorch.
func (l *lowerer) batchNorm(blk *language.Block, name string) {
	b, at := l.b, l.current()
	h := l.env[at]
	if !l.wantRows(blk, h) {
		return
	}
	if l.pooled && l.spec.Train.Batch.V == 1 {
		l.errs.Add(diag.Errorf(batchPlace(l.spec, blk.Kind.Pos), "batch_norm after the pool normalises over the bags of a "+
			"step, but train.batch is 1").
			WithNote("set train.batch, for example to 16"))
		return
	}
	width := int(h.Shape[1])
	gain := l.param(name+".weight", Init{Kind: "constant", Scale: 1}, width)
	bias := l.param(name+".bias", Init{Kind: "constant"}, width)
	l.env[at] = b.Add(b.Mul(l.standardized(name, h, blk.Args["momentum"].Float()), gain), bias)
}

// standardized returns (h - mean) / sqrt(variance + epsilon) for each column of h [rows, width]. In training, mean and
// variance are those of the rows of the batch, in predictions the running ones. A batch of one row, for
// example the bag that remains after the last full batch, has no variance: it uses the running statistics and
// does not change them.
func (l *lowerer) standardized(name string, h *graph.Node, momentum float64) *graph.Node {
	b, width := l.b, int(h.Shape[1])
	mean, variance := l.statistic(name+".mean", 0, width), l.statistic(name+".variance", 1, width)
	if l.training {
		count := b.SumAll(b.Fill(1, h.Shape[:1]))
		average := func(x *graph.Node) *graph.Node { return b.Div(b.Sum(x, false, 0), count) }
		several := b.Minimum(b.Sub(count, b.Scalar(1)), b.Scalar(1)) // 1, or 0 for a single row
		either := func(ofBatch, running *graph.Node) *graph.Node {
			return b.Add(b.Mul(several, ofBatch), b.Mul(b.Sub(b.Scalar(1), several), running))
		}
		ofBatch := average(h)
		spread := b.Sub(h, ofBatch)
		biased := average(b.Mul(spread, spread))
		unbiased := b.Div(b.Mul(biased, count), b.Maximum(b.Sub(count, b.Scalar(1)), b.Scalar(1)))
		l.follow(name+".mean", mean, either(ofBatch, mean), momentum)
		l.follow(name+".variance", variance, either(unbiased, variance), momentum)
		mean, variance = either(ofBatch, mean), either(biased, variance)
	}
	return b.Div(b.Sub(h, mean), b.Sqrt(b.Add(variance, b.Scalar(normEpsilon))))
}

// statistic declares a running statistic with its initial value.
func (l *lowerer) statistic(name string, initial float64, shape ...int) *graph.Node {
	n := l.param(name, Init{Kind: "constant", Scale: initial}, shape...)
	l.params[len(l.params)-1].Statistic = true
	l.hasStatistics = true
	return n
}

// follow updates a running statistic with its value in a batch.
func (l *lowerer) follow(name string, running, batch *graph.Node, momentum float64) {
	b := l.b
	next := b.Add(b.Mul(b.Scalar(1-momentum), running), b.Mul(b.Scalar(momentum), batch))
	b.Output(StatisticPrefix+name, b.StopGrad(next))
}

// sharedGates says whether tanh and sigmoid of the attention have the same weights, as in the authors' program.
var sharedGates = map[string]bool{"separate": false, "shared": true}

// scorers has the scores of gated features [N, width].
var scorers = map[string]func(l *lowerer, blk *language.Block, gated *graph.Node, width int) *graph.Node{
	"linear": func(l *lowerer, _ *language.Block, gated *graph.Node, width int) *graph.Node {
		return l.b.MatMul(gated, l.param("W", fanIn(width), width, 1))
	},
	"mlp": func(l *lowerer, blk *language.Block, gated *graph.Node, width int) *graph.Node {
		m := blk.Args["hidden"].Int()
		hidden := l.b.Relu(l.affine(gated, l.param("W1", fanIn(width), width, m), l.param("b1", fanIn(width), m)))
		return l.affine(hidden, l.param("W2", fanIn(m), m, 1), l.param("b2", fanIn(m), 1))
	},
}

// attention scores every instance (paper Eq. 2): a = sigmoid(s), with s from gated features. Its logarithm is
// -softplus(-s), exact for any s.
func (l *lowerer) attention(blk *language.Block, _ string) {
	b, h := l.b, l.env["H"]
	if !l.wantRows(blk, h) {
		return
	}
	width := cmp.Or(blk.Args["width"].Int(), l.prog.Signature.Classes)
	b.Label("attention")
	in := int(h.Shape[1])
	v := l.affine(h, l.param("Wv", fanIn(in), in, width), l.param("bv", fanIn(in), width))
	shared, known := lowering(l, sharedGates, word(blk, "gates"))
	score, ok := lowering(l, scorers, word(blk, "scorer"))
	if !known || !ok {
		return
	}
	u := v
	if !shared {
		u = l.affine(h, l.param("Wu", fanIn(in), in, width), l.param("bu", fanIn(in), width))
	}
	s := score(l, blk, b.Mul(b.Tanh(v), b.Sigmoid(u)), width)
	loga := b.Neg(b.Softplus(b.Neg(s)))
	l.define("s", s)
	l.define("loga", loga)
	l.define("a", b.Exp(loga))
}

// pools has the embeddings z [B, h] of the bags with features h [N, h].
var pools = map[string]func(l *lowerer, h *graph.Node) *graph.Node{
	"attention": func(l *lowerer, h *graph.Node) *graph.Node { // Eq. 3: a / sum(a) is the softmax of log a
		return l.b.SegmentSum(l.b.Mul(l.b.SegmentSoftmax(l.env["loga"], l.bagOf), h), l.bagOf)
	},
	"mean": (*lowerer).bagMean,
	"max":  func(l *lowerer, h *graph.Node) *graph.Node { return l.b.SegmentMax(h, l.bagOf) },
	"maxmin": func(l *lowerer, h *graph.Node) *graph.Node {
		return l.b.Concat(1, l.b.SegmentMax(h, l.bagOf), l.bagMin(h))
	},
}

// pool combines the instances of a bag to its embedding z [B, h].
func (l *lowerer) pool(blk *language.Block, _ string) {
	h := l.env["H"]
	if !l.wantRows(blk, h) {
		return
	}
	l.b.Label("pool")
	if combine, ok := lowering(l, pools, word(blk, "kind")); ok {
		l.define("z", combine(l, h))
		l.pooled = true
	}
}

func (l *lowerer) bagMin(x *graph.Node) *graph.Node {
	return l.b.Neg(l.b.SegmentMax(l.b.Neg(x), l.bagOf))
}

func (l *lowerer) bagMean(x *graph.Node) *graph.Node {
	return l.b.Div(l.b.SegmentSum(x, l.bagOf), l.bagCount(len(x.Shape)))
}

// bagCount returns the number of instances of each bag, [B, 1, ...] of the given rank.
func (l *lowerer) bagCount(rank int) *graph.Node {
	ones := graph.Shape{graph.N}
	for len(ones) < rank {
		ones = append(ones, 1)
	}
	return l.b.SegmentSum(l.b.Fill(1, ones), l.bagOf)
}

// links has the probabilities p of the logits, and their logarithms.
var links = map[string]func(l *lowerer, blk *language.Block, logits *graph.Node) (p, logp *graph.Node){
	"softmax": func(l *lowerer, _ *language.Block, logits *graph.Node) (p, logp *graph.Node) {
		return l.b.Softmax(logits), l.b.LogSoftmax(logits)
	},
	"sigmoid": func(l *lowerer, _ *language.Block, logits *graph.Node) (p, logp *graph.Node) {
		p = l.b.Sigmoid(logits)
		return p, l.b.StableLog(p)
	},
	"bounded_sigmoid": func(l *lowerer, blk *language.Block, logits *graph.Node) (p, logp *graph.Node) {
		q := l.b.Sigmoid(logits)
		if eps := blk.Args["epsilon"].Float(); l.training {
			q = l.b.Clamp(q, eps, 1-eps)
		}
		return l.b.Softmax(q), l.b.LogSoftmax(q)
	},
}

// classifier computes the class probabilities from the embedding of the bag.
func (l *lowerer) classifier(blk *language.Block, _ string) {
	l.b.Label("classifier")
	z := l.env["z"]
	in, k := int(z.Shape[1]), l.prog.Signature.Classes
	logits := l.affine(z, l.param("Wc", fanIn(in), in, k), l.param("bc", fanIn(in), k))
	l.define("logits", logits)
	if link, ok := lowering(l, links, word(blk, "link")); ok {
		p, logp := link(l, blk, logits)
		l.define("p", p)
		l.define("logp", logp)
	}
}
