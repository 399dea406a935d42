package language

import "strings"

// language is the whole language: every key with its type, default, range and
// meaning.
var language = []row{
	{name: "name", typ: tString, required: true, to: func(s *Spec) any { return &s.Name },
		doc: "Name of the model, used in reports and in the metadata of the exported file."},
	{name: "description", typ: tString, to: func(s *Spec) any { return &s.Description },
		holds: func(s *Spec) bool { return s.Description.V != "" },
		doc:   "What the spec is for, one line."},
	{name: "data", typ: tSection, rows: dataRows,
		doc: "Where the bags come from and how they are prepared."},
	{name: "learner", typ: tLearner, holds: (*Spec).fitted,
		doc: "A learner that is fitted to the training bags as a whole, in place of model, loss and weights: {kind: word, arguments} or a plain word."},
	{name: "model", typ: tSection, rows: modelRows, holds: (*Spec).trained,
		doc: "The network from instances to class probabilities: blocks, equations, or blocks followed by equations."},
	{name: "loss", typ: tLosses, def: "[disambiguation, attention]", holds: (*Spec).trained,
		doc: "Terms of the training loss, added with their weights (Eq. 8): each a plain word, word: weight, or word: {arguments}."},
	{name: "weights", typ: tSection, rows: weightsRows, holds: (*Spec).trained,
		doc: "How the label weights of each bag change during training (Eq. 6 and 7)."},
	{name: "train", typ: tSection, rows: trainRows,
		doc: "Optimiser and training loop: SGD with momentum. Beside a learner, seed alone."},
	{name: "export", typ: tSection, rows: exportRows,
		doc: "The ONNX file."},
}

// extendsRow is read before all others and is not part of a complete spec.
var extendsRow = row{name: "extends", typ: tString,
	doc: "A spec to inherit from: a file, relative to this one, or the name of a shipped spec. Maps merge key by key; lists and single values replace."}

var dataRows = []row{
	{name: "set", typ: tString, def: "generated:prototypes", to: func(s *Spec) any { return &s.Data.Set },
		doc: "The bags: generated:prototypes (drawn by the built-in generator) or the path of an .npz, .mat, .csv or .csv.gz file, looked up in the working directory and in the data directory."},
	{name: "generated", typ: tSection, rows: generatedRows, holds: (*Spec).generates,
		doc: "Settings of the built-in generator, used when set begins with generated:."},
	{name: "shape", typ: tInts, in: between(1, maxExtent), to: func(s *Spec) any { return &s.Data.Shape },
		holds: func(s *Spec) bool { return len(s.Data.Shape.V) > 0 },
		doc:   "Shape of one instance, such as [1, 28, 28] (channels, height, width); [] or absent: as stored."},
	{name: "classes", typ: tInt, def: "0", in: between(0, maxExtent), to: func(s *Spec) any { return &s.Data.Classes },
		doc: "Number of classes to expect; the data set must agree. 0: as stored."},
	{name: "normalize", typ: tString, def: "training", choices: []string{"none", "training", "all"},
		to:  func(s *Spec) any { return &s.Data.Normalize },
		doc: "z-scores of the features, with statistics of the training bags, of all bags (as the authors' program does), or none."},
	{name: "split", typ: tSection, rows: splitRows,
		doc: "Which bags train and which test: a random share, or an index file."},
}

func (s *Spec) generates() bool { return strings.HasPrefix(s.Data.Set.V, generatedPrefix) }

const generatedPrefix = "generated:"

// generators are the built-in data sets that may follow generatedPrefix.
var generators = []string{"prototypes"}

var generatedRows = []row{
	{name: "bags", typ: tInt, def: "300", in: between(2, 1e6), to: func(s *Spec) any { return &s.Data.Generated.Bags },
		doc: "Number of bags."},
	{name: "classes", typ: tInt, def: "5", in: between(2, 10000), to: func(s *Spec) any { return &s.Data.Generated.Classes },
		doc: "Number of classes k."},
	{name: "features", typ: tInt, def: "20", in: between(1, maxExtent), to: func(s *Spec) any { return &s.Data.Generated.Features },
		doc: "Features d of an instance."},
	{name: "candidates", typ: tInt, def: "1", in: between(0, 10000), to: func(s *Spec) any { return &s.Data.Generated.Candidates },
		doc: "False candidate labels r of each bag, beside the true one."},
	{name: "positives", typ: tFloat, def: "0.2", in: shareOf(1), to: func(s *Spec) any { return &s.Data.Generated.Positives },
		doc: "Share of the instances of a bag that show its class."},
	{name: "min_size", typ: tInt, def: "8", in: between(1, 1e6), to: func(s *Spec) any { return &s.Data.Generated.MinSize },
		doc: "Instances of the smallest bag."},
	{name: "max_size", typ: tInt, def: "15", in: between(1, 1e6), to: func(s *Spec) any { return &s.Data.Generated.MaxSize },
		doc: "Instances of the largest bag."},
	{name: "noise", typ: tFloat, def: "0.5", in: atLeast(0), to: func(s *Spec) any { return &s.Data.Generated.Noise },
		doc: "Standard deviation of the features around the prototype of their class."},
	{name: "seed", typ: tInt, def: "1", in: between(0, maxCount), to: func(s *Spec) any { return &s.Data.Generated.Seed },
		doc: "Seed of the generator."},
}

