package generate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/split"
	"github.com/miplc/miplc/internal/testsupport"
)

// shared returns the share of the positive instances of test bags that also occur in a training
// bag, and the same share of all instances.
func shared(d *data.Dataset, s *data.Split) (positives, all float64) {
	key := func(i int) string { return fmt.Sprint(d.Instances[i*d.Dim() : (i+1)*d.Dim()]) }
	trained := map[string]bool{}
	for _, b := range s.Train {
		for i := d.Offsets[b]; i < d.Offsets[b+1]; i++ {
			trained[key(i)] = true
		}
	}
	var n, hits [2]float64
	for _, b := range s.Test {
		for i := d.Offsets[b]; i < d.Offsets[b+1]; i++ {
			kinds := []int{0}
			if d.InstLabels[i] >= 0 {
				kinds = []int{0, 1}
			}
			for _, k := range kinds {
				n[k]++
				if trained[key(i)] {
					hits[k]++
				}
			}
		}
	}
	return hits[1] / n[1], hits[0] / n[0]
}

// Birdsong-MIPL draws instances repeatedly from a small source. Without pools most positive
// instances of test bags also occur in training bags, with pools none do.
func TestPools(t *testing.T) {
	dir := testsupport.Data(t, ".", "README.md says what is in it")
	draw := func(pools int) *data.Dataset {
		d, err := Synth("birdsong-mipl", Options{Source: dir, Seed: 1, Pools: pools})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	o := split.Settings{Train: 0.7, Seed: 1, Stratify: true}
	one := draw(0)
	split, err := split.Random(one.Bags(), one.LabelSets(), o)
	if err != nil {
		t.Fatal(err)
	}
	positives, all := shared(one, split)
	t.Logf("one pool: %.3f of the positive test instances and %.3f of all are in training bags", positives, all)
	if positives < 0.5 || all < 0.5 {
		t.Errorf("one pool: %.3f of the positive test instances and %.3f of all are in training bags; docs/bags.md says otherwise", positives, all)
	}
	ten := draw(8)
	o.Seed = 1
	splits, err := SplitPools(ten.Bags(), ten.Classes, 8, 3, o)
	if err != nil {
		t.Fatal(err)
	}
	for i, split := range splits {
		o.Seed = uint64(i) + 1
		if positives, all := shared(ten, split); positives != 0 || all != 0 {
			t.Errorf("seed %d: %.3f of the positive test instances and %.3f of all are in training bags, want none", o.Seed, positives, all)
		}
		if n := len(split.Train) + len(split.Test); n != ten.Bags() || len(split.Test) < 300 || len(split.Test) > 500 {
			t.Errorf("seed %d: %d training and %d test bags", o.Seed, len(split.Train), len(split.Test))
		}
	}
}

// Splits differ, although the first seeds select some pools twice, until all were selected.
func TestSplitsOfPoolsDiffer(t *testing.T) {
	for pools, want := range map[int]int{3: 3, 8: 10, 200: 10} {
		splits, err := SplitPools(400, 2, pools, 10, split.Settings{Train: 0.7, Seed: 1})
		if err != nil || len(splits) != want {
			t.Fatalf("%d pools: %d splits, %v", pools, len(splits), err)
		}
		seen := map[string]bool{}
		for _, s := range splits {
			seen[fmt.Sprint(s.Train)] = true
		}
		if len(seen) != want {
			t.Errorf("%d pools: %d of %d splits differ", pools, len(seen), want)
		}
	}
}

func TestPoolErrors(t *testing.T) {
	dir := testsupport.Data(t, ".", "README.md says what is in it")
	for want, o := range map[string]Options{
		"class HETH has 1 instance in one of 20 pools, but a bag may need 3": {Pools: 20},
		"8 pools for 5 bags of each class":                                   {Pools: 8, Bags: 65},
	} {
		o.Source = dir
		if _, err := Synth("birdsong-mipl", o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", o, err, want)
		}
	}
	for _, set := range []string{PrototypeSet, "sival6-mipl"} {
		if err := (Options{Pools: 2}).Check(set); err == nil || !strings.Contains(err.Error(), "pools") {
			t.Errorf("%s: %v", set, err)
		}
	}
	for _, share := range []float64{0.01, 0.99} {
		if _, err := SplitPools(100, 2, 10, 1, split.Settings{Train: share}); err == nil || !strings.Contains(err.Error(), "both need one") {
			t.Errorf("share %v: %v", share, err)
		}
	}
}
