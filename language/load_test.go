// Reading, writing, overriding and inheriting specs.

package language

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/testkit/testsupport"
	"github.com/miplc/miplc/language/schema"
	"github.com/miplc/miplc/specs"
)

// sameValues compares specs without positions and source texts.
var sameValues = []cmp.Option{
	cmpopts.IgnoreTypes(diag.Pos{}),
	cmpopts.IgnoreFields(Spec{}, "File", "Search"), // Search is not written
	cmpopts.IgnoreUnexported(Spec{}),
	cmpopts.IgnoreFields(Equation{}, "Expr", "At", "LineAt"),
	cmpopts.IgnoreTypes(schema.Origin{}),
	cmpopts.EquateEmpty(),
}

// small is the shortest model.
const small = "name: x\nmodel:\n  blocks: [attention, {pool: attention}, classifier]\n"

func mustParse(t *testing.T, src string, sets ...string) *Spec {
	t.Helper()
	s, err := Parse("test.yaml", []byte(src), sets...)
	if err != nil {
		t.Fatalf("%v\nin\n%s", err, src)
	}
	return s
}

// checkRoundTrip checks that the written YAML parses to the same spec.
func checkRoundTrip(t *testing.T, s *Spec) {
	t.Helper()
	text := s.YAML()
	again, err := Parse("again.yaml", text)
	if err != nil {
		t.Fatalf("the written spec does not parse: %v\n%s", err, text)
	}
	if d := cmp.Diff(s, again, sameValues...); d != "" {
		t.Fatalf("the written spec differs (-first +again)\n%s\n%s", d, text)
	}
	if !bytes.Equal(text, again.YAML()) || s.Identity() != again.Identity() {
		t.Fatalf("written twice, the spec differs:\n%s\n%s", text, again.YAML())
	}
	if bytes.Contains(text, []byte("extends:")) {
		t.Fatalf("a complete spec must not extend another:\n%s", text)
	}
}

// full sets every key to a value other than its default.
const full = `name: full
description: 'everything, "quoted": # too'
data:
  set: bags/a.csv.gz
  shape: [2, 3]
  classes: 4
  normalize: all
  split: {index: splits.csv, number: 3}
model:
  blocks:
    - conv2d: {channels: 2, kernel: 3, stride: 2, pad: 1}
    - maxpool2d: {kernel: 3, stride: 1}
    - maxpool2d: 2
    - flatten
    - dense: {units: 7}
    - dropout: 0.25
    - relu
    - tanh
    - sigmoid
    - softplus
    - attention: {gates: shared, scorer: mlp, hidden: 9, width: 3}
    - pool: maxmin
    - classifier: bounded_sigmoid
  sizes: {m: 12, half: 6}
  params:
    A: {shape: [h, m], init: normal, scale: 0.5}
    B: {shape: [m, 1], init: uniform, scale: 1e-3}
    C: {shape: [half], fan_in: d}
    D: {shape: [3, k], fan_in: 17}
    E: {shape: [], init: zeros}
    F: [k, k]
    G: {shape: [1], init: ones}
  let:
    u: |
      matmul(
        matmul(H, A),
        B) * sum(C) + sum(D) * E

    v: "sigmoid(u) +\t0 * sum(F)"
    v2: >
      v
      + 1
      - 1
    n: 3
    q: p * n / n * G
  attention: v2
  probabilities: q
loss:
  - disambiguation: 2
  - attention: {weight: 0.5}
  - equation:
      name: entropy
      value: |-
        -mean(
          sum(p * logp, 1)
        )
      weight: 1.5e-7
weights:
  schedule: averaging
  order: after_loss
  first_epoch: 0
  update: "lambda * w + (1 - lambda) * p * S / sum(p * S, 1) + 0 * t / T"
train:
  epochs: 7
  batch: 3
  seed: 12
  lr: 3
  momentum: 0
  nesterov: false
  weight_decay: 0
  schedule: constant
  engine: ort
  eval_every: 2
  checkpoint: 0
export: {signature: batch, opset: 21}
`

func TestRoundTrip(t *testing.T) {
	for _, name := range specs.Models() {
		s, err := Load(name)
		if err != nil {
			t.Fatal(err)
		}
		checkRoundTrip(t, s)
	}
	checkRoundTrip(t, mustParse(t, full))
	checkRoundTrip(t, mustParse(t, small, "train.momentum=0", "data.shape=[4, 5]"))
	checkRoundTrip(t, mustParse(t, small, "weights.schedule=averaging", "name=true blue"))
	checkRoundTrip(t, mustParse(t, strings.ReplaceAll(full, "\n", "\r\n")))
}

