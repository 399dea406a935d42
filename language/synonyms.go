// Words of other programs, and ours for them.

package language

// Synonyms maps words of other libraries to words of specs and experiments. The keys
// are in lower case without - and _.
var Synonyms = map[string][]string{
	"learningrate": {"lr"}, "batchsize": {"batch"}, "numepochs": {"epochs"}, "nepochs": {"epochs"},
	"maxepochs": {"epochs"},
	"wd":        {"weight_decay"}, "l2": {"weight_decay"}, "scheduler": {"schedule"}, "lrschedule": {"schedule"},
	"lrscheduler":  {"schedule"},
	"gradientclip": {"clip"}, "gradclip": {"clip"}, "clipnorm": {"clip"}, "maxnorm": {"clip"}, "maxgradnorm": {"clip"},
	"gradientclipval": {"clip"}, "gradientclipping": {"clip"},
	"optim": {"optimizer"}, "optimiser": {"optimizer"}, "eps": {"epsilon"}, "sampler": {"sampling"},
	"weightedrandomsampler": {"balanced"}, "oversampling": {"sampling"}, "milestones": {"decay_at"},
	"stepsize": {"decay_every"}, "gamma": {"decay_factor"}, "warmupepochs": {"warmup"}, "lrpatience": {"decay_patience"},
	"reducelronplateau": {"plateau"}, "multistep": {"step"}, "steplr": {"step"}, "rho": {"alpha"}, "betas": {"beta1"},
	"accumulationsteps": {"accumulate"}, "gradientaccumulation": {"accumulate"}, "gradientaccumulationsteps": {
		"accumulate"}, "accumulategradbatches": {"accumulate"},
	"nsplits": {"folds", "count"}, "nfolds": {"folds"}, "kfold": {"folds"}, "cv": {"folds"}, "val": {"validation"},
	"valsize": {"validation"}, "valfraction": {"validation"}, "validationsplit": {"validation"}, "groups": {"group"},
	"groupby": {"group"},
	"auc":     {"auroc"}, "rocauc": {"auroc"}, "f1": {"macro_f1"}, "f1score": {"macro_f1"}, "f1macro": {"macro_f1"},
	"f1micro": {"micro_f1"}, "valloss": {"loss"}, "acc": {"accuracy"}, "earlystop": {"early_stopping"},
	"valacc": {"accuracy"}, "valaccuracy": {"accuracy"}, "map": {"mean_average_precision"}, "hamming": {"hamming_loss"},
	"brierscore": {"brier"},
	"multilabel": {"multi"}, "single": {"known"}, "singlelabel": {"known"}, "posweight": {"class_weights"},
	"backend": {"engine"}, "randomstate": {"seed"}, "randomseed": {"seed"},
	"outchannels": {"channels"}, "filters": {"channels"}, "kernelsize": {"kernel"}, "poolsize": {"kernel"},
	"strides": {"stride"}, "padding": {"pad"},
	"outfeatures": {"units"}, "dim": {"units"}, "hidden": {"units", "width"}, "p": {"rate"}, "prob": {"rate"},
	"layers": {"blocks"}, "parameters": {"params"}, "variables": {"params"}, "equations": {"let"},
	"constants": {"numbers"}, "dims": {"sizes"},
	"dataset": {"data"}, "datasets": {"data"}, "path": {"set"}, "file": {"set"}, "source": {"set"},
	"inputshape": {"shape"}, "numclasses": {"classes"}, "nclasses": {"classes"},
	"trainsize": {"train"}, "ratio": {"train"}, "folds": {"index", "splits"}, "std": {"scale"}, "stddev": {"scale"},
	"sigma": {"scale"}, "initializer": {"init"}, "inittype": {"init"},
	"network": {"model"}, "training": {"train"}, "output": {"export"}, "onnx": {"export"}, "models": {"learners"},
	"methods": {"learners"}, "baseline": {"reference"}, "tables": {"report"}, "figures": {"report"},

	"linear": {"dense"}, "fc": {"dense"}, "conv": {"conv2d"}, "convolution": {"conv2d"}, "maxpool": {"maxpool2d"},
	"maxpooling2d": {"maxpool2d"},
	"attn":         {"attention"}, "gatedattention": {"attention"}, "softmax": {"classifier"}, "head": {"classifier"},
	"mean": {"pool"}, "max": {"pool"},
	"avgpool": {"pool"}, "meanpool": {"pool"}, "globalaveragepooling": {"pool"}, "globalaveragepooling2d": {"pool"},
	"pooling": {"pool"},
	"avg":     {"mean"}, "average": {"mean"}, "minmax": {"maxmin"},
	"crossentropy": {"disambiguation"}, "crossentropyloss": {"disambiguation"}, "ce": {"disambiguation"},
	"nll": {"disambiguation"}, "bce": {"binary_cross_entropy"}, "bceloss": {"binary_cross_entropy"},
	"bcewithlogitsloss": {"binary_cross_entropy"}, "entropy": {"attention"},
	"xavier": {"fan_in"}, "glorot": {"fan_in"}, "kaiming": {"fan_in"}, "he": {"fan_in"}, "default": {"fan_in"},
	"gaussian": {"normal"}, "zero": {"zeros"}, "one": {"ones"},
	"cuda": {"xla"}, "gpu": {"xla"}, "cpu": {"ort"}, "onnxruntime": {"ort"}, "cosineannealing": {"cosine"},
	"cosineannealinglr": {"cosine"}, "multisteplr": {"step"}, "zscore": {"training"}, "standard": {"training"},

	"dot": {"matmul"}, "mm": {"matmul"}, "bmm": {"matmul"}, "cat": {"concat"}, "concatenate": {"concat"},
	"clip": {"clamp"}, "amax": {"max"},
	"t": {"transpose"}, "ln": {"log"}, "logsoftmax": {"log_softmax"}, "detach": {"stop_gradient"},
	"segmentsum": {"bag_sum"}, "layernorm": {"layer_norm"}, "instancenorm": {"bag_norm"}, "batchnorm": {"bag_norm"},
	"topk": {"bag_top"}, "bernoulli": {"random"}, "scattersum": {"bag_sum"}, "logistic": {"sigmoid"},
}

// advice explains what replaces keys of other libraries that specs do without. The keys are written
// like those of Synonyms.
var advice = func() map[string]string {
	const (
		testing = "all bags that are neither for training nor for validation are for testing: train: 0.7 leaves 30 %; to " +
			"test on another file, train on all bags with train: 1 and pass the file to miplc predict"
		device  = "the command line chooses the device: miplc train --device cuda"
		workers = "the command line has --threads; onnxruntime and the reader of large data run in their own threads"
		shuffle = "random splits and the order of the training bags are always shuffled, with the given seed"
		layers  = "layers are entries of blocks, for example - dense: 128, - relu and - dropout: 0.5; miplc specs " +
			"demipl-mlp shows a spec with a hidden layer"
		metrics = "all measures are computed; best names the one that chooses the epoch"
	)
	return map[string]string{
		"test": testing, "testsize": testing, "testratio": testing, "testfraction": testing,
		"device": device, "gpu": device, "gpus": device, "cuda": device, "accelerator": device, "devices": device,
		"numworkers": workers, "workers": workers, "njobs": workers, "threads": workers, "pinmemory": workers,
		"shuffle": shuffle,
		"hidden":  layers, "hiddendim": layers, "hiddensize": layers, "hiddenunits": layers, "dropout": layers,
		"activation": layers, "nlayers": layers, "numlayers": layers,
		"metric": metrics, "metrics": metrics, "monitor": metrics,
	}
}()
