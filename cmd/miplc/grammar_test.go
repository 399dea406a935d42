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
	"regexp"
	"strings"

	"github.com/miplc/miplc/internal/testkit/modeltest"
)

// grammar generates user input: specs, data and flags, most of them nearly valid.
type grammar struct{ *rand.Rand }

// rules lists the alternatives of each word in angle brackets, separated by spaces. ␣ is a space and ε nothing.
var rules = map[string]string{
	// numbers as users write them, usually plausible ones
	"number": "<plain> <plain> <plain> <plain> <plain> <odd>",
	"plain":  "1 2 3 0.5 0.01 1e-3 .5 5. 10",
	"odd": "0 -1 -0 1e-400 1e400 NaN .inf -.Inf 0x10 010 1_000 +3 1,5 2**31 9223372036854775807 99999999999999999999 " +
		"1e9 1048576 1000000 1e308 4294967296 0.1.2 ½ ١ 12:30:45 1e --3 True",
	// arbitrary text in place of a YAML value
	"value": "<number> <number> yes No on off ~ null '' \"3\" '0.1' true TRUE auto adam [1,␣2] [] {} {a:␣1} [[1]] " +
		"!!str␣3 &a␣1 *a |\\n␣␣␣␣text >-\\n␣␣␣␣1 größe 日本 \U0001F600 \"\\x00\" \"\\u001b[31m\" nn.Linear(20,␣5) " +
		"x:␣y -␣1 @x `x` %x a\tb #␣nothing",
	"line": "<indent><bullet><key><colon><value>", "indent": "ε ␣␣ ␣␣␣␣ ␣␣␣␣␣␣", "bullet": "ε ε -␣",
	"key": "name epochs lr learning_rate batch_size optimizer model loss train data Train MODEL weights extends seed " +
		"device hidden_dim layers параметр export learner units << ? classes",
	"colon": ":␣ :␣ : ␣:␣ ␣=␣",
	"atom":  "X H z a p C V S w lambda t T d k 1 <number> nope self.x x[0] 's' X.T",
	"op":    "␣+␣ ␣-␣ * / ␣**␣ ␣^␣ ␣@␣ ␣%␣ ␣&&␣",
	"function": "exp log tanh sigmoid softmax log_softmax relu sum mean max matmul bag_sum bag_softmax bag_mean bag_max " +
		"bag_min bag_count of_bag clamp concat transpose masked_softmax sqrt abs erf bag_attention torch.exp F.softmax",
	"axis": "0 1 -1 dim=1",
	// specs that train within seconds on small datasets
	"shipped": "quickstart demipl demipl-equations demipl-program demipl-md proden-mean rc-maxmin lws-mean-mlp " +
		"pl-aggd-mean miplgp elimipl miplma",
	"block": "dense:␣<number> dense:␣16 relu tanh dropout:␣<number> dropout:␣0.3 conv2d:␣{channels:␣2,␣kernel:␣3} " +
		"maxpool2d:␣2 flatten Linear:␣16 attention:␣{hidden:␣<number>} batchnorm",
	"pool": "attention mean max maxmin avg", "link": "softmax bounded_sigmoid sigmoid",
	"init": "zeros ones fan_in normal xavier", "width": "4 <number>", "p": "softmax(matmul(z,␣C)) <equation4>",
	"spec": "spec.yaml spec.yaml spec.yaml <shipped> base.yaml nothing.yaml bags.csv images ε",
	"data": "bags.csv bags.csv bags.csv packed.csv.gz copy.npz drawn.npz noise.npz noise.mat spec.yaml images " +
		"nothing.csv ε",
	"setting": "train.lr train.batch train.momentum train.weight_decay data.generated.bags data.generated.features " +
		"data.generated.classes data.generated.max_size data.normalize data.split.train data.split.seed train.seed " +
		"train.schedule train.eval_every train.checkpoint weights.schedule loss.attention model.blocks.attention.hidden " +
		"train loss model.blocks extends nope.nope ε",
	"set":    "data.set=<data> <setting>=<value> <setting>=<value> <setting>=<value> <setting><value>",
	"epochs": "1 2 3 <value>", "out": "run run run run other images bags.csv",
	"engine": "gorgonia native auto ort native gorgonia auto torch",
	"built":  "built run images", "backend": "onnx-go onnxruntime tf", "predicted": "out.csv bags.csv run",
	"model": "run run/model.onnx built built/model.onnx noise.onnx spec.yaml nothing",
	"synth": "prototypes prototypes mnist-mipl nope", "drawn": "drawn.npz drawn.csv drawn.csv.gz drawn.txt bags.csv",
	"copy": "copy.npz copy.csv copy.csv.gz bags.csv copy.mat", "labels": "known multi x", "classes": "cat,dog a,a ,",
	"crowd": "candidates.csv a.csv crowd.npz", "outside": "add drop x", "generator": "row sbn kmeansseg sift x",
	"resize": "32 0 32x40 9999999", "experiment": "experiment.yaml experiment.yaml spec.yaml nope",
	"folder": "cells run nothing fresh images ε", "other": "version specs schema help nope --help validate data",
	"slip": "NaN ε inf 1e999 x 1,5 \" 0x1p-2 ␣1␣ -", "share": "0.5 1 ε <number>",
	"stray": "--nope -x -- --set --json=maybe -o",
}

