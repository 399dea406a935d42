// Datasets generated from pools: training and test bags share no instance, also on another machine.

package experiment

import (
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/miplc/miplc/data/bagfile"
)

// The splits of a dataset generated from pools share no instance. A shard on another machine computes
// the same splits.
func TestPoolsOfASet(t *testing.T) {
	folder := bagfile.Folder{Dir: t.TempDir()}
	writeBirds(t, filepath.Join(folder.Dir, "mil", "birdsong", "instances.csv.gz"))
	e := parse(t, `
name: pools
data: [{name: B, synth: {set: birdsong-mipl, bags: 40, classes: [BRCR, WIWR], min_size: 4, max_size: 4, pools: 5}}]
learners: [{name: a, spec: demipl}]
splits: {count: 3, train: 0.6}
`)
	d := &e.Data[0]
	set, err := draw(d.Synth, 1, folder)
	if err != nil {
		t.Fatal(err)
	}
	in := &sharedDataset{splits: e.SplitsOf(d)}
	dealt := stagedSet{Splits: in.splits}
	seen := map[string]bool{}
	for i := range 3 {
		split, err := makeSplit(in.splits, i+1, set, folder)
		if err != nil {
			t.Fatal(err)
		}
		elsewhere, err := makeSplit(dealt.dataset(Work{}).splits, i+1, set, folder)
		if err != nil || fmt.Sprint(elsewhere) != fmt.Sprint(split) {
			t.Errorf("split %d of a shard is %v (%v), want %v", i+1, elsewhere, err, split)
		}
		trained := map[float32]bool{}
		dim := set.Dim()
		for _, bag := range split.Train {
			for _, x := range set.Instances[set.Offsets[bag]*dim : set.Offsets[bag+1]*dim] {
				trained[x] = true
			}
		}
		for _, bag := range split.Test {
			for _, x := range set.Instances[set.Offsets[bag]*dim : set.Offsets[bag+1]*dim] {
				if trained[x] {
					t.Fatalf("split %d: instance %v is in training and in test bags", i+1, x)
				}
			}
		}
		if len(split.Train) != 24 || len(split.Test) != 16 {
			t.Errorf("split %d has %d training and %d test bags, want 24 and 16", i+1, len(split.Train), len(split.Test))
		}
		seen[fmt.Sprint(split.Test)] = true
	}
	if len(seen) < 2 {
		t.Error("all splits are the same")
	}
}

// writeBirds writes instances of one feature, the number of the instance: 100 without a label and 40
// of each of two species.
func writeBirds(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	z := gzip.NewWriter(f)
	fmt.Fprintln(z, "bag,instance_label,f1")
	for i := range 180 {
		fmt.Fprintf(z, "1,%d,%d\n", max(0, (i-60)/40), i)
	}
	if err := errors.Join(z.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
}
