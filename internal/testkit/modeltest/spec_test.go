// Random specs are valid and diverse.

package modeltest_test

import (
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/internal/testkit/modeltest"
	"github.com/miplc/miplc/internal/testkit/testsupport"
	"github.com/miplc/miplc/language"
)

// count is the number of specs that the tests of other packages draw.
const count = 200

func load(t *testing.T, seed uint64) *language.Spec {
	t.Helper()
	text := modeltest.RandomSpec(seed)
	s, err := language.Parse(fmt.Sprintf("random%d.yaml", seed), []byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return s
}

// program returns the graphs and parameters of a spec as text.
func program(t *testing.T, s *language.Spec) string {
	t.Helper()
	g := s.Data.Generated
	sig, err := compile.SignatureOf(s, []int{g.Features.V}, g.Classes.V)
	if err != nil {
		t.Fatalf("%s: %v", s.Name.V, err)
	}
	p, err := compile.Compile(s, sig)
	if err != nil {
		t.Fatalf("%s: %v", s.Name.V, err)
	}
	return fmt.Sprintln(p.Params, p.Masks) + p.Train.Text() + p.Infer.Text()
}

// Every random spec compiles, and the complete spec that a run writes compiles to the same program.
func TestRandomSpecsAreValid(t *testing.T) {
	for seed := range uint64(2 * count) {
		s := load(t, seed)
		want := program(t, s)
		again, err := language.Parse("again.yaml", s.YAML())
		if err != nil {
			t.Fatalf("%v\n%s", err, s.YAML())
		}
		if again.Identity() != s.Identity() || program(t, again) != want {
			t.Errorf("the complete spec of %s differs:\n%s", s.Name.V, s.YAML())
		}
	}
}

// tally counts the words that specs use.
func tally(s *language.Spec, add func(word string)) {
	add("data of rank " + fmt.Sprint(max(1, len(s.Data.Shape.V))))
	add("normalize " + s.Data.Normalize.V)
	for _, b := range s.Model.Blocks {
		add("block " + b.Kind.V)
		for _, arg := range []string{"kind", "gates", "scorer", "link"} {
			if v := b.Args[arg].Str(); v != "" {
				add("block " + b.Kind.V + " " + arg + " " + v)
			}
		}
	}
	switch {
	case len(s.Model.Let) == 0:
		add("model of blocks")
	case len(s.Model.Blocks) == 0:
		add("model of equations")
	default:
		add("model of blocks and equations")
	}
	equations := slices.Clone(s.Model.Let)
	for _, l := range s.Loss {
		add("loss " + l.Kind.V)
		equations = append(equations, l.Equation)
	}
	if u := s.Weights.Update; u != nil {
		add("weights.update")
		equations = append(equations, *u)
	}
	for _, e := range s.Model.Let {
		if e.Name.V == "wide" {
			add("wide equations")
		}
	}
	for _, p := range s.Model.Params {
		add("init " + p.Init.V)
		add(fmt.Sprintf("parameter of %d axes", len(p.Shape)))
		if use, ok := modeltest.Aside(p.Name.V); ok {
			add("parameter of " + use)
		}
	}
	if len(s.Model.Functions) > 0 {
		add("functions")
	}
	if len(s.Let) > 0 {
		add("shared equations")
	}
	if slices.ContainsFunc(s.Model.Numbers, func(n language.Number) bool { return n.V.V.List }) {
		add("list of numbers")
	}
	if len(s.Model.Numbers) > 0 {
		add("numbers")
	}
	if len(s.Model.Sizes) > 0 {
		add("sizes")
	}
	seen := map[string]bool{}
	for i := range language.Functions {
		name := language.Functions[i].Name
		for _, eq := range equations {
			if !seen[name] && regexp.MustCompile(`\b`+name+`\(`).MatchString(eq.Text.V) {
				add("function " + name)
				seen[name] = true
			}
		}
	}
	for _, name := range []string{s.Weights.Schedule.V, s.Weights.Order.V} {
		add("weights " + name)
	}
	if s.Multi() {
		add("several labels")
	}
	add("signature " + s.Export.Signature.V)
	if name := s.Model.Attention.V; name == "s" || name == "loga" {
		add("attention " + name)
	}
}

// The specs use every block and function of the language. New words of the language must be added to
// this package.
func TestRandomSpecsAreDiverse(t *testing.T) {
	words, texts := map[string]int{}, map[string]bool{}
	for seed := range uint64(count) {
		tally(load(t, seed), func(w string) { words[w]++ })
		_, model, _ := strings.Cut(modeltest.RandomSpec(seed), "model:")
		texts[model] = true
	}
	if len(texts) < count*9/10 {
		t.Errorf("only %d of %d specs have a different model", len(texts), count)
	}
	for i := range language.Blocks {
		if words["block "+language.Blocks[i].Name] == 0 {
			t.Errorf("no random spec has the block %s", language.Blocks[i].Name)
		}
	}
	for i := range language.Functions {
		name := language.Functions[i].Name
		if name == "batch_norm" { // only for all bags of a batch; the block of this name occurs, and shipped specs call it
			continue
		}
		if words["function "+name] == 0 {
			t.Errorf("no random spec calls %s", name)
		}
	}
	for _, term := range language.LossTerms {
		if words["loss "+term.Name] == 0 {
			t.Errorf("no random spec has the loss term %s", term.Name)
		}
	}
	for _, word := range []string{"functions", "shared equations", "list of numbers", "several labels", "wide equations"} {
		if words[word] == 0 {
			t.Errorf("no random spec has %s", word)
		}
	}
	for _, word := range []string{"0 axes", "1 axes", "2 axes", "3 axes", "only a loss", "only the update",
		"only log_probabilities"} {
		if words["parameter of "+word] == 0 {
			t.Errorf("no random spec has a parameter of %s", word)
		}
	}
	var lines []string
	for w, n := range words {
		lines = append(lines, fmt.Sprintf("%4d  %s", n, w))
	}
	sort.Slice(lines, func(i, j int) bool { return lines[i][6:] < lines[j][6:] })
	t.Logf("%d specs, %d different models:\n%s", count, len(texts), strings.Join(lines, "\n"))
}

// A seed always gives the same spec, so that a failure can be reproduced.
func TestGolden(t *testing.T) {
	for _, seed := range []uint64{0, 1, 2, 3, 4, 5} {
		testsupport.CheckGolden(t, fmt.Sprintf("testdata/random%d.yaml", seed), modeltest.RandomSpec(seed))
	}
}
