// Training and test bags share no instance.

package generate

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/internal/testkit/testsupport"
)

// shared returns the share of the positive instances of test bags that also occur in a training
// bag, and the same share of all instances.
func shared(d *data.Dataset, s *data.Split) (positives, all float64) {
	key := func(i int) [sha256.Size]byte {
		var bits []byte
		for _, v := range d.Instances[i*d.Dim() : (i+1)*d.Dim()] {
			bits = binary.LittleEndian.AppendUint32(bits, math.Float32bits(v))
		}
		return sha256.Sum256(bits)
	}
	trained := map[[sha256.Size]byte]bool{}
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

// The shares of test instances that are also in training bags are those of docs/paper-data.md.
func TestSharedInstances(t *testing.T) {
	dir := testsupport.Data(t, ".", "docs/paper-data.md says what is in it")
	for _, c := range []struct {
		set                    string
		positive               float64 // share, 0: the default
		wantPositives, wantAll string
	}{
		{"birdsong-mipl", 0, "53 %", "96 %"},
		{"birdsong-mipl", 0.1, "63 %", "96 %"},
		{"mnist-mipl", 0, "4 %", "34 %"},
		{"fmnist-mipl", 0, "3 %", "34 %"},
	} {
		d, err := Synth(c.set, Design{Source: dir, Seed: 1, Positives: c.positive})
		if err != nil {
			t.Fatal(err)
		}
		s, err := data.RandomSplit(d.Bags(), d.TrueLists(), data.SplitSettings{Train: 0.7, Seed: 1, Stratify: true})
		if err != nil {
			t.Fatal(err)
		}
		positives, all := shared(d, s)
		if p, a := percent(positives), percent(all); p != c.wantPositives || a != c.wantAll {
			t.Errorf("%s: %s of the positive test instances and %s of all are in training bags, docs/paper-data.md says %s "+
				"and %s", c.set, p, a, c.wantPositives, c.wantAll)
		}
	}
}

func percent(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) }

// With pools, no instance of a test bag is in a training bag.
func TestPools(t *testing.T) {
	dir := testsupport.Data(t, ".", "docs/paper-data.md says what is in it")
	ten, err := Synth("birdsong-mipl", Design{Source: dir, Seed: 1, Pools: 8})
	if err != nil {
		t.Fatal(err)
	}
	o := data.SplitSettings{Train: 0.7, Seed: 1, Stratify: true}
	splits, err := SplitPools(ten.Bags(), ten.Classes, 8, 3, o)
	if err != nil {
		t.Fatal(err)
	}
	for i, split := range splits {
		o.Seed = uint64(i) + 1
		if positives, all := shared(ten, split); positives != 0 || all != 0 {
			t.Errorf("seed %d: %.3f of the positive test instances and %.3f of all are in training bags, want none", o.Seed,
				positives, all)
		}
		if n := len(split.Train) + len(split.Test); n != ten.Bags() || len(split.Test) < 300 || len(split.Test) > 500 {
			t.Errorf("seed %d: %d training and %d test bags", o.Seed, len(split.Train), len(split.Test))
		}
	}
}

// Splits differ, although the first seeds select some pools twice, until all were selected.
func TestSplitsOfPoolsDiffer(t *testing.T) {
	for pools, want := range map[int]int{3: 3, 8: 10, 200: 10} {
		splits, err := SplitPools(400, 2, pools, 10, data.SplitSettings{Train: 0.7, Seed: 1})
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
	dir := testsupport.Data(t, ".", "docs/paper-data.md says what is in it")
	for want, o := range map[string]Design{
		"class HETH has 1 instance in one of 20 pools, but a bag may need 3": {Pools: 20},
		"8 pools for 5 bags of each class":                                   {Pools: 8, Bags: 65},
	} {
		o.Source = dir
		if _, err := Synth("birdsong-mipl", o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", o, err, want)
		}
	}
	for _, set := range []string{PrototypeSet, "sival6-mipl"} {
		if err := (Design{Pools: 2}).Check(set); err == nil || !strings.Contains(err.Error(), "pools") {
			t.Errorf("%s: %v", set, err)
		}
	}
	for _, share := range []float64{0.01, 0.99} {
		if _, err := SplitPools(100, 2, 10, 1, data.SplitSettings{Train: share}); err == nil ||
			!strings.Contains(err.Error(), "both need one") {
			t.Errorf("share %v: %v", share, err)
		}
	}
}
