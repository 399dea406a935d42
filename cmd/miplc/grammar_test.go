// Generated user input for the tests of commands: specs, data and flags, most of them nearly valid.

package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"image"
	"image/png"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/miplc/miplc/internal/testkit/modeltest"
)

// grammar generates user input: specs, data and flags, most of them nearly valid.
type grammar struct{ *rand.Rand }

func (g grammar) one(words ...string) string { return words[g.IntN(len(words))] }
func (g grammar) chance(p float64) bool      { return g.Float64() < p }

// shipped lists specs that train within seconds on small datasets.
var shipped = []string{"quickstart", "demipl", "demipl-equations", "demipl-program", "demipl-md", "proden-mean",
	"rc-maxmin", "lws-mean-mlp", "pl-aggd-mean", "miplgp", "elimipl", "miplma"}

// number returns a number as users write them, usually a plausible one.
func (g grammar) number() string {
	if g.chance(0.85) {
		return g.one("1", "2", "3", "0.5", "0.01", "1e-3", ".5", "5.", "10")
	}
	return g.one("0", "-1", "-0", "1e-400", "1e400", "NaN", ".inf", "-.Inf", "0x10", "010", "1_000", "+3", "1,5", "2**31",
		"9223372036854775807",
		"99999999999999999999", "1e9", "1048576", "1000000", "1e308", "4294967296", "0.1.2", "½", "١", "12:30:45", "1e",
		"--3", "True")
}

// value returns arbitrary text in place of a YAML value.
func (g grammar) value() string {
	return g.one(g.number(), g.number(), "yes", "No", "on", "off", "~", "null", "''", `"3"`, "'0.1'", "true", "TRUE",
		"auto", "adam", "[1, 2]", "[]", "{}", "{a: 1}",
		"[[1]]", "!!str 3", "&a 1", "*a", "|\n    text", ">-\n    1", "größe", "日本", "\U0001F600", `"\x00"`, `"\u001b[31m"`,
		"nn.Linear(20, 5)", "x: y", "- 1", "@x", "`x`", "%x", "a\tb", "# nothing")
}

// line returns a line of a spec.
func (g grammar) line() string {
	key := g.one("name", "epochs", "lr", "learning_rate", "batch_size", "optimizer", "model", "loss", "train", "data",
		"Train", "MODEL", "weights", "extends", "seed", "device", "hidden_dim", "layers", "параметр", "export", "learner",
		"units", "<<", "?", "classes")
	return strings.Repeat(" ", 2*g.IntN(4)) + g.one("", "", "- ") + key + g.one(": ", ": ", ":", " : ", " = ") + g.value()
}

// equation returns an expression, usually a valid one.
func (g grammar) equation(depth int) string {
	if depth == 0 || g.chance(0.2) {
		return g.one("X", "H", "z", "a", "p", "C", "V", "S", "w", "lambda", "t", "T", "d", "k", "1", g.number(), "nope",
			"self.x", "x[0]", "'s'", "X.T")
	}
	sub := func() string { return g.equation(depth - 1) }
	switch g.IntN(6) {
	case 0:
		return "(" + sub() + ")"
	case 1:
		return "-" + sub()
	case 2:
		return sub() + g.one(" + ", " - ", "*", "/", " ** ", " ^ ", " @ ", " % ", " && ") + sub()
	}
	name := g.one("exp", "log", "tanh", "sigmoid", "softmax", "log_softmax", "relu", "sum", "mean", "max", "matmul",
		"bag_sum", "bag_softmax", "bag_mean", "bag_max", "bag_min", "bag_count", "of_bag", "clamp", "concat", "transpose",
		"masked_softmax", "sqrt", "abs", "erf", "bag_attention", "torch.exp", "F.softmax")
	args := []string{sub()}
	for g.chance(0.4) {
		args = append(args, g.one(sub(), "0", "1", "-1", "dim=1"))
	}
	return name + "(" + strings.Join(args, ", ") + ")"
}

