// The tables of keys: what a spec can say.

package language

import (
	"strings"

	"github.com/miplc/miplc/data/formats"
	"github.com/miplc/miplc/data/measure"
	"github.com/miplc/miplc/language/schema"
)

// specRows is the whole language of specs: every key with its type, default, range and meaning.
var specRows = schema.Fields[Spec]([]schema.Row{
	{Name: "name", Required: true, Doc: "Name of the model, used in reports and in the metadata of the exported file."},
	{Name: "description", MayBeEmpty: true, Doc: "Purpose of the spec, one line."},
	{Name: "data", Rows: dataRows, Doc: "The dataset, its normalisation and its split."},
	{Name: "learner", Custom: &learnerType,
		Doc: "A learner that is fitted to all training bags at once, in place of `model`, `loss` and `weights`: `{kind: " +
			"word, arguments}` or a word."},
	{Name: "model", Rows: modelRows, Applies: schema.When((*Spec).trained),
		Doc: "The network from instances to class probabilities: blocks, equations, or blocks followed by equations."},
	{Name: "let", Custom: &letType,
		Doc: "Equations that losses and `weights.update` share, as `name: expression`, in any order."},
	{Name: "loss", Custom: &lossType, Default: "[disambiguation, attention]", Applies: schema.When((*Spec).trained),
		Doc: "Terms of the training loss; the loss is their weighted sum (Eq. 8). Each is a word, `word: weight`, or " +
			"`word: {arguments}`."},
	{Name: "weights", Rows: weightsRows, Applies: schema.When((*Spec).weighsLabels),
		Doc: "How the label weights of each bag change during training (Eq. 6 and 7)."},
	{Name: "train", Rows: trainRows,
		Doc: "Optimizer and training loop. With a learner, only `seed` is used, and `engine` with `miplgp`."},
	{Name: "export", Rows: exportRows, Doc: "The ONNX file."},
	{Name: "search", Rows: searchRows(), Unwritten: true,
		Doc: "What `miplc train --search` tries. It does not change the model."},
})

// weighsLabels reports whether bags have label weights.
func (s *Spec) weighsLabels() bool { return s.trained() && !s.Multi() }

var dataRows = []schema.Row{
	{Name: "set", Default: prototypes,
		Doc: "The dataset: `generated:prototypes` (from the built-in generator), or the path of a file (" +
			formats.Readable().List() + "); with an encoder also a folder or .zip of images. miplc looks in the working " +
			"directory, then in the folder of `--data-dir` or `MIPLC_DATA`."},
	{Name: "generated", Rows: generatedRows, Applies: schema.When((*Spec).Generates),
		Doc: "Settings of the built-in generator, for `set: generated:prototypes`."},
	{Name: "shape", In: schema.Closed(1, schema.MaxSize),
		Doc: "Shape of one instance, such as `[1, 28, 28]` (channels, height, width). `[]` means as stored."},
	{Name: "classes", Default: "0", In: schema.Closed(0, schema.MaxSize),
		Doc: "Expected number of classes, checked against the dataset. 0 means as stored."},
	{Name: "sha256", MayBeEmpty: true,
		Doc: "Expected SHA-256 of the bags, as `miplc data inspect` prints it. Training on another dataset is an error. " +
			"Empty accepts any."},
	{Name: "normalize", Default: "training", Choices: []string{"none", "training", "all"},
		Doc: "z-scores of the features with the statistics of the `training` bags, of `all` bags (as in the program of " +
			"DEMIPL's authors), or `none`."},
	{Name: "labels", Choices: []string{KnownLabels, MultiLabels, NoisyLabels},
		Doc: "Without it, each bag has a candidate set with one true label. `known`: the true label of each bag is its " +
			"only candidate; a file in " + formats.WithLabels().Or() + " then needs no candidates, and every bag needs a " +
			"label. `multi`: a bag has any number of true labels, and the model predicts a set of classes. `noisy`: like " +
			"without it, but a true label may be outside of the candidates of its bag; such bags are counted, training uses " +
			"the candidates and measures the true labels."},
	{Name: "sample", In: schema.Closed(1, maxCount),
		Doc: "Maximum number of instances of a bag in an epoch. From a larger bag, each epoch draws that many at random, " +
			"without replacement; `train.seed` fixes the draws. Predictions use all instances. Without it, training uses all."},
	{Name: "columns", Rows: columnRows,
		Doc: "Columns of a " + formats.WithColumns().Or() + " file that are not recognised by their names. If it names a " +
			"column for `bag`, `label`, `candidates` or `instance_label`, these columns may be anywhere in the file."},
	{Name: "encoder", Rows: encoderRows, Applies: schema.When((*Spec).Encodes),
		Doc: "A pretrained network that computes the features of images. `set` is then a folder or zip archive of images, " +
			"a table of them (.csv), or an .npz file of images. The features of an image are computed once and cached."},
	{Name: "split", Rows: splitRows, Doc: "Division into training and test bags: random, or from an index file."},
}

