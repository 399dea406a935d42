// The authors' dataset Lost.

package plaggd

import (
	"math"
	"os"
	"testing"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/rawfile"
	"github.com/miplc/miplc/internal/testkit/testsupport"
	"github.com/miplc/miplc/train"
)

// lost returns the dataset that the authors of PL-AGGD published with their program: 1122 faces as
// bags of one instance. The labels of the second half are known, and it is the test part.
func lost(t *testing.T) (set *data.Dataset, train, test []int) {
	t.Helper()
	file, err := os.Open(testsupport.Data(t, "Lost.mat", "the repository dengbaowang/PL-AGGD has it"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	list, err := rawfile.ReadMAT(file, rawfile.FixedLimit("the file", 1<<26))
	if err != nil {
		t.Fatal(err)
	}
	vars := map[string]*rawfile.MATArray{}
	for _, a := range list {
		vars[a.Name] = a
	}
	set = &data.Dataset{Name: "Lost", Shape: []int{108}, Classes: 16, Offsets: []int{0}}
	for part, names := range [][2]string{{"train_data", "train_p_target"}, {"test_data", "test_target"}} {
		x, y := vars[names[0]], vars[names[1]]
		rows := x.Dims[0]
		for i := range rows {
			if part == 0 {
				train = append(train, set.Bags())
				set.Labels = append(set.Labels, -1)
			} else {
				test = append(test, set.Bags())
			}
			for j := range 108 {
				set.Instances = append(set.Instances, float32(x.Numbers[j*rows+i]))
			}
			for c := range 16 {
				in := y.Numbers[c*rows+i]
				set.Candidates = append(set.Candidates, uint8(in))
				if part == 1 && in == 1 {
					set.Labels = append(set.Labels, c)
				}
			}
			set.Offsets = append(set.Offsets, len(set.Offsets))
		}
	}
	return set, train, test
}

func accuracy(t *testing.T, m train.FittedModel, set *data.Dataset, test []int) float64 {
	t.Helper()
	right := 0
	for _, bag := range test {
		p, _, err := m.Predict(bagValues(set, bag), set.Size(bag))
		if err != nil {
			t.Fatal(err)
		}
		best := 0
		for c, v := range p {
			if v > p[best] {
				best = c
			}
		}
		if best == set.Labels[bag] {
			right++
		}
	}
	return float64(right) / float64(len(test))
}

// TestLost reproduces the results of another solver in testdata/lost.py: the loss of every round and
// the number of correct test faces.
func TestLost(t *testing.T) {
	set, fitted, test := lost(t)
	want := []float64{253.3178205, 251.1119515, 250.3301086, 249.9747398, 249.7855722, 249.673572, 249.6032021,
		249.5578355, 249.5276126, 249.5069881}
	m := mustFit(t, settings(), &train.Problem{Data: set, Train: fitted}, func(i train.Iteration) {
		if i.Number > 0 && math.Abs(i.Loss-want[i.Number-1]) > 1e-5 {
			t.Errorf("round %d: loss %.10g, the independent method has %.10g", i.Number, i.Loss, want[i.Number-1])
		}
	})
	if got := math.Round(accuracy(t, m, set, test) * float64(len(test))); got != 398 {
		t.Errorf("%g of %d test faces are correct, the independent method has 398", got, len(test))
	}
}
