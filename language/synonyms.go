// Words of other programs, and ours for them.

package language

import "strings"

// synonyms has our words, each with words of other libraries in lower case without - and _.
const synonyms = `
lr: learningrate, batch: batchsize, epochs: numepochs nepochs maxepochs, weight_decay: wd l2,
schedule: scheduler lrschedule lrscheduler,
clip: gradientclip gradclip clipnorm maxnorm maxgradnorm gradientclipval gradientclipping, optimizer: optim optimiser,
epsilon: eps, sampling: sampler oversampling, balanced: weightedrandomsampler, decay_at: milestones,
decay_every: stepsize, decay_factor: gamma, warmup: warmupepochs, decay_patience: lrpatience,
plateau: reducelronplateau, step: multistep steplr multisteplr, alpha: rho, beta1: betas,
accumulate: accumulationsteps gradientaccumulation gradientaccumulationsteps accumulategradbatches,
folds: nsplits nfolds kfold cv, count: nsplits, validation: val valsize valfraction validationsplit,
group: groups groupby, auroc: auc rocauc, macro_f1: f1 f1score f1macro, micro_f1: f1micro, loss: valloss,
accuracy: acc valacc valaccuracy, early_stopping: earlystop, mean_average_precision: map, hamming_loss: hamming,
brier: brierscore, multi: multilabel, known: single singlelabel, class_weights: posweight, engine: backend,
seed: randomstate randomseed, channels: outchannels filters, kernel: kernelsize poolsize, stride: strides,
pad: padding, units: outfeatures dim hidden, width: hidden, rate: p prob, blocks: layers, params: parameters variables,
let: equations, numbers: constants, sizes: dims, data: dataset datasets, set: path file source, shape: inputshape,
classes: numclasses nclasses, train: trainsize ratio training, index: folds, splits: folds, scale: std stddev sigma,
init: initializer inittype, model: network, export: output onnx, learners: models methods, reference: baseline,
report: tables figures, dense: linear fc, conv2d: conv convolution, maxpool2d: maxpool maxpooling2d,
attention: attn gatedattention entropy, classifier: softmax head,
pool: mean max avgpool meanpool globalaveragepooling globalaveragepooling2d pooling, mean: avg average, maxmin: minmax,
disambiguation: crossentropy crossentropyloss ce nll, binary_cross_entropy: bce bceloss bcewithlogitsloss,
fan_in: xavier glorot kaiming he default, normal: gaussian, zeros: zero, ones: one, xla: cuda gpu,
native: cpu onnxruntime, cosine: cosineannealing cosineannealinglr, training: zscore standard, matmul: dot mm bmm,
concat: cat concatenate, clamp: clip, max: amax, transpose: t, log: ln, log_softmax: logsoftmax, stop_gradient: detach,
bag_sum: segmentsum scattersum, layer_norm: layernorm, bag_norm: instancenorm batchnorm, bag_top: topk,
random: bernoulli, sigmoid: logistic`

// Synonyms maps words of other libraries to words of specs and experiments, in the order of the table.
var Synonyms = func() map[string][]string {
	ours := map[string][]string{}
	for entry := range strings.SplitSeq(synonyms, ",") {
		word, others, _ := strings.Cut(entry, ":")
		for other := range strings.FieldsSeq(others) {
			ours[other] = append(ours[other], strings.TrimSpace(word))
		}
	}
	return ours
}()

// advice explains what replaces keys of other libraries that specs do without. The keys are written
// like those of Synonyms.
var advice = func() map[string]string {
	list := map[string]string{}
	for _, row := range []struct{ keys, text string }{
		{"test testsize testratio testfraction", "all bags that are neither for training nor for validation are for " +
			"testing: train: 0.7 leaves 30 %; to test on another file, train on all bags with train: 1 and pass the file to " +
			"miplc predict"},
		{"device gpu gpus cuda accelerator devices", "the command line chooses the device: miplc train --device cuda"},
		{"numworkers workers njobs threads pinmemory", "the command line has --threads; onnxruntime and the reader of " +
			"large data run in their own threads"},
		{"shuffle", "random splits and the order of the training bags are always shuffled, with the given seed"},
		{"hidden hiddendim hiddensize hiddenunits dropout activation nlayers numlayers", "layers are entries of blocks, " +
			"for example - dense: 128, - relu and - dropout: 0.5; miplc specs demipl-mlp shows a spec with a hidden layer"},
		{"metric metrics monitor", "all measures are computed; best names the one that chooses the epoch"},
	} {
		for key := range strings.FieldsSeq(row.keys) {
			list[key] = row.text
		}
	}
	return list
}()