// ExportJoined is the value of data.encoder.export for a model file that contains the encoder.
const ExportJoined = "joined"

var encoderRows = []schema.Row{
	{Name: "file", Main: true, Doc: "Path of the ONNX file, looked up like `set`."},
	{Name: "output",
		Doc: "Value in the file with the features of an image, [n, d] or [n, d, 1, 1]. Later nodes are left out. Without " +
			"it, the only output of the file."},
	{Name: "input", Rows: encoderInputRows, Doc: "How the encoder gets an image."},
	{Name: "export", Default: ExportJoined, Choices: []string{ExportJoined, "model"},
		Doc: "`joined`: the exported model contains the encoder and takes images. `model`: it takes features."},
}

var encoderInputRows = []schema.Row{
	{Name: "size", Default: "224", In: schema.Closed(1, 2048),
		Doc: "Width and height in pixels to which images are resized."},
	{Name: "mean", In: schema.Closed(-1e6, 1e6),
		Doc: "Three numbers, in the order of the channels, that are subtracted from the levels of a pixel (0 to 1), such " +
			"as `[0.485, 0.456, 0.406]`. `[]` means 0."},
	{Name: "std", In: schema.Closed(1e-6, 1e6),
		Doc: "Three numbers that then divide the levels, such as `[0.229, 0.224, 0.225]`. `[]` means 1."},
	{Name: "order", Default: "rgb", Choices: []string{"rgb", "bgr"}, Doc: "Order of the channels."},
}

// Encodes reports whether an encoder computes the features of images.
func (s *Spec) Encodes() bool { return s.Data.Encoder.File.V != "" }

// columnRows declare columns of CSV files.
var columnRows = []schema.Row{
	{Name: "bag", Doc: "Column with the name of the bag.", DefaultDoc: "`bag`"},
	{Name: "label", Doc: "Column with the true label.", DefaultDoc: "`label`"},
	{Name: "candidates", Doc: "Column with the candidate labels.", DefaultDoc: "`candidates`"},
	{Name: "instance_label", Doc: "Column with the class of the instance.", DefaultDoc: "`instance_label`"},
	{Name: "group",
		Doc: "Column with the group of the bag, such as the patient.", DefaultDoc: "the value of `data.split.group`"},
	{Name: "coordinates",
		Doc: "The two columns with the x and y coordinates of the instances. Models do not see coordinates; `miplc " +
			"predict --heatmap` draws attention at them.", DefaultDoc: "`x` and `y`"},
	{Name: "ignore", Doc: "Columns that are not read, such as `[patient, x, y]`."},
	{Name: "features", Doc: "Columns that are features although they are named like identifiers or coordinates."},
}

// maxCount is the maximum of counts and seeds.
const maxCount = 1 << 30

// Generates reports whether a built-in generator with the settings Data.Generated provides the
// bags, instead of a file.
func (s *Spec) Generates() bool { return strings.HasPrefix(s.Data.Set.V, generatedPrefix) }