// commandLines are the commands with their arguments. Flags after the bar are sometimes given.
var commandLines = []string{
	"validate <spec> | --set=<set>", "validate <spec> | --set=<set>",
	"train <spec> -o <out> --engine <engine> --set train.epochs=2 --set data.set=bags.csv | --force --resume " +
		"--threads=<number> --seeds=1,2 --grid=train.lr=0.1,<number> --device=cpu --device=gpu --set=<set>",
	"train <shipped> -o <out> --engine <engine> --set train.epochs=1 --set data.set=<data> | --force --resume",
	"train <spec> -o <out> --engine <engine> --set train.epochs=3 | --force --resume --set=<set>",
	"build <spec> -o <built> | --force --sample-steps=<number> --set=<set>",
	"predict <model> <data> | --bag=<number> --backend=<backend> -o=<predicted> --force",
	"parity <model> | --sizes=<number> --sizes=1,7 --seed=<number>",
	"data synth <synth> -o <drawn> | --bags=<number> --class-count=<number> --classes=<classes> --features=<number> " +
		"--max-size=<number> --min-size=<number> --noise=<number> --positives=<number> --r=<number> --seed=<number> --force",
	"data import <data> <copy> | --labels=<labels> --force", "data inspect <data> | --bag=<number> --svg=bag.svg --force",
	"data crowd a.csv b.csv c.csv -o <crowd> | --bags=bags.csv --classes=A,B --outside=<outside> --force",
	"data bags images -o images.npz --generator <generator> | --resize=<resize> --r=<number> --grid=<number> " +
		"--max-pixels=<number> --patch=<number> --step=<number> --workers=<number> --unlabelled --force",
	"experiment <experiment> -o cells --set splits.count=1 | --jobs=<number> --splits=<number> --r=<number>",
	"report <folder>", "init <folder>", "<other>",
}

var word = regexp.MustCompile(`<(\w+)>`)

// of expands the words of a text.
func (g grammar) of(text string) string {
	for word.MatchString(text) {
		text = word.ReplaceAllStringFunc(text, func(name string) string {
			if level, found := strings.CutPrefix(strings.Trim(name, "<>"), "equation"); found {
				return g.equation(int(level[0] - '0'))
			}
			list := strings.Fields(strings.ReplaceAll(rules[strings.Trim(name, "<>")], "\t", "→"))
			return list[g.IntN(len(list))]
		})
	}
	return strings.NewReplacer("␣", " ", "ε", "", "→", "\t", `\n`, "\n").Replace(text)
}

func (g grammar) chance(p float64) bool { return g.Float64() < p }

// equation returns the form of an expression, usually of a valid one.
func (g grammar) equation(depth int) string {
	if depth == 0 || g.chance(0.2) {
		return "<atom>"
	}
	sub := fmt.Sprintf("<equation%d>", depth-1)
	forms := []string{"(" + sub + ")", "-" + sub, sub + "<op>" + sub, "<function>(" + sub + ")",
		"<function>(" + sub + ",␣" + sub + ")", "<function>(" + sub + ",␣<axis>)"}
	return forms[g.IntN(len(forms))]
}

// spec returns the text of a spec. It is valid, or has random equations, and habits may change it.
func (g grammar) spec() string {
	var text string
	switch g.IntN(5) {
	case 0:
		text = "name: mine\nextends: <shipped>\n"
	case 1, 2:
		return g.habits(modeltest.RandomSpec(g.Uint64N(100_000)))
	case 3:
		text = "name: blocks\nmodel:\n  blocks:\n" + strings.Repeat("    - <block>\n", g.IntN(6)) +
			"    - attention\n    - pool: <pool>\n    - classifier: <link>\n"
	default:
		text = "name: equations\nmodel:\n  sizes: {m: <width>}\n  params:\n    V: {shape: [d, m]}\n    C: {shape: [m, k], " +
			"init: <init>}\n  let:\n    q: <equation3>\n    s: sum(matmul(X, V), 1)\n    a: bag_softmax(s)\n    z: bag_sum(a " +
			"* matmul(X, V))\n    p: <p>\nloss:\n  - disambiguation\n" +
			strings.Repeat("  - equation: {name: extra, value: <equation3>}\n", g.IntN(2))
	}
	return g.habits(g.of(text))
}

