package generate

import (
	"fmt"
	"math"
	"slices"

	"github.com/miplc/miplc/data"
	"github.com/miplc/miplc/data/split"
	"github.com/miplc/miplc/internal/diag"
	"github.com/miplc/miplc/internal/stream"
)

// deal divides the instances into parts pools: those of every class, and the negatives.
// No pool has fewer instances of a class than the last one, nor more than one above it.
func (p *instancePool) deal(parts int, seed uint64) []*instancePool {
	r := stream.New(seed, "pools")
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

// fits reports a pool that is too small for the bags that it may be asked for.
func (p *instancePool) fits(o Options) error {
	what := "the source"
	if o.Pools > 0 {
		what = fmt.Sprintf("one of %s", diag.Count(o.Pools, "pool"))
	}
	for c, members := range p.positives {
		if need := max(1, int(o.Positives*float64(o.MaxSize)+0.5)); len(members) < need {
			return fmt.Errorf("class %s has %s in %s, but a bag may need %d", p.classes[c], diag.Count(len(members), "instance"), what, need)
		}
	}
	if len(p.negatives) < o.MaxSize {
		return fmt.Errorf("%s has %d negative instances, but a bag may need %d", what, len(p.negatives), o.MaxSize)
	}
	return nil
}

// poolOf returns the pool of bag i of a set in the order of its classes: the bags of
// a class take turns.
func poolOf(i, bags, classes, pools int) int { return i % (bags / classes) % pools }

// PoolSplit splits a set that Synth drew with o.Pools = pools, so that no instance is in
// both parts: the bags of round(o.Train*pools) pools train, those of the others test.
// The pools are drawn at random with o.Seed. Every class has the same share of bags in
// the training part when its bags divide evenly among the pools.
func SplitPools(bags, classes, pools int, o split.Options) (*data.Split, error) {
	n := int(math.Round(o.Train * float64(pools)))
	if n < 1 || n >= pools {
		return nil, diag.Errorf(diag.Pos{}, "a training share of %v of %d pools leaves %d for training and %d for testing; both need one", o.Train, pools, n, pools-n)
	}
	trains := stream.New(o.Seed, "split").Perm(pools)[:n]
	s := &data.Split{Source: fmt.Sprintf("%d of %d pools, seed %d", n, pools, o.Seed)}
	for i := range bags {
		if slices.Contains(trains, poolOf(i, bags, classes, pools)) {
			s.Train = append(s.Train, i)
		} else {
			s.Test = append(s.Test, i)
		}
	}
	return s, nil
}