// prototypes is the only dataset of a built-in generator.
const (
	generatedPrefix = "generated:"
	prototypes      = generatedPrefix + "prototypes"
)

var generatedRows = []schema.Row{
	{Name: "bags", Default: "300", In: schema.Closed(2, 1e6), Doc: "Number of bags."},
	{Name: "classes", Default: "5", In: schema.Closed(2, 10000), Doc: "Number of classes k."},
	{Name: "features", Default: "20", In: schema.Closed(1, schema.MaxSize), Doc: "Features d of an instance."},
	{Name: "candidates", Default: "1", In: schema.Closed(0, 10000),
		Doc: "Number r of false labels in each candidate set. With `data.labels: multi`, a bag has 1 to r + 1 true labels."},
	{Name: "positives", Default: "0.2", In: schema.PositiveUpTo(1),
		Doc: "Share of the instances of a bag that belong to its class."},
	{Name: "min_size", Default: "8", In: schema.Closed(1, 1e6), Doc: "Instances of the smallest bag."},
	{Name: "max_size", Default: "15", In: schema.Closed(1, 1e6), Doc: "Instances of the largest bag."},
	{Name: "noise", Default: "0.5", In: schema.AtLeast(0),
		Doc: "Standard deviation of the features around the prototype of their class."},
	{Name: "seed", Default: "1", In: schema.Closed(0, maxCount), Doc: "Seed of the generator."},
}

// usesIndex, usesRandomSplit, usesFolds and usesShare report how data.split divides the bags: by a file,
// or at random, and then into folds or into a share for training and the others.
func (s *Spec) usesIndex() bool       { return s.Data.Split.Index.V != "" }
func (s *Spec) usesRandomSplit() bool { return !s.usesIndex() }
func (s *Spec) usesFolds() bool       { return s.usesRandomSplit() && s.Data.Split.Folds.V > 0 }
func (s *Spec) usesShare() bool       { return s.usesRandomSplit() && !s.usesFolds() }

// drawsBags reports whether bags of some part are drawn at random.
func (s *Spec) drawsBags() bool { return s.usesRandomSplit() || s.Data.Split.Validation.V > 0 }

// selects reports whether a measure of validation bags chooses the epoch of the model.
func (s *Spec) selects() bool { return s.trained() && s.Train.Best.V != "" }

// BestMeasures are the measures of validation bags that train.best accepts.
var BestMeasures = append([]string{"loss"}, measure.BagNames()...)

var initRows = []schema.Row{
	{Name: "model", Required: true, Main: true,
		Doc: "Path of an .onnx file that miplc wrote, looked up like `data.set`. It must have every parameter of the " +
			"model, with the same name and shape, except those that only the loss uses."},
	{Name: "except",
		Doc: "Parameters that start with random numbers nevertheless, such as `[Wc, bc]` of a classifier for other classes."},
	{Name: "sha256", Doc: "Expected SHA-256 of the file. miplc writes it into the `spec.yaml` of a run."},
}

var stoppingRows = []schema.Row{
	{Name: "patience", Required: true, Main: true, In: schema.Closed(1, 1e6),
		Doc: "Number of epochs without a better value of `best` after which training ends."},
	{Name: "min_epochs", Default: "0", In: schema.Closed(0, 1e6),
		Doc: "Number of epochs before which training does not end."},
}

