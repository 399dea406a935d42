package language

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/miplc/miplc/internal/diag"
)

// elsewhere gives for names that other libraries use those of the languages here,
// in lower case and without - and _.
var elsewhere = map[string][]string{
	"learningrate": {"lr"}, "batchsize": {"batch"}, "numepochs": {"epochs"}, "nepochs": {"epochs"}, "maxepochs": {"epochs"},
	"wd": {"weight_decay"}, "l2": {"weight_decay"}, "scheduler": {"schedule"}, "lrschedule": {"schedule"}, "lrscheduler": {"schedule"},
	"backend": {"engine"}, "device": {"engine"}, "randomstate": {"seed"}, "randomseed": {"seed"},
	"outchannels": {"channels"}, "filters": {"channels"}, "kernelsize": {"kernel"}, "poolsize": {"kernel"}, "strides": {"stride"}, "padding": {"pad"},
	"outfeatures": {"units"}, "dim": {"units"}, "hidden": {"units", "width"}, "p": {"rate"}, "prob": {"rate"},
	"layers": {"blocks"}, "parameters": {"params"}, "variables": {"params"}, "equations": {"let"}, "constants": {"numbers"}, "dims": {"sizes"},
	"dataset": {"data"}, "datasets": {"data"}, "path": {"set"}, "file": {"set"}, "source": {"set"}, "inputshape": {"shape"}, "numclasses": {"classes"}, "nclasses": {"classes"},
	"trainsize": {"train"}, "ratio": {"train"}, "folds": {"index", "splits"}, "std": {"scale"}, "stddev": {"scale"}, "sigma": {"scale"}, "initializer": {"init"}, "inittype": {"init"},
	"network": {"model"}, "training": {"train"}, "output": {"export"}, "onnx": {"export"}, "models": {"learners"}, "methods": {"learners"}, "baseline": {"reference"}, "tables": {"report"}, "figures": {"report"},

	"linear": {"dense"}, "fc": {"dense"}, "conv": {"conv2d"}, "convolution": {"conv2d"}, "maxpool": {"maxpool2d"}, "maxpooling2d": {"maxpool2d"},
	"attn": {"attention"}, "gatedattention": {"attention"}, "softmax": {"classifier"}, "head": {"classifier"}, "mean": {"pool"}, "max": {"pool"},
	"avgpool": {"pool"}, "meanpool": {"pool"}, "globalaveragepooling": {"pool"}, "globalaveragepooling2d": {"pool"}, "pooling": {"pool"},
	"avg": {"mean"}, "average": {"mean"}, "minmax": {"maxmin"},
	"crossentropy": {"disambiguation"}, "crossentropyloss": {"disambiguation"}, "ce": {"disambiguation"}, "nll": {"disambiguation"}, "entropy": {"attention"},
	"xavier": {"fan_in"}, "glorot": {"fan_in"}, "kaiming": {"fan_in"}, "he": {"fan_in"}, "default": {"fan_in"}, "gaussian": {"normal"}, "zero": {"zeros"}, "one": {"ones"},
	"cuda": {"xla"}, "gpu": {"xla"}, "cpu": {"ort"}, "onnxruntime": {"ort"}, "cosineannealing": {"cosine"}, "zscore": {"training"}, "standard": {"training"},

	"dot": {"matmul"}, "mm": {"matmul"}, "bmm": {"matmul"}, "cat": {"concat"}, "concatenate": {"concat"}, "clip": {"clamp"}, "amax": {"max"},
	"t": {"transpose"}, "ln": {"log"}, "logsoftmax": {"log_softmax"}, "detach": {"stop_gradient"}, "segmentsum": {"bag_sum"}, "scattersum": {"bag_sum"}, "logistic": {"sigmoid"},
}

// suggest is the known word that was probably meant: the one that other libraries
// call so, or the one nearest to a slip of the keyboard; "" for none.
func suggest(word string, known []string) string {
	plain := strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(word))
	for _, meant := range elsewhere[plain] {
		for _, k := range known {
			if k == meant && k != word {
				return k
			}
		}
	}
	if head, rest, found := strings.Cut(word, ":"); found { // a blank is missing
		if slices.Contains(known, head) {
			return head + ": " + rest
		}
	}
	return diag.Suggest(word, known)
}

// strange notes a character that only looks like one of YAML's.
func strange(d diag.Diagnostic, text string) diag.Diagnostic {
	for _, c := range text {
		switch {
		case strings.ContainsRune("“”„‘’‚«»", c):
			return d.WithNote("%c is no quote of YAML: write \" or '", c)
		case strings.ContainsRune("‐‑‒–—−", c):
			return d.WithNote("%c is no minus: write -", c)
		case c > unicode.MaxASCII && (unicode.IsSpace(c) || unicode.Is(unicode.Cf, c)):
			return d.WithNote("it holds the character U+%04X, which only looks like a blank: write a plain one", c)
		}
	}
	return d
}

var (
	fraction   = regexp.MustCompile(`^([0-9.]+) ?/ ?([0-9.]+)$`)
	powerOfTen = regexp.MustCompile(`^10(?:\^|\*\*)([-+]?[0-9]+)$`)
)

// plainNumber writes a number as the languages do that was written otherwise, such
// as 5.0, 1_000, 0,01, 70%, 1/3 or 10^-3; "" where text is none.
func plainNumber(text string, whole bool) string {
	v, err := strconv.ParseFloat(strings.NewReplacer("_", "", ",", ".", "%", "").Replace(text), 64)
	if strings.HasSuffix(text, "%") {
		v /= 100
	}
	if m := fraction.FindStringSubmatch(text); m != nil {
		a, erra := strconv.ParseFloat(m[1], 64)
		b, errb := strconv.ParseFloat(m[2], 64)
		if v, err = a/b, erra; err == nil {
			err = errb
		}
	}
	if m := powerOfTen.FindStringSubmatch(text); m != nil {
		v, err = strconv.ParseFloat("1e"+m[1], 64)
	}
	if err != nil || math.IsInf(v, 0) || math.IsNaN(v) || whole && v != math.Trunc(v) || math.Abs(v) > 1e15 {
		return ""
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// plainTruth is true or false where text means it.
func plainTruth(text string) string {
	switch strings.ToLower(text) {
	case "true", "yes", "on", "1", "y":
		return "true"
	case "false", "no", "off", "0", "n", "none":
		return "false"
	}
	return ""
}