func (s *Spec) indexed() bool { return s.Data.Split.Index.V != "" }
func (s *Spec) drawn() bool   { return !s.indexed() }

var splitRows = []row{
	{name: "train", typ: tFloat, def: "0.7", in: within(0, 1), holds: (*Spec).drawn, to: func(s *Spec) any { return &s.Data.Split.Train },
		doc: "Share of the bags that train; the rest test."},
	{name: "seed", typ: tInt, def: "1", in: between(0, maxCount), holds: (*Spec).drawn, to: func(s *Spec) any { return &s.Data.Split.Seed },
		doc: "Seed of the random split."},
	{name: "index", typ: tString, holds: (*Spec).indexed, to: func(s *Spec) any { return &s.Data.Split.Index },
		doc: "File of bag numbers in place of a random split: a .mat with trainIndex and testIndex, or a .csv of splits."},
	{name: "part", typ: tInt, def: "1", in: between(1, 1e6), holds: (*Spec).indexed, to: func(s *Spec) any { return &s.Data.Split.Part },
		doc: "Which split of a .csv index file, counted from 1."},
}

var modelRows = []row{
	{name: "blocks", typ: tBlocks, holds: func(s *Spec) bool { return len(s.Model.Blocks) > 0 },
		doc: "Named blocks in order: each a plain word, word: value (its main argument), or word: {arguments}."},
	{name: "sizes", typ: tSizes, holds: func(s *Spec) bool { return len(s.Model.Sizes) > 0 },
		doc: "Names for extents used in the shapes of params and as numbers in equations."},
	{name: "numbers", typ: tNumbers, holds: func(s *Spec) bool { return len(s.Model.Numbers) > 0 },
		doc: "Named numbers for the equations of model, loss and weights, such as {beta: 1}; --set model.numbers.beta=2 changes one."},
	{name: "params", typ: tParams, holds: func(s *Spec) bool { return len(s.Model.Params) > 0 },
		doc: "Learned values of the equations, by name."},
	{name: "let", typ: tLet, holds: func(s *Spec) bool { return len(s.Model.Let) > 0 },
		doc: "Equations in order, name: expression; later ones may use earlier ones."},
	{name: "attention", typ: tString, holds: func(s *Spec) bool { return s.Model.Attention.V != "" },
		to:  func(s *Spec) any { return &s.Model.Attention },
		doc: "Name of the attention scores [N, 1]; needed when they are not called a."},
	{name: "probabilities", typ: tString, holds: func(s *Spec) bool { return s.Model.Probabilities.V != "" },
		to:  func(s *Spec) any { return &s.Model.Probabilities },
		doc: "Name of the class probabilities [B, k]; needed when they are not called p."},
	{name: "log_probabilities", typ: tString, holds: func(s *Spec) bool { return s.Model.LogProbabilities.V != "" },
		to:  func(s *Spec) any { return &s.Model.LogProbabilities },
		doc: "Name of the logarithm of the probabilities, if it is known in a form safer than log(p)."},
}

// paramRows are the keys of one entry of model.params.
var paramRows = []row{
	{name: "shape", typ: tExtents, required: true,
		doc: "Extents: whole numbers, d (features of an instance), h (features after the blocks), k (classes), or names of sizes; [] for a single number."},
	{name: "init", typ: tString, def: "fan_in", choices: []string{"fan_in", "zeros", "ones", "normal", "uniform"},
		doc: "Initial values: fan_in (uniform in +-1/sqrt(fan_in)), zeros, ones, normal (standard deviation scale), uniform (in +-scale)."},
	{name: "scale", typ: tFloat, in: above(0),
		doc: "Scale of init normal and uniform, where it is required."},
	{name: "fan_in", typ: tExtent,
		doc: "Extent that counts as fan in of init fan_in; default: the first of shape."},
}