var splitRows = []schema.Row{
	{Name: "train", Default: "0.7", In: schema.PositiveUpTo(1), Applies: schema.When((*Spec).usesShare),
		Doc: "Share of training bags; the others are test bags. With `1`, all bags are training bags and there is no test " +
			"accuracy."},
	{Name: "folds", In: schema.Closed(2, 1000), Applies: schema.When((*Spec).usesFolds),
		Doc: "Number of folds of about the same size. The bags of one fold are test bags; `train` is not used. Folds of " +
			"the same seed are disjoint."},
	{Name: "fold", Default: "1", In: schema.Closed(1, 1000), Applies: schema.When((*Spec).usesFolds),
		Doc: "The fold with the test bags, from 1."},
	{Name: "validation", In: schema.Open(0, 1), Applies: schema.When((*Spec).drawsBags),
		Doc: "Share of the training bags that are validation bags instead, also of those in an `index` file. Test bags are " +
			"then evaluated once, after training."},
	{Name: "group",
		Doc: "Groups of bags, such as `patient`: the name of a column of a CSV file, or of the groups stored in an .npz " +
			"file. All bags of a group are in the same part. With `index`, a split of the file that divides a group is an " +
			"error."},
	{Name: "stratify", Default: "true", Applies: schema.When((*Spec).drawsBags),
		Doc: "Draw the same share of every class, where true labels are known. `false`: draw from all bags alike. With " +
			"`data.labels: multi`, about the same share of every label."},
	{Name: "seed", Default: "1", In: schema.Closed(0, maxCount), Applies: schema.When((*Spec).drawsBags),
		Doc: "Seed of the random split."},
	{Name: "index", Applies: schema.When((*Spec).usesIndex),
		Doc: "File with the bags of each part instead of a random split: a .csv with the columns `bag` and `part`, or " +
			"another [file of splits](data.md#splits-from-a-file)."},
	{Name: "number", Default: "1", In: schema.Closed(1, 1e6), Applies: schema.When((*Spec).usesIndex),
		Doc: "Number of the split in a .csv index file, from 1."},
}

var modelRows = []schema.Row{
	{Name: "blocks", Custom: &blocksType,
		Doc: "Blocks in order: each a word, `word: value` (its main argument), or `word: {arguments}`."},
	{Name: "sizes", Custom: &sizesType, Doc: "Named sizes for the shapes of `params`, and as numbers in equations."},
	{Name: "numbers", Custom: &numbersType,
		Doc: "Named numbers, or lists of numbers, for the equations of model, loss and weights, such as `{beta: 1, costs: " +
			"[1, 2, 0.5]}`; `--set model.numbers.beta=2` changes one."},
	{Name: "params", Custom: &paramsType, Doc: "Learned parameters of the equations, by name."},
	{Name: "functions", Custom: &functionsType,
		Doc: "Functions of the spec, by name, for the equations of model, loss and weights."},
	{Name: "let", Custom: &letType, Doc: "Equations, as `name: expression`. They may use each other, in any order."},
	{Name: "attention", Doc: "Name of the attention scores [N, 1].", DefaultDoc: "`a`"},
	{Name: "class_attention",
		Doc: "Name of the attention scores of each class [N, k]. With `export.signature: bag`, the model file then has the " +
			"output `class_attention`, which `miplc predict --heatmap` draws for the predicted class."},
	{Name: "probabilities", Doc: "Name of the class probabilities [B, k].", DefaultDoc: "`p`"},
	{Name: "log_probabilities",
		Doc: "Name of the logarithm of the probabilities. Without `logp`, or if `probabilities` is set, miplc computes " +
			"the logarithm of the probabilities.", DefaultDoc: "`logp`"},
	{Name: "threshold", Default: "0.5", In: schema.Open(0, 1), Applies: schema.When((*Spec).Multi),
		Doc: "Probability above which a class is predicted, with `data.labels: multi`."},
}

// functionRows are the keys of one entry of model.functions.
var functionRows = schema.Fields[UserFunction]([]schema.Row{
	{Name: "args", Required: true, Doc: "Names of the arguments."},
	{Name: "let", Custom: &letType,
		Doc: "Equations of the function, in order, as `name: expression`. Their names are local to the function."},
	{Name: "value", Custom: &equationType, Required: true,
		Doc: "Equation of the result. It may use the arguments, the `let` of the function, parameters, sizes, numbers, `t` " +
			"and `T`, and call the functions before this one."},
})

