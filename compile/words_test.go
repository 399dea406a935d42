// Every word of the language is lowered.

package compile_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/language"
)

// templates are specs with a placeholder for the word of a setting that compile must distinguish.
var templates = map[string]string{
	"blocks.attention.kind":   "name: t\nmodel: {blocks: [attention: {kind: WORD}, pool: attention, classifier]}\n",
	"blocks.attention.gates":  "name: t\nmodel: {blocks: [attention: {gates: WORD}, pool: attention, classifier]}\n",
	"blocks.attention.scorer": "name: t\nmodel: {blocks: [attention: {scorer: WORD}, pool: attention, classifier]}\n",
	"blocks.pool.kind": "name: t\nmodel: {blocks: [attention, pool: WORD, classifier]}\nloss: [disambiguation, " +
		"attention]\n",
	"blocks.classifier.link": "name: t\nmodel: {blocks: [pool: mean, classifier: WORD]}\nLABELS",
	"params.init": "name: t\nmodel: {params: {C: {shape: [h, k], init: WORDSCALE}}, let: {p: " +
		"\"softmax(matmul(bag_sum(X), C))\"}}\n",
	"train.optimizer": "name: t\nmodel: {blocks: [pool: mean, classifier]}\ntrain: {optimizer: WORD, lr: 0.1, " +
		"weight_decay: 0.1}\n",
	"weights.order": "name: t\nmodel: {blocks: [pool: mean, classifier]}\nweights: {order: WORD}\n",
}

// elsewhere are settings that other packages must distinguish.
var elsewhere = map[string]bool{
	"data.normalize": true, "data.labels": true, "data.encoder.export": true, "data.encoder.input.order": true,
	"weights.schedule": true, "train.schedule": true, "train.best": true, "train.decay_measure": true,
	"train.sampling": true, "train.engine": true, "export.signature": true, "search.measure": true,
}

// Each word of the language compiles to a different program.
func TestEveryWordIsLowered(t *testing.T) {
	for path, words := range language.Choices() {
		if elsewhere[path] || strings.HasPrefix(path, "learners.") {
			continue
		}
		template := templates[path]
		if template == "" {
			t.Errorf("no test of the words of %s: %v", path, words)
			continue
		}
		seen := map[string]string{}
		for _, word := range words {
			scale := ""
			if word == "normal" || word == "uniform" || word == "constant" {
				scale = ", scale: 0.3"
			}
			labels := ""
			if word == "sigmoid" {
				labels = "data: {labels: multi}\n"
			}
			p, err := parse(t, strings.NewReplacer("WORD", word, "SCALE", scale, "LABELS", labels).Replace(template))
			if err != nil {
				t.Errorf("%s: %s: %v", path, word, err)
				continue
			}
			text := fmt.Sprint(p.Params) + p.Train.Text() + p.Infer.Text()
			if p.WeightUpdate != nil {
				text += p.WeightUpdate.Text()
			}
			step, err := compile.Step(p)
			if err != nil {
				t.Fatal(err)
			}
			text += step.Text()
			if other := seen[text]; other != "" {
				t.Errorf("%s: %s is the same as %s", path, word, other)
			}
			seen[text] = word
		}
	}
}

// Each block, loss term and function of the language has a lowering.
func TestEveryBlockAndFunctionIsLowered(t *testing.T) {
	for _, term := range language.LossTerms {
		written := term.Name
		if written == "equation" {
			written = "equation: {name: e, value: mean(p)}"
		}
		found := false
		for labels, link := range map[string]string{"": "softmax", ", labels: multi": "sigmoid"} {
			spec, err := language.Parse("test.yaml", []byte("name: t\ndata: {set: t.npz"+labels+
				"}\nmodel: {blocks: [attention, pool: attention, classifier: "+link+"]}\nloss: ["+written+"]\n"))
			if err != nil {
				continue // the term is for bags with another number of labels
			}
			found = true
			if _, err := compile.Compile(spec, compile.Signature{Instance: []int{7}, Classes: 5}); err != nil {
				t.Errorf("loss term %s: %v", term.Name, err)
			}
		}
		if !found {
			t.Errorf("no spec has the loss term %s", term.Name)
		}
	}
	arguments := map[string]string{"conv2d": ": {channels: 2, kernel: 1}", "maxpool2d": ": 1", "dense": ": 3",
		"dropout": ": 0.5", "pool": ": attention"}
	for _, b := range language.Blocks {
		before, after := "", ", flatten, attention, pool: attention, classifier"
		switch {
		case b.Name == "dense", b.Name == "batch_norm":
			before = "flatten, "
		case b.Role == language.RoleAttention:
			before, after = "flatten, ", ", pool: attention, classifier"
		case b.Role == language.RolePool:
			before, after = "flatten, attention, ", ", classifier"
		case b.Role == language.RoleClassifier:
			before, after = "flatten, attention, pool: attention, ", ""
		}
		src := "name: t\ndata: {set: t.npz, shape: [1, 4, 4]}\nmodel: {blocks: [" + before + b.Name + arguments[b.Name] +
			after + "]}\n"
		if _, err := parseAs(t, src, 1, 4, 4); err != nil {
			t.Errorf("block %s: %v", b.Name, err)
		}
	}
	values := map[string]string{"matmul": "X, V", "transpose": "V", "clamp": "X, 0, 1", "sum": "X, 1", "mean": "X, 1",
		"max": "X, 1", "of_bag": "bag_sum(X)",
		"bag_attention": "X, X, X, 1", "bag_scores": "X, bag_matmul(X, X)", "bag_top": "X, 2", "dropout": "X, 0.5",
		"random": "X, 0.5, 1", "uniform": "X, 1", "split": "X, 1"}
	for _, f := range language.Functions {
		args, ok := values[f.Name]
		if !ok {
			args = strings.TrimSuffix(strings.Repeat("X, ", len(f.Args)), ", ")
		}
		src := "name: t\nmodel: {params: {V: [d, k]}, let: {e: \"" + f.Name + "(" + args +
			")\", p: \"softmax(matmul(bag_mean(X), V))\"}}\n" +
			"loss: [disambiguation, equation: {name: c, value: \"sum(e)\"}]\n"
		if _, err := parse(t, src); err != nil {
			t.Errorf("function %s: %v", f.Name, err)
		}
	}
}