var weightsRows = []row{
	{name: "schedule", typ: tString, def: "linear", choices: []string{"linear", "progressive", "averaging"},
		holds: (*Spec).usesLambda,
		to:    func(s *Spec) any { return &s.Weights.Schedule },
		doc:   "Momentum lambda of the label weights in epoch t of T: linear (T-t)/T, progressive 0, averaging 1."},
	{name: "order", typ: tString, def: "before_loss", choices: []string{"before_loss", "after_loss", "after_step"},
		to:  func(s *Spec) any { return &s.Weights.Order },
		doc: "before_loss (the paper): the loss of an epoch uses the weights of that epoch; after_loss (the authors' program): those of the epoch before, and the new ones come from the prediction before the step; after_step (RC, LWS): likewise, with a second prediction after the step."},
	{name: "first_epoch", typ: tInt, def: "1", in: between(0, 1),
		to:  func(s *Spec) any { return &s.Weights.FirstEpoch },
		doc: "Number t of the first epoch: 1 (the paper) or 0 (the authors' program)."},
	{name: "update", typ: tExpression, holds: func(s *Spec) bool { return s.Weights.Update != nil },
		doc: "Equation [B, k] in place of Eq. 7, of w (the previous weights), p, S (candidates), lambda and the other known names."},
}

var trainRows = []row{
	{name: "epochs", typ: tInt, def: "100", in: between(1, 1e6), holds: (*Spec).trained, to: func(s *Spec) any { return &s.Train.Epochs },
		doc: "Passes over the training bags, T."},
	{name: "batch", typ: tInt, def: "1", in: between(1, 1e6), holds: (*Spec).trained, to: func(s *Spec) any { return &s.Train.Batch },
		doc: "Bags per step."},
	{name: "seed", typ: tInt, def: "1", in: between(0, maxCount), to: func(s *Spec) any { return &s.Train.Seed },
		doc: "Seed of initial parameters, order of the bags and dropout masks, and of what a learner draws."},
	{name: "lr", typ: tFloat, def: "0.01", in: above(0), holds: (*Spec).trained, to: func(s *Spec) any { return &s.Train.LR },
		doc: "Learning rate of the first epoch."},
	{name: "momentum", typ: tFloat, def: "0.9", in: upTo(0, 1), holds: (*Spec).trained, to: func(s *Spec) any { return &s.Train.Momentum },
		doc: "Momentum of SGD; 0: none."},
	{name: "nesterov", typ: tBool, def: "true", holds: (*Spec).trained, to: func(s *Spec) any { return &s.Train.Nesterov },
		doc: "Nesterov's form of the momentum."},
	{name: "weight_decay", typ: tFloat, def: "0.0001", in: atLeast(0), holds: (*Spec).trained, to: func(s *Spec) any { return &s.Train.WeightDecay },
		doc: "Decay of every parameter, added to its gradient."},
	{name: "schedule", typ: tString, def: "cosine", choices: []string{"cosine", "constant"}, holds: (*Spec).trained, to: func(s *Spec) any { return &s.Train.Schedule },
		doc: "Learning rate over the epochs: cosine (to 0) or constant."},
	{name: "engine", typ: tString, def: "auto", choices: []string{"auto", "gorgonia", "ort", "xla"}, holds: (*Spec).trained, to: func(s *Spec) any { return &s.Train.Engine },
		doc: "What runs the training steps."},
	{name: "eval_every", typ: tInt, def: "1", in: between(1, 1e6), holds: (*Spec).trained, to: func(s *Spec) any { return &s.Train.EvalEvery },
		doc: "Epochs between two measurements of the accuracies."},
	{name: "checkpoint", typ: tInt, def: "1", in: between(0, 1e6), holds: (*Spec).trained, to: func(s *Spec) any { return &s.Train.Checkpoint },
		doc: "Epochs between two checkpoints; 0: none."},
}

// Opsets that package export can write.
const (
	MinOpset = 13
	MaxOpset = 21
)

var exportRows = []row{
	{name: "signature", typ: tString, def: "bag", choices: []string{"bag", "batch"}, to: func(s *Spec) any { return &s.Export.Signature },
		doc: "bag: one bag in, runs in onnxruntime and onnx-go; batch: many bags and bag_of in, onnxruntime alone."},
	{name: "opset", typ: tInt, def: "17", in: between(MinOpset, MaxOpset), to: func(s *Spec) any { return &s.Export.Opset },
		doc: "Version of the ONNX operator set."},
}