// paramRows are the keys of one entry of model.params.
var paramRows = schema.Fields[Param]([]schema.Row{
	{Name: "shape", Type: schema.SizeList, Required: true, Main: true,
		Doc: "Sizes: whole numbers, `d` (features of an instance), `h` (features after the blocks), `k` (classes), or " +
			"names of `sizes`. `[]` is a scalar."},
	{Name: "init", Default: "fan_in", Choices: []string{"fan_in", "zeros", "ones", "normal", "uniform", "constant"},
		Doc: "Initial values: `fan_in` (uniform in ±1/sqrt(fan_in)), `zeros`, `ones`, `normal` (standard deviation " +
			"`scale`), `uniform` (in ±`scale`), `constant` (all `scale`)."},
	{Name: "scale", In: schema.Above(0),
		Doc: "Required with `init: normal`, `uniform` and `constant`: the scale of the values."},
	{Name: "fan_in", Type: schema.Size, Doc: "Size that `init: fan_in` uses.", DefaultDoc: "the first of `shape`"},
})

var weightsRows = []schema.Row{
	{Name: "schedule", Default: "linear", Choices: []string{"linear", "progressive", "averaging"},
		Applies: schema.When((*Spec).usesLambda),
		Doc: "Momentum lambda of the label weights in epoch t of T: `linear` (T - t) / T, `progressive` 0, " +
			"`averaging` 1."},
	{Name: "order", Default: "before_loss", Choices: []string{"before_loss", "after_loss", "after_step"},
		Doc: "When a step updates the label weights: before the loss (paper), after the loss (program of DEMIPL's " +
			"authors), or after the update of the parameters (RC, LWS)."},
	{Name: "first_epoch", Default: "1", In: schema.Closed(0, 1),
		Doc: "Number t of the first epoch: 1 (paper) or 0 (program of DEMIPL's authors)."},
	{Name: "update", Custom: &equationType,
		Doc: "New label weights [B, k], in place of Eq. 7. The equation may use `w` (the old label weights), `p`, `S` " +
			"(candidates), `lambda` and the other names."},
}

