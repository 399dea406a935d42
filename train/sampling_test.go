// Shuffles and balanced draws of bags.

package train

import (
	"math"
	"slices"
	"testing"

	"github.com/miplc/miplc/compile"
	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/language"
)

// Of 90 bags of one class and 10 of another, about half of the drawn bags are of each. Draws
// depend only on seed and epoch.
func TestBalancedSampling(t *testing.T) {
	d := &data.Dataset{Classes: 3, Offsets: []int{0}}
	var bags []int
	for i := range 100 {
		set := []uint8{1, 0, 0}
		if i%10 == 0 {
			set = []uint8{0, 1, 0}
		}
		d.Candidates, d.Offsets = append(d.Candidates, set...), append(d.Offsets, i+1)
		bags = append(bags, i)
	}
	spec, err := language.Load("quickstart", "train.sampling=balanced")
	if err != nil {
		t.Fatal(err)
	}
	trial := &Trial{Program: &compile.Program{Spec: spec}, Data: d, Split: &data.Split{Train: bags}}
	rare, all := 0, 0
	for epoch := range 100 {
		drawn := slices.Concat(trial.BatchesOf(epoch + 1)...)
		if !slices.Equal(drawn, slices.Concat(trial.BatchesOf(epoch+1)...)) || epoch > 0 &&
			slices.Equal(drawn, slices.Concat(trial.BatchesOf(epoch)...)) {
			t.Fatalf("epoch %d: draws do not depend on seed and epoch alone", epoch+1)
		}
		for _, bag := range drawn {
			if all++; bag%10 == 0 {
				rare++
			}
		}
	}
	// The standard deviation of the share is 0.005.
	if share := float64(rare) / float64(all); all != 10000 || math.Abs(share-0.5) > 0.02 {
		t.Errorf("%v of %d drawn bags are of the rare class, want half", share, all)
	}
}

func TestOrder(t *testing.T) {
	bags := []int{3, 5, 7, 11, 13, 17, 19}
	first := shuffled(bags, 1, 1)
	if !slices.Equal(first, shuffled(bags, 1, 1)) {
		t.Error("the order of an epoch is not reproducible")
	}
	if slices.Equal(first, shuffled(bags, 1, 2)) || slices.Equal(first, shuffled(bags, 2, 1)) {
		t.Error("the order does not change with epoch and seed")
	}
	slices.Sort(first)
	if !slices.Equal(first, bags) {
		t.Errorf("the order is %v", first)
	}
}