func TestFullSpec(t *testing.T) {
	testsupport.CheckGolden(t, "testdata/good/full.yaml", mustParse(t, full).YAML())
}

func TestDefaults(t *testing.T) {
	s := mustParse(t, small)
	if s.Train.Epochs.V != 100 || s.Train.Epochs.Written() || s.Train.LR.V != 0.01 || !s.Train.Nesterov.V {
		t.Errorf("train: %+v", s.Train)
	}
	if got := s.Model.Blocks[0].Args["hidden"]; got.Int() != 128 || !got.Pos.IsZero() {
		t.Errorf("hidden: %+v", got)
	}
	if len(s.Loss) != 2 || s.Loss[1].Weight.V != 0.001 || s.Loss[1].Kind.Written() {
		t.Errorf("loss: %+v", s.Loss)
	}
	mean := mustParse(t, "name: x\nmodel: {blocks: [pool: mean, classifier]}\n")
	if len(mean.Loss) != 1 || mean.Loss[0].Kind.V != "disambiguation" {
		t.Errorf("a model without attention has the default loss %+v", mean.Loss)
	}
	bom := mustParse(t, "\ufeff"+small)
	if bom.Name.Pos.Col != 7 {
		t.Errorf("a byte order mark moves columns: %v", bom.Name.Pos)
	}
	eq := mustParse(t, "name: x\nmodel:\n  params: {V: [d, k]}\n  let:\n    a: sum(X, 1)\n    p: "+
		"softmax(bag_sum(matmul(X, V)))\n    logp: log(p)\n")
	if eq.Model.Attention.V != "a" || eq.Model.Probabilities.V != "p" || eq.Model.LogProbabilities.V != "logp" ||
		eq.Model.Attention.Written() {
		t.Errorf("outputs by their usual names: %+v", eq.Model)
	}
}

// Every optimizer has its own defaults. The settings of an inherited optimizer do not apply to
// another one.
func TestOptimizerDefaults(t *testing.T) {
	for _, c := range []struct {
		set                               string
		lr, momentum, decay, beta2, alpha float64
		epsilon                           float64
	}{
		{"train.epochs=1", 0.01, 0.9, 1e-4, 0, 0, 0},
		{"train.optimizer=sgd", 0.01, 0.9, 1e-4, 0, 0, 0},
		{"train.optimizer=adam", 1e-3, 0, 0, 0.999, 0, 1e-8},
		{"train.optimizer=adamw", 1e-3, 0, 1e-2, 0.999, 0, 1e-8},
		{"train.optimizer=rmsprop", 1e-2, 0, 0, 0, 0.99, 1e-8},
		{"train={optimizer: adam, lr: 0.2, weight_decay: 0.3}", 0.2, 0, 0.3, 0.999, 0, 1e-8},
	} {
		s, err := Parse("mine.yaml", []byte("name: mine\nextends: demipl\n"), c.set)
		if err != nil {
			t.Fatalf("%s: %v", c.set, err)
		}
		has := func(key string, v, want float64) {
			if row := schema.Find(trainRows, key); row.Applies(s) && v != want {
				t.Errorf("%s: train.%s is %v, want %v", c.set, key, v, want)
			}
		}
		has("lr", s.Train.LR.V, c.lr)
		has("momentum", s.Train.Momentum.V, c.momentum)
		has("weight_decay", s.Train.WeightDecay.V, c.decay)
		has("beta2", s.Train.Beta2.V, c.beta2)
		has("alpha", s.Train.Alpha.V, c.alpha)
		has("epsilon", s.Train.Epsilon.V, c.epsilon)
		checkRoundTrip(t, s)
	}
}

func TestPlaces(t *testing.T) {
	s := mustParse(t, full)
	for _, c := range []struct {
		what string
		pos  diag.Pos
		line int
		col  int
	}{
		{"name", s.Name.Pos, 1, 7},
		{"shape", s.Data.Shape.Pos, 5, 10},
		{"number", s.Data.Split.Number.Pos, 8, 38},
		{"model", s.Model.Pos, 9, 1},
		{"conv2d", s.Model.Blocks[0].Kind.Pos, 11, 7},
		{"pad", s.Model.Blocks[0].Args["pad"].Pos, 11, 56},
		{"pool", s.Model.Blocks[11].Args["kind"].Pos, 22, 13},
		{"param", s.Model.Params[0].Name.Pos, 26, 5},
		{"loss weight", s.Loss[2].Weight.Pos, 57, 15},
	} {
		if want := (diag.Pos{File: "test.yaml", Line: c.line, Col: c.col}); c.pos != want {
			t.Errorf("%s: %v, want %v", c.what, c.pos, want)
		}
	}
	d := s.AtUserLine(diag.Errorf(s.Train.Batch.Pos, "x"))
	if d.Line != "  batch: 3" || d.Width != 1 {
		t.Errorf("located: %+v", d)
	}
}