var trainRows = []schema.Row{
	{Name: "epochs", Default: "100", In: schema.Closed(1, 1e6), Applies: schema.When((*Spec).trained),
		Doc: "Number T of passes over the training bags."},
	{Name: "batch", Default: "1", In: schema.Closed(1, 1e6), Applies: schema.When((*Spec).trained), Doc: "Bags per step."},
	{Name: "seed", Default: "1", In: schema.Closed(0, maxCount),
		Doc: "Seed of initial parameters, bag order, dropout masks and the random draws of a learner."},
	{Name: "init", Rows: initRows,
		Applies: schema.When(func(s *Spec) bool { return s.trained() && s.Train.Init.Model.V != "" }),
		Doc:     "A trained model whose parameters are the initial ones, instead of random numbers."},
	{Name: "sampling", Default: "shuffle", Choices: []string{"shuffle", "balanced"},
		Applies: schema.When(func(s *Spec) bool { return s.trained() && s.Train.Sampling.V != "shuffle" }),
		Doc: "Training bags of an epoch: `shuffle` (every bag once) or `balanced` (as many draws with replacement, each of " +
			"a random class and then of a bag with this candidate)."},
	{Name: "class_weights", Custom: &classWeightsType, Applies: schema.When((*Spec).weighsClasses),
		Doc: "Factors of the classes in the loss terms " + strings.Join(classWeighted(), " and ") + ": a list with a " +
			"number for each class, or `balanced` (rare classes get larger factors)."},
	{Name: "accumulate", Default: "1", In: schema.Closed(1, 1e6),
		Applies: schema.When(func(s *Spec) bool { return s.trained() && s.Train.Accumulate.V > 1 }),
		Doc: "Number of steps whose gradients are averaged for one update of the parameters. The last update of an epoch " +
			"averages the steps that are left."},
	{Name: "optimizer", Default: "sgd", Choices: schema.Words(optimizers),
		Applies: schema.When(func(s *Spec) bool { return s.trained() && s.Train.Optimizer.V != "sgd" }),
		Doc: "Rule that updates the parameters, as PyTorch defines it. A spec that names it does not inherit the optimizer " +
			"settings of its base."},
	{Name: "lr", Default: "0.01", In: schema.Above(0), Applies: schema.When((*Spec).trained),
		Doc: "Learning rate before `schedule` and `warmup` change it. With `adam` and `adamw`, the default is 0.001."},
	{Name: "momentum", Default: "0.9", In: schema.HalfOpen(0, 1), Applies: hasSetting("momentum"),
		Doc: "Momentum (`sgd`, `rmsprop`); 0 disables it. With `rmsprop`, the default is 0."},
	{Name: "nesterov", Default: "true", Applies: hasSetting("nesterov"), Doc: "Nesterov momentum (`sgd`)."},
	{Name: "beta1", Default: "0.9", In: schema.HalfOpen(0, 1), Applies: hasSetting("beta1"),
		Doc: "Decay of the running mean of the gradient (`adam`, `adamw`)."},
	{Name: "beta2", Default: "0.999", In: schema.HalfOpen(0, 1), Applies: hasSetting("beta2"),
		Doc: "Decay of the running mean of the squared gradient (`adam`, `adamw`)."},
	{Name: "alpha", Default: "0.99", In: schema.HalfOpen(0, 1), Applies: hasSetting("alpha"),
		Doc: "Decay of the running mean of the squared gradient (`rmsprop`)."},
	{Name: "epsilon", Default: "1e-8", In: schema.Above(0), Applies: hasSetting("epsilon"),
		Doc: "Number added to the root of the mean square (`adam`, `adamw`, `rmsprop`)."},
	{Name: "weight_decay", Default: "0.0001", In: schema.AtLeast(0), Applies: schema.When((*Spec).trained),
		Doc: "Weight decay of every parameter. It is added to the gradient; `adamw` subtracts it from the parameter. With " +
			"`adam` and `rmsprop`, the default is 0, with `adamw` 0.01."},
	{Name: "clip", Default: "0", In: schema.AtLeast(0),
		Applies: schema.When(func(s *Spec) bool { return s.trained() && s.Train.Clip.V > 0 }),
		Doc: "Maximum norm of the gradient by all parameters together: a longer gradient is scaled down to it before " +
			"weight decay and momentum. 1 is a common choice; 0 disables clipping."},
	{Name: "schedule", Default: "cosine", Choices: schema.Words(rateSchedules), Applies: schema.When((*Spec).trained),
		Doc: "Learning rate over the epochs: `cosine` (to 0), `constant`, `step` (falls every `decay_every` epochs or " +
			"after the epochs `decay_at`) or `plateau` (falls when the training loss, or `decay_measure`, stops improving)."},
	{Name: "warmup", Default: "0", In: schema.Closed(0, 1e6),
		Applies: schema.When(func(s *Spec) bool { return s.trained() && s.Train.Warmup.V > 0 }),
		Doc: "Number n of epochs in which the learning rate rises: it is lr e / (n + 1) in epoch e. `cosine` falls over " +
			"the epochs that are left."},
	{Name: "decay_every", Default: "30", In: schema.Closed(1, 1e6), Applies: hasDecay("decay_every"),
		Doc: "`step`: number of epochs after which the learning rate is multiplied by `decay_factor`, repeatedly."},
	{Name: "decay_at", In: schema.Closed(1, 1e6), Applies: hasDecay("decay_at"),
		Doc: "`step`: the epochs, such as `[60, 80]`, after which the learning rate is multiplied by `decay_factor`, in " +
			"place of `decay_every`."},
	{Name: "decay_factor", Default: "0.1", In: schema.Open(0, 1), Applies: hasDecay("decay_factor"),
		Doc: "`step` and `plateau`: factor of the learning rate."},
	{Name: "decay_patience", Default: "10", In: schema.Closed(0, 1e6), Applies: hasDecay("decay_patience"),
		Doc: "`plateau`: the learning rate falls after more than this number of epochs in a row without a new lowest mean " +
			"loss (lower by at least 0.01 %)."},
	{Name: "decay_measure", Choices: BestMeasures, Applies: hasDecay("decay_measure"),
		Doc: "`plateau`: measure of the validation bags to follow instead of the training loss, with the names of `best`. " +
			"Epochs that `eval_every` leaves out do not count."},
	{Name: "engine", Default: "auto", Choices: []string{"auto", "native", "xla", "gorgonia", "ort"},
		Applies: schema.When((*Spec).usesEngine),
		Doc: "What runs the training steps: `native` (miplc's own kernels), `xla` (NVIDIA GPUs) or `gorgonia` (pure Go; " +
			"slow). `auto`: `xla` on a GPU for images, else `native`. `ort`, of earlier versions, means `native`. The " +
			"learner `miplgp` is always fitted by `native`."},
	{Name: "best", Choices: BestMeasures, Applies: schema.When((*Spec).selects),
		Doc: "Measure of the validation bags that chooses the epoch whose parameters are exported, of equal ones that " +
			"with the lowest loss: a measure of docs/measures.md, or `loss`, which needs no true labels. Without it, the last " +
			"epoch is exported."},
	{Name: "early_stopping", Rows: stoppingRows,
		Applies: schema.When(func(s *Spec) bool { return s.selects() && s.Train.Patience.V > 0 }),
		Doc: "Ends training after this number of epochs without a better value of `best`, or a map of `patience` and " +
			"`min_epochs`. `epochs` remains the limit and the T of all schedules."},
	{Name: "refit", Default: "false", Applies: schema.When((*Spec).selects),
		Doc: "Whether to train again from the start, on training and validation bags together, for the number of epochs " +
			"that `best` has chosen. This second model is exported."},
	{Name: "eval_every", Default: "1", In: schema.Closed(1, 1e6), Applies: schema.When((*Spec).trained),
		Doc: "Number of epochs between evaluations."},
	{Name: "checkpoint", Default: "1", In: schema.Closed(0, 1e6), Applies: schema.When((*Spec).trained),
		Doc: "Number of epochs between checkpoints. If writing them would take more than 5 % of the time, there are more " +
			"epochs between them. 0 disables checkpoints."},
}

