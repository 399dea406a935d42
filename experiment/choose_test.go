// Tests of the choice of a setting by a measure of the held-out bags.

package experiment

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/miplc/miplc/data/measure"
	"github.com/miplc/miplc/experiment/definition"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/language/schema"
	"github.com/miplc/miplc/train/search"
)

// Keys of cells change with the measure, halving and folds, and are the same as without them for the accuracy.
func TestKeyOfChoice(t *testing.T) {
	grid := []gridPoint{{id: "a"}, {id: "b"}}
	keys := map[string]bool{}
	for _, name := range []string{measure.Accuracy, "macro_f1", measure.LogLoss} {
		for _, halving := range []int{0, 3, 4} {
			for _, folds := range []int{0, 2, 3} {
				k, err := key(grid, search.Rules{Halving: halving, MinEpochs: 1}, definition.Choose{Holdout: schema.Float{V: 0.2},
					Folds: schema.Int{V: folds}, Stratify: true, Seed: 1, Measure: schema.Str{V: name}}, nil, "data", "split")
				if err != nil {
					t.Fatal(err)
				}
				keys[k] = true
			}
		}
	}
	if len(keys) != 27 || !keys["1cc7334ced3b5372d46210019a4215e61d229fabc7ffb3664dbd7069b5caa493"] {
		t.Errorf("keys %v", keys)
	}
}

// Training bags without true labels can choose a setting only by a measure that needs none.
func TestChoiceWithoutLabels(t *testing.T) {
	dir := t.TempDir()
	bags, parts := "bag,label,candidates,f1,f2\n", "split,bag,part\n"
	for i := range 18 {
		label, part := "", "train"
		if i >= 12 {
			label, part = []string{"cat", "dog", "horse"}[i%3], "test"
		}
		set := []string{"cat dog", "dog horse", "horse cat"}[i%3]
		bags += fmt.Sprintf("b%d,%s,%s,%d,%d\n", i, label, set, i%3, -i)
		parts += fmt.Sprintf("1,b%d,%s\n", i, part)
	}
	for name, text := range map[string]string{"bags.csv": bags, "parts.csv": parts} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	with := func(choose string) error {
		_, err := Run(context.Background(), parse(t, fmt.Sprintf(`
name: chosen
data: [{name: P, file: %q}]
learners: [{name: tuned, spec: demipl, set: {train.epochs: 2, train.engine: gorgonia}, grid: {train.lr: [0.01, 0.1]}}]
splits: {count: 1, index: %q}
`, filepath.Join(dir, "bags.csv"), filepath.Join(dir, "parts.csv"))+choose), Work{Dir: t.TempDir()})
		return err
	}
	list, _ := diag.ListOf(with(""))
	if len(list) != 1 || !strings.Contains(strings.Join(list[0].Notes, "\n"), "loss and inside_candidates need none") {
		t.Errorf("by the accuracy: %v", list)
	}
	if err := with("choose: {measure: inside_candidates}\n"); err != nil {
		t.Errorf("by the candidates: %v", err)
	}
}