func TestSet(t *testing.T) {
	for _, c := range []struct {
		set  string
		want string // a line of the written spec
	}{
		{"train.epochs=5", "  epochs: 5"},
		{" train.epochs = 5 ", "  epochs: 5"},
		{"train.lr=1e-4", "  lr: 0.0001"},
		{"data.shape=[4, 5]", "  shape: [4, 5]"},
		{"data.generated={bags: 50, seed: 3}", "    bags: 50"},
		{"loss=[disambiguation]", "  - disambiguation: 1"},
		{"loss.attention=0.25", "  - attention: 0.25"},
		{"loss.attention.weight=0.25", "  - attention: 0.25"},
		{"model.blocks.attention=disambiguation", "    - attention: {kind: disambiguation, gates: separate, scorer: " +
			"linear, hidden: 128, width: 0}"},
		{"model.blocks.attention.scorer=mlp", "    - attention: {kind: disambiguation, gates: separate, scorer: mlp, " +
			"hidden: 128, width: 0}"},
		{"model.blocks.pool=maxmin", "    - pool: maxmin"},
		{"model.blocks.pool.kind=mean", "    - pool: mean"},
		{"model.blocks.classifier.epsilon=0.1", "    - classifier: {link: softmax, epsilon: 0.1}"},
		{"model.blocks=[pool: mean, classifier]", "    - pool: mean"},
		{"weights.update=p", "  update: p"},
	} {
		s := mustParse(t, small, c.set)
		if !strings.Contains(string(s.YAML()), c.want+"\n") {
			t.Errorf("--set %s: no line %q in\n%s", c.set, c.want, s.YAML())
		}
	}
	s := mustParse(t, small, "train.epochs=5", "train.lr=1", "train.epochs=6")
	if s.Train.Epochs.V != 6 || s.Train.LR.V != 1 {
		t.Errorf("the last --set must win: %+v", s.Train)
	}
	if want := "--set train.epochs=6"; s.Train.Epochs.Pos.String() != want {
		t.Errorf("place %q, want %q", s.Train.Epochs.Pos, want)
	}
	block := mustParse(t, strings.Replace(small, "{pool: attention}", "{pool: {kind: mean}}", 1),
		"model.blocks.attention.width=4", "model.blocks.attention.gates=shared")
	if a := block.Model.Blocks[0].Args; a["width"].Int() != 4 || a["gates"].Str() != "shared" {
		t.Errorf("two arguments of one block: %+v", a)
	}
}

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestExtends(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"base.yaml": "name: base\n" + strings.TrimPrefix(small, "name: x\n") +
			"train: {epochs: 5, lr: 0.5}\nloss: [disambiguation: 3, attention]\ndata: {generated: {bags: 20}}\n",
		"sub/child.yaml": "extends: ../base.yaml\nname: child\ntrain: {lr: 0.25}\nloss: [attention: 2]\ndata: {set: " +
			"other.npz}\n",
		"grand.yaml":    "extends: sub/child.yaml\ntrain: {batch: 4}\n",
		"shipped.yaml":  "extends: demipl\nname: mine\ntrain: {epochs: 3}\n",
		"demipl.yaml":   "extends: quickstart\nname: shadow\n",
		"shadowed.yaml": "extends: demipl.yaml\n",
	})
	load := func(name string) *Spec {
		s, err := Load(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		checkRoundTrip(t, s)
		return s
	}
	g := load("grand.yaml")
	if g.Name.V != "child" || g.Train.Epochs.V != 5 || g.Train.LR.V != 0.25 || g.Train.Batch.V != 4 {
		t.Errorf("maps must merge key by key: %s %+v", g.Name.V, g.Train)
	}
	if len(g.Loss) != 1 || g.Loss[0].Weight.V != 2 {
		t.Errorf("lists must replace: %+v", g.Loss)
	}
	if want := filepath.Join(dir, "base.yaml"); g.Train.Epochs.Pos.File != want {
		t.Errorf("the position of an inherited value is in %s, want %s", g.Train.Epochs.Pos.File, want)
	}
	if g.Data.Generated.Bags.V != 300 || g.Data.Generated.Bags.Written() {
		t.Errorf("inherited settings of a generator must not apply to another one: %+v", g.Data.Generated)
	}
	if s := load("shipped.yaml"); s.Train.Epochs.V != 3 || s.Data.Set.V != "birdsong-mipl-r1.npz" {
		t.Errorf("extends of a shipped spec: %+v", s.Train)
	}
	if s := load("shadowed.yaml"); s.Name.V != "shadow" {
		t.Errorf("a file in the folder of the spec has precedence over a shipped spec; got %s", s.Name.V)
	}
}