// spec returns the text of a spec. It is valid, or has random equations, and habits may change it.
func (g grammar) spec() string {
	var text string
	switch g.IntN(5) {
	case 0:
		text = "name: mine\nextends: " + g.one(shipped...) + "\n"
	case 1, 2:
		text = modeltest.RandomSpec(g.Uint64N(100_000))
	case 3:
		text = "name: blocks\nmodel:\n  blocks:\n"
		for range g.IntN(6) {
			text += "    - " + g.one("dense: "+g.number(), "dense: 16", "relu", "tanh", "dropout: "+g.number(), "dropout: 0.3",
				"conv2d: {channels: 2, kernel: 3}", "maxpool2d: 2", "flatten", "Linear: 16", "attention: {hidden: "+g.number()+"}",
				"batchnorm") + "\n"
		}
		text += "    - attention\n    - pool: " + g.one("attention", "mean", "max", "maxmin", "avg") +
			"\n    - classifier: " + g.one("softmax", "bounded_sigmoid", "sigmoid") + "\n"
	default:
		text = "name: equations\nmodel:\n  sizes: {m: " + g.one("4", g.number()) +
			"}\n  params:\n    V: {shape: [d, m]}\n    C: {shape: [m, k], init: " + g.one("zeros", "ones", "fan_in", "normal",
			"xavier") + "}\n  let:\n"
		text += "    q: " + g.equation(3) + "\n    s: sum(matmul(X, V), 1)\n    a: bag_softmax(s)\n    z: bag_sum(a * " +
			"matmul(X, V))\n    p: " + g.one("softmax(matmul(z, C))", g.equation(4)) + "\n"
		text += "loss:\n  - disambiguation\n"
		if g.chance(0.5) {
			text += "  - equation: {name: extra, value: " + g.equation(3) + "}\n"
		}
	}
	return g.habits(text)
}

// habits makes some typical mistakes in a text, or none.
func (g grammar) habits(text string) string {
	if g.chance(0.6) {
		return text
	}
	for range 1 + g.IntN(3) {
		lines := strings.Split(text, "\n")
		at := g.IntN(len(lines))
		switch g.IntN(16) {
		case 0:
			text = strings.ReplaceAll(text, "\n", "\r\n")
		case 1:
			text = "\ufeff" + text
		case 2:
			text = strings.ReplaceAll(text, "  ", "\t")
		case 3:
			lines[at] = g.line()
		case 4:
			lines = append(lines[:at], append([]string{g.line()}, lines[at:]...)...)
		case 5:
			lines = append(lines[:at], lines[min(at+1, len(lines)):]...)
		case 6:
			lines[at] += "  # comment: {x"
		case 7:
			lines[at] = strings.ToUpper(lines[at])
		case 8, 9, 10:
			if key, _, found := strings.Cut(lines[at], ": "); found {
				lines[at] = key + ": " + g.value()
			}
		case 11:
			lines[at] = strings.Repeat(lines[at]+" ", 1+g.IntN(200))
		case 12:
			lines = lines[:at]
		case 13:
			lines = append(lines, lines...)
		case 14:
			raw := []byte(text)
			raw[g.IntN(len(raw))] = byte(g.IntN(256))
			text = string(raw)
		case 15:
			lines[at] = strings.Replace(lines[at], " ", "", 1)
		}
		if joined := strings.Join(lines, "\n"); joined != strings.ReplaceAll(text, "\r", "") &&
			!strings.ContainsAny(text, "\r\t\ufeff") && joined != "" {
			text = joined
		}
		if text == "" {
			return text
		}
	}
	return text
}

// bags returns a dataset as CSV, usually a valid one.
func (g grammar) bags() string {
	classes, features := 2+g.IntN(3), 1+g.IntN(5)
	var b strings.Builder
	if g.chance(0.03) {
		b.WriteString(g.one("# classes: 0 1 2 3 4 5\n", "# classes: a b\n", "#\n", "\ufeff"))
	}
	slips := 0.0
	if g.chance(0.3) {
		slips = 0.003
	}
	head := "bag,label,candidates"
	if slips > 0 && g.chance(0.3) {
		head = g.one("bag,candidates,label", "Bag,Label,Candidates", "bag;label;candidates", "")
	}
	b.WriteString(head)
	for f := range features {
		fmt.Fprintf(&b, ",f%d", f+1)
	}
	b.WriteString("\n")
	number := func() string {
		if g.chance(slips) {
			return g.one("NaN", "", "inf", "1e999", "x", "1,5", "\"", "0x1p-2", " 1 ", "-")
		}
		return fmt.Sprintf("%.3f", g.NormFloat64())
	}
	for bag := range 8 + g.IntN(40) {
		label := bag % classes
		for i := range 1 + g.IntN(5) {
			fields := []string{fmt.Sprint(bag + 1), "", ""}
			if i == 0 {
				fields[1], fields[2] = fmt.Sprint(label), fmt.Sprintf("%d %d", label, (label+1)%classes)
			}
			if g.chance(slips) {
				fields[g.IntN(3)] = g.value()
			}
			for range features {
				fields = append(fields, number())
			}
			if g.chance(slips) {
				fields = fields[:g.IntN(len(fields))]
			}
			b.WriteString(strings.Join(fields, ",") + "\n")
		}
	}
	return b.String()
}

