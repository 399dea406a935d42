package runs

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/miplc/miplc/runtime/ortlib/ortest"
	"github.com/miplc/miplc/train"
)

// Runs side by side end as each does alone with the reference engine, and leave
// the same files but for checkpoints.
func TestTogetherEqualsAlone(t *testing.T) {
	library := ortest.Library(t)
	for _, c := range []struct {
		name string
		set  []string
	}{
		{"quickstart", []string{"train.batch=1"}},
		{"quickstart", []string{"train.batch=3"}},
		{"elimipl", []string{"data.set=generated:prototypes", "train.batch=2"}}, // label weights after the step
		{"proden-mean", []string{"data.set=generated:prototypes"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			set := append([]string{"train.epochs=3", "data.generated.bags=40"}, c.set...)
			var variants []Variant
			for _, seed := range []string{"1", "2"} {
				variants = append(variants, Variant{"seed-" + seed, load(t, c.name, append(set, "train.seed="+seed)...)})
			}
			o := Options{Dir: t.TempDir(), Library: library, Engine: "xla", Device: "cpu"}
			got, err := TrainTogether(context.Background(), o, variants)
			if err != nil {
				t.Fatal(err)
			}
			if len(got.Runs) != 2 || len(got.Failed) != 0 {
				t.Fatalf("%d runs, failed %v", len(got.Runs), got.Failed)
			}
			for i, v := range variants {
				alone, err := Evaluate(context.Background(), Options{Spec: v.Spec, Engine: "gorgonia"})
				if err != nil {
					t.Fatal(err)
				}
				r := got.Runs[i]
				if r.Folder != v.Name || r.Seed != uint64(v.Spec.Train.Seed.V) || r.SpecSHA256 != v.Spec.Hash() || math.Abs(r.Loss-alone.Loss) > 1e-4 {
					t.Errorf("run %s of seed %d ends at the loss %v, alone at %v", r.Folder, r.Seed, r.Loss, alone.Loss)
				}
				for _, name := range []string{ModelFile, SpecFile, SplitFile, SummaryFile, train.MetricsFile} {
					if _, err := os.Stat(filepath.Join(o.Dir, v.Name, name)); err != nil {
						t.Error(err)
					}
				}
			}
			if _, err := TrainTogether(context.Background(), o, variants); err == nil {
				t.Error("finished runs were overwritten")
			}
		})
	}
}

// Interrupted, runs side by side leave nothing behind.
func TestTogetherInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	o := Options{Dir: filepath.Join(t.TempDir(), "table"), Library: ortest.Library(t), Engine: "xla", Device: "cpu"}
	if _, err := TrainTogether(ctx, o, []Variant{{"seed-1", load(t, "quickstart")}}); err == nil {
		t.Fatal("an interrupted call succeeded")
	}
	if _, err := os.Stat(o.Dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is still there: %v", err)
	}
}