func TestLoad(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"quickstart", "builtin:quickstart"} {
		if s, err := Load(name); err != nil || s.File != "builtin:quickstart" {
			t.Errorf("%s: %v, %v", name, s, err)
		}
	}
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"big.yaml":  small + "# " + strings.Repeat("x", 1<<20),
		"deep.yaml": "name: " + strings.Repeat("[", 20000),
		"lost.yaml": "extends: ./demipl.yaml\n",
	})
	for i := range 30 {
		write(t, dir, map[string]string{"chain" + strings.Repeat("x", i) + ".yaml": "extends: chain" + strings.Repeat("x",
			i+1) + ".yaml\n"})
	}
	for name, want := range map[string]string{
		"demipel": `there is no file demipel and no shipped spec of that name (did you mean "demipl"?)`,
		// not the shipped spec in place of an edited copy
		"demipl.yaml": `there is no file demipl.yaml and no shipped spec of that name (did you mean ` +
			`"demipl"?)`,
		"./demipl.yaml":                  "there is no file ./demipl.yaml",
		filepath.Join(dir, "lost.yaml"):  "there is no file ./demipl.yaml",
		filepath.Join(dir, "nowhere"):    "there is no file " + filepath.Join(dir, "nowhere"),
		dir:                              dir + " is not a file",
		"specs\x00":                      "cannot be read",
		"builtin:../language":            "there is no file",
		filepath.Join(dir, "big.yaml"):   "more than 1048576 bytes",
		filepath.Join(dir, "deep.yaml"):  "nested",
		filepath.Join(dir, "chain.yaml"): "more than 16 files extend each other",
	} {
		_, err := Load(name)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", name, err, want)
		}
		if _, ok := err.(diag.List); !ok {
			t.Errorf("%q: the error is a %T", name, err)
		}
	}
}

func TestIdentity(t *testing.T) {
	a, b := mustParse(t, small), mustParse(t, "# a comment\nname:   x\n"+strings.TrimPrefix(small, "name: x\n")+
		"train: {epochs: 100}\n")
	if a.Identity() != b.Identity() || len(a.Identity()) != 64 {
		t.Errorf("equal specs have the identities %s and %s", a.Identity(), b.Identity())
	}
	if c := mustParse(t, small, "train.seed=2"); c.Identity() == a.Identity() {
		t.Error("another seed has the same identity")
	}
	if c := mustParse(t, small, "data.sha256="+a.Identity()); c.Identity() == a.Identity() ||
		!bytes.Equal(c.Settings().YAML(), a.Settings().YAML()) {
		t.Error("the expected hash of the data is one of the settings, or not part of the spec")
	}
}

// Invalid bytes are reported at the line and column that an editor shows, for every kind of line end.
func TestPlaceOfBadText(t *testing.T) {
	for _, end := range []string{"\n", "\r", "\r\n", "\u0085", "\u2028"} {
		for _, bad := range []string{"\xff", "\x00", "\ufffe"} {
			for _, mark := range []string{"", "\ufeff"} {
				text := mark + strings.ReplaceAll("name: x\n\nmodel:\n  blö"+bad+"cks: []\n", "\n", end)
				_, err := Parse("test.yaml", []byte(text))
				if err == nil || !strings.HasPrefix(err.Error(), "test.yaml:4:6: ") {
					t.Errorf("%q: %v", text, err)
				}
				if _, err := Parse("test.yaml", []byte(mark+bad)); err == nil ||
					!strings.HasPrefix(err.Error(), "test.yaml:1:1: ") {
					t.Errorf("%q at the start: %v", bad, err)
				}
			}
		}
	}
}