// worker returns the file of an annotator.
func (g grammar) worker() string {
	text := g.one("image,A,B,C\n", "image,A,B,C\n", "image,A,B\n", "A,B,C\n")
	for i := range 1 + g.IntN(5) {
		text += fmt.Sprintf("%d.png,%s,%s,%s\n", i, g.one("0.5", "1", "", g.number()), g.one("0.5", "0"), g.one("", "0.2"))
	}
	return text
}

// files writes the input files of a case.
func (g grammar) files(dir string) error {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write([]byte(g.bags())); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 1+g.IntN(90), 1+g.IntN(90)))); err != nil {
		return err
	}
	noise := make([]byte, g.IntN(2000))
	for i := range noise {
		noise[i] = byte(g.IntN(256))
	}
	experiment := "name: small\ndata:\n  - {name: P, synth: {set: prototypes, bags: " + g.one("30", g.number()) +
		", features: 5}, r: [" + g.one("1", g.number()) + "]}\n" +
		"learners:\n  - {name: demipl, spec: " + g.one(shipped...) + ", set: {train.epochs: " + g.one("2", "3", g.value()) +
		"}}\nsplits: {count: " + g.one("1", "2", g.number()) + "}\n"
	for name, text := range map[string]string{
		"spec.yaml": g.spec(), "base.yaml": g.spec(), "bags.csv": g.bags(),
		"packed.csv.gz": packed.String()[:packed.Len()-g.IntN(2)*g.IntN(20)],
		"noise.npz":     string(noise), "noise.mat": string(noise), "noise.onnx": string(noise),
		"a.csv": g.worker(), "b.csv": g.worker(), "c.csv": g.worker(), "experiment.yaml": g.habits(experiment),
		"images/A/1.png": picture.String(), "images/B/2.png": picture.String()[:picture.Len()-g.IntN(2)*g.IntN(20)],
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (g grammar) specName() string {
	return g.one("spec.yaml", "spec.yaml", "spec.yaml", g.one(shipped...), "base.yaml", "nothing.yaml", "bags.csv",
		"images", "")
}

func (g grammar) dataName() string {
	return g.one("bags.csv", "bags.csv", "bags.csv", "packed.csv.gz", "copy.npz", "drawn.npz", "noise.npz", "noise.mat",
		"spec.yaml", "images", "nothing.csv", "")
}

func (g grammar) set() []string {
	key := g.one("data.set", "train.lr", "train.batch", "train.momentum", "train.weight_decay", "data.generated.bags",
		"data.generated.features", "data.generated.classes", "data.generated.max_size", "data.normalize", "data.split.train",
		"data.split.seed", "train.seed", "train.schedule", "train.eval_every", "train.checkpoint", "weights.schedule",
		"loss.attention", "model.blocks.attention.hidden", "train", "loss", "model.blocks", "extends", "nope.nope", "")
	value := g.value()
	if key == "data.set" {
		value = g.dataName()
	}
	return []string{"--set", key + g.one("=", "=", "=", "") + value}
}

// commands returns the command lines of a case in the order in which they run.
func (g grammar) commands() [][]string {
	var list [][]string
	for range 2 + g.IntN(4) {
		list = append(list, g.command())
	}
	return list
}

func (g grammar) command() []string {
	var args []string
	short := func() []string { return []string{"--set", "train.epochs=" + g.one("1", "2", "3")} }
	switch g.IntN(14) {
	case 0, 1:
		args = append([]string{"validate"}, g.specName())
	case 2, 3, 4:
		spec := g.specName()
		if g.chance(0.4) {
			spec = g.one(shipped...)
		}
		args = append([]string{"train", spec, "-o", g.one("run", "run", "run", "run", "other", "images", "bags.csv"),
			"--engine", g.one("gorgonia", "native", "auto", "ort", "native", "gorgonia", "auto", "torch")}, short()...)
		if g.chance(0.5) || slices.Contains(shipped, spec) {
			args = append(args, "--set", "data.set="+g.one("bags.csv", g.dataName()))
		}
		args = append(args, g.some("--force", "--resume", "--threads="+g.number(), "--seeds=1,2", "--grid=train.lr=0.1,"+
			g.number(), "--device="+g.one("cpu", "gpu"))...)
	case 5:
		args = append([]string{"build", g.specName(), "-o", g.one("built", "run", "images")},
			g.some("--force", "--sample-steps="+g.number())...)
	case 6:
		args = append([]string{"predict", g.one("run", "run/model.onnx", "built/model.onnx", "noise.onnx", "spec.yaml"),
			g.dataName()}, g.some("--bag="+g.number(), "--backend="+g.one("onnx-go", "onnxruntime", "tf"), "-o="+g.one("out.csv",
			"bags.csv", "run"), "--force")...)
	case 7:
		args = append([]string{"parity", g.one("run", "built", "run/model.onnx", "noise.onnx", "nothing")},
			g.some("--sizes="+g.number(), "--sizes=1,7", "--seed="+g.number())...)
	case 8:
		args = append([]string{"data", "synth", g.one("prototypes", "prototypes", "mnist-mipl", "nope"), "-o",
			g.one("drawn.npz", "drawn.csv", "drawn.csv.gz", "drawn.txt", "bags.csv")},
			g.some("--bags="+g.number(), "--class-count="+g.number(), "--classes="+g.one("cat,dog", "a,a", ","), "--features="+
				g.number(), "--max-size="+g.number(), "--min-size="+g.number(), "--noise="+g.number(), "--positives="+g.number(),
				"--r="+g.number(), "--seed="+g.number(), "--force")...)
	case 9:
		args = append([]string{"data", "import", g.dataName(), g.one("copy.npz", "copy.csv", "copy.csv.gz", "bags.csv",
			"copy.mat")}, g.some("--labels="+g.one("known", "multi", "x"), "--force")...)
	case 10:
		args = append([]string{"data", "inspect", g.dataName()}, g.some("--bag="+g.number(), "--svg=bag.svg", "--force")...)
	case 11:
		args = append([]string{"data", "crowd", "a.csv", "b.csv", "c.csv", "-o", g.one("candidates.csv", "a.csv",
			"crowd.npz")}, g.some("--bags=bags.csv", "--classes=A,B", "--outside="+g.one("add", "drop", "x"), "--force")...)
	case 12:
		args = append([]string{"data", "bags", "images", "-o", "images.npz", "--generator", g.one("row", "sbn", "kmeansseg",
			"sift", "x")}, g.some("--resize="+g.one("32", "0", "32x40", "9999999"), "--r="+g.number(), "--grid="+g.number(),
			"--max-pixels="+g.number(), "--patch="+g.number(), "--step="+g.number(), "--workers="+g.number(), "--unlabelled",
			"--force")...)
	default:
		switch g.IntN(5) {
		case 0, 1:
			args = append([]string{"experiment", g.one("experiment.yaml", "experiment.yaml", "spec.yaml", "nope"), "-o", "cells",
				"--set", "splits.count=1"}, g.some("--jobs="+g.number(), "--splits="+g.number(), "--r="+g.number())...)
		case 2:
			args = []string{"report", g.one("cells", "run", "nothing")}
		case 3:
			args = []string{"init", g.one("fresh", "images", "run", "")}
		default:
			args = []string{g.one("version", "specs", "schema", "help", "nope", "--help", "validate", "data")}
		}
	}
	if (args[0] == "validate" || args[0] == "train" || args[0] == "build") && g.chance(0.2) {
		args = append(args, g.set()...)
	}
	if g.chance(0.03) {
		args = append(args, g.one("--nope", "-x", "--", "--set", "--json=maybe", "-o", "\x00", strings.Repeat("a", 5000)))
	}
	return args
}

// some returns a random selection of flags.
func (g grammar) some(flags ...string) []string {
	var list []string
	for _, f := range flags {
		if g.chance(0.6 / float64(len(flags))) {
			list = append(list, f)
		}
	}
	return list
}