// habits makes some typical mistakes in a text, or none.
func (g grammar) habits(text string) string {
	if g.chance(0.6) {
		return text
	}
	for range 1 + g.IntN(3) {
		lines := strings.Split(text, "\n")
		at := g.IntN(len(lines))
		key, _, _ := strings.Cut(lines[at], ": ")
		edits := []func() string{
			func() string { return "<line>" }, func() string { return "<line>\n" + lines[at] }, func() string { return "" },
			func() string { return lines[at] + "  # comment: {x" }, func() string { return strings.ToUpper(lines[at]) },
			func() string { return key + ": <value>" }, func() string { return key + ": <value>" },
			func() string { return strings.Repeat(lines[at]+" ", 1+g.IntN(200)) },
			func() string { return strings.Replace(lines[at], " ", "", 1) }, func() string { return text },
		}
		switch n := g.IntN(len(edits) + 5); n {
		default:
			lines[at] = g.of(edits[n]())
			text = strings.Join(lines, "\n")
		case len(edits):
			text = strings.Join(lines[:at], "\n")
		case len(edits) + 1:
			text = strings.ReplaceAll(text, "\n", "\r\n")
		case len(edits) + 2:
			text = "\ufeff" + text
		case len(edits) + 3:
			text = strings.ReplaceAll(text, "  ", "\t")
		case len(edits) + 4:
			raw := append([]byte(text), 0)
			raw[g.IntN(len(raw))] = byte(g.IntN(256))
			text = string(raw)
		}
	}
	return text
}

// bags returns a dataset as CSV, usually a valid one.
func (g grammar) bags() string {
	classes, features, slips := 2+g.IntN(3), 1+g.IntN(5), 0.0
	head := "bag,label,candidates"
	if g.chance(0.3) {
		slips = 0.003
		heads := []string{"bag,candidates,label", "Bag,Label,Candidates", "bag;label;candidates", "",
			"# classes: 0 1 2 3 4 5\n" + head, "# classes: a b\n" + head, "#\n" + head, "\ufeff" + head}
		if g.chance(0.3) {
			head = heads[g.IntN(len(heads))]
		}
	}
	var b strings.Builder
	b.WriteString(head)
	for f := range features {
		fmt.Fprintf(&b, ",f%d", f+1)
	}
	b.WriteString("\n")
	for bag := range 8 + g.IntN(40) {
		label := bag % classes
		for i := range 1 + g.IntN(5) {
			fields := []string{fmt.Sprint(bag + 1), "", ""}
			if i == 0 {
				fields[1], fields[2] = fmt.Sprint(label), fmt.Sprintf("%d %d", label, (label+1)%classes)
			}
			for range features {
				fields = append(fields, fmt.Sprintf("%.3f", g.NormFloat64()))
			}
			for f := range fields {
				if g.chance(slips) {
					fields[f] = g.of([]string{"<slip>", "<value>"}[g.IntN(2)])
				}
			}
			if g.chance(slips) {
				fields = fields[:g.IntN(len(fields))]
			}
			b.WriteString(strings.Join(fields, ",") + "\n")
		}
	}
	return b.String()
}

// files writes the input files of a case.
func (g grammar) files(dir string) error {
	var packed, picture bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write([]byte(g.bags())); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 1+g.IntN(90), 1+g.IntN(90)))); err != nil {
		return err
	}
	noise := make([]byte, g.IntN(2000))
	for i := range noise {
		noise[i] = byte(g.IntN(256))
	}
	worker := []string{"image,A,B,C\n", "image,A,B,C\n", "image,A,B\n", "A,B,C\n"}[g.IntN(4)]
	for i := range 1 + g.IntN(5) {
		worker += fmt.Sprintf("%d.png,<share>,<share>,<share>\n", i)
	}
	experiment := "name: small\ndata:\n  - {name: P, synth: {set: prototypes, bags: <number>0, features: 5}, " +
		"r: [<plain>]}\nlearners:\n  - {name: demipl, spec: <shipped>, set: {train.epochs: " +
		"<epochs>}}\nsplits: {count: <plain>}\n"
	for name, text := range map[string]string{
		"spec.yaml": g.spec(), "base.yaml": g.spec(), "bags.csv": g.bags(),
		"packed.csv.gz": packed.String()[:packed.Len()-g.IntN(2)*g.IntN(20)],
		"noise.npz":     string(noise), "noise.mat": string(noise), "noise.onnx": string(noise),
		"a.csv": g.of(worker), "b.csv": g.of(worker), "c.csv": g.of(worker), "experiment.yaml": g.habits(g.of(experiment)),
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

// command returns a command line.
func (g grammar) command() []string {
	// The commands of a folder run in sequence: most are more useful after a training.
	line := commandLines[g.IntN(len(commandLines))]
	if g.chance(0.3) {
		line = commandLines[2+g.IntN(3)]
	}
	required, optional, _ := strings.Cut(line, " | ")
	var args []string
	for _, field := range strings.Fields(required) {
		args = append(args, g.of(field))
	}
	flags := strings.Fields(optional)
	for _, flag := range flags {
		if g.chance(0.6 / float64(len(flags))) {
			args = append(args, g.of(flag))
		}
	}
	switch {
	case g.chance(0.01):
		args = append(args, strings.Repeat("a", 5000))
	case g.chance(0.02):
		args = append(args, g.of("<stray>"))
	}
	return args
}
