// Pools of instances for training and test.

package generate

import (
	"fmt"
	"math"
	"math/big"
	"slices"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/ndarray"
)

// split divides the instances of every class, and the negatives, into parts pools. The pools have
// equally many instances of a class, or one more than the last pool.
func (p *instancePool) split(parts int, seed uint64) []*instancePool {
	r := ndarray.NewStream(seed, "pools")
	pools := make([]*instancePool, parts)
	for i := range pools {
		part := *p
		part.positives, part.negatives = make([][]int, len(p.positives)), nil
		pools[i] = &part
	}
	for c, members := range p.positives {
		for i, at := range r.Perm(len(members)) {
			to := pools[i%parts]
			to.positives[c] = append(to.positives[c], members[at])
		}
	}
	for i, at := range r.Perm(len(p.negatives)) {
		to := pools[i%parts]
		to.negatives = append(to.negatives, p.negatives[at])
	}
	return pools
}

// checkSize returns an error if the pool is too small for a bag.
func (p *instancePool) checkSize(o Design) error {
	what := "the source"
	if o.Pools > 0 {
		what = fmt.Sprintf("one of %s", diag.Count(o.Pools, "pool"))
	}
	for c, members := range p.positives {
		if need := max(1, int(o.Positives*float64(o.MaxSize)+0.5)); len(members) < need {
			return fmt.Errorf("class %s has %s in %s, but a bag may need %d", p.classes[c], diag.Count(len(members), "instance"),
				what, need)
		}
	}
	if len(p.negatives) < o.MaxSize {
		return fmt.Errorf("%s has %d negative instances, but a bag may need %d", what, len(p.negatives), o.MaxSize)
	}
	return nil
}

// poolOf returns the pool of bag i of a dataset in the order of its classes. The bags of a class
// use the pools in turn.
func poolOf(i, bags, classes, pools int) int { return i % (bags / classes) % pools }

// SplitPools returns splits of a dataset that Synth generated with the given number of pools. No
// instance is in both parts: the bags of round(o.Train*pools) pools are training bags, the others
// test bags. Every class has the same share of training bags if its bags divide evenly among the
// pools. The pools are drawn with o.Seed and the seeds after it; a seed that selects the pools of an
// earlier split is skipped. There are count splits, or fewer if the pools have no more.
func SplitPools(bags, classes, pools, count int, o data.SplitSettings) ([]*data.Split, error) {
	n := int(math.Round(o.Train * float64(pools)))
	if err := data.CheckParts(data.SettingTrain, o.Train, fmt.Sprintf("%d pools", pools), n, pools-n); err != nil {
		return nil, err
	}
	if ways := new(big.Int).Binomial(int64(pools), int64(n)); ways.Cmp(big.NewInt(int64(count))) < 0 {
		count = int(ways.Int64())
	}
	var list []*data.Split
	for drawn := map[string]bool{}; len(list) < count; o.Seed++ {
		trains := ndarray.NewStream(o.Seed, "split").Perm(pools)[:n]
		slices.Sort(trains)
		if drawn[fmt.Sprint(trains)] {
			continue
		}
		drawn[fmt.Sprint(trains)] = true
		s := &data.Split{Source: fmt.Sprintf("%d of %d pools, seed %d", n, pools, o.Seed)}
		for i := range bags {
			if slices.Contains(trains, poolOf(i, bags, classes, pools)) {
				s.Train = append(s.Train, i)
			} else {
				s.Test = append(s.Test, i)
			}
		}
		list = append(list, s)
	}
	return list, nil
}