// Opsets that package export can write.
const (
	MinOpset = 13
	MaxOpset = 21
)

var exportRows = []schema.Row{
	{Name: "signature", Default: "bag", Choices: []string{"bag", "batch"},
		Doc: "`bag`: one bag per call, in onnxruntime and onnx-go. `batch`: several bags per call (with the input " +
			"`bag_of`), only in onnxruntime."},
	{Name: "opset", Default: "17", In: schema.Closed(MinOpset, MaxOpset),
		Doc: "Newest ONNX operator set that the file may use. The file declares the oldest set with all of its operations, " +
			"usually 13."},
	{Name: "temperature", Custom: &temperatureType,
		Doc: "Number that divides the logits in the exported model. `validation`: the number with the smallest log loss on " +
			"the validation bags with a true label; if none has one, the number with which their candidate sets are most " +
			"probable. Without it, the probabilities stay as trained."},
}

// Choices returns the words of every setting that accepts one of some words, by its
// path: "weights.order", "params.init", "blocks.pool.kind". It is for tests, which check that each
// word has an effect.
func Choices() map[string][]string {
	all := map[string][]string{}
	schema.Choices("", specRows, all)
	schema.Choices("params.", paramRows, all)
	for _, b := range Blocks {
		schema.Choices("blocks."+b.Name+".", b.args, all)
	}
	for _, l := range learnerKinds {
		schema.Choices("learners."+l.Name+".", l.args, all)
	}
	return all
}
