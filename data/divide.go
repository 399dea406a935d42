// Division of bags into parts of given shares: stratified by class, with whole groups.

package data

import (
	"cmp"
	"math"
	"slices"

	"github.com/miplc/miplc/internal/ndarray"
)

// drawBags divides bags into two parts with the given shares, and marks the bags of one part. Part 0 has
// the training bags. Whole groups, and bags with several labels, are divided about by the shares.
func drawBags(labels [][]int, groups []string, shares [2]float64, part int, seed uint64, purpose string) []bool {
	marks := make([]bool, len(labels))
	if groups != nil || several(labels) {
		for bag, p := range assign(unitsOf(labels, groups), labels, shares[:], groups != nil, seed, purpose) {
			marks[bag] = p == part
		}
		return marks
	}
	order := ndarray.NewStream(seed, purpose).Perm(len(labels))
	left := quotas(order, labels, shares[part], int(math.Round(shares[part]*float64(len(labels)))), part == 0)
	for _, bag := range order {
		class := labels[bag][0]
		marks[bag] = left[class] > 0
		left[class]--
	}
	return marks
}

// partition returns the bags with and without a mark; marks[i] is that of bags[i].
func partition(bags []int, marks []bool) (marked, others []int) {
	for i, bag := range bags {
		if marks[i] {
			marked = append(marked, bag)
		} else {
			others = append(others, bag)
		}
	}
	return marked, others
}

// numbers returns 0 to n-1.
func numbers(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// several reports whether a bag has several labels or none.
func several(labels [][]int) bool {
	return slices.ContainsFunc(labels, func(set []int) bool { return len(set) != 1 })
}

// unit is a list of bags that stay together: a group, or one bag.
type unit []int

// unitsOf returns the units in the order of their first bags.
func unitsOf(labels [][]int, groups []string) []unit {
	var units []unit
	of := map[string]int{}
	for bag := range labels {
		if groups == nil {
			units = append(units, unit{bag})
			continue
		}
		u, known := of[groups[bag]]
		if !known {
			u, units = len(units), append(units, nil)
			of[groups[bag]] = u
		}
		units[u] = append(units[u], bag)
	}
	return units
}

// assign divides the bags of units into parts with the given shares. It returns the part of each bag. In the order of
// sortUnits, each unit is assigned to the part where it decreases most the squared differences between the number of
// bags and the target (share times size), summed over its classes and all bags, each divided by its size; with several
// labels also by the share.
func assign(units []unit, labels [][]int, shares []float64, grouped bool, seed uint64, purpose string) []int {
	size, sets := map[int]float64{}, several(labels)
	for _, set := range labels {
		for _, c := range set {
			size[c]++
		}
	}
	order := ndarray.NewStream(seed, purpose).Perm(len(units))
	sortUnits(order, units, labels, size, grouped)
	counts, bags := make([]map[int]float64, len(shares)), make([]float64, len(shares))
	for p := range counts {
		counts[p] = map[int]float64{}
	}
	parts := make([]int, len(labels))
	for _, u := range order {
		own := map[int]float64{}
		var classes []int // in a fixed order, because sums of floats depend on it
		for _, bag := range units[u] {
			for _, c := range labels[bag] {
				if own[c] == 0 {
					classes = append(classes, c)
				}
				own[c]++
			}
		}
		n, best, least := float64(len(units[u])), 0, math.Inf(1)
		for p, share := range shares {
			cost := n * (n + 2*(bags[p]-float64(share*float64(len(labels))))) / float64(len(labels))
			for _, c := range classes {
				cost += own[c] * (own[c] + 2*(counts[p][c]-float64(share*size[c]))) / size[c]
			}
			if sets {
				cost /= share // fills the parts in proportion: common labels must not draw bags of rare ones to the larger part
			}
			if cost < least-1e-9 {
				best, least = p, cost
			}
		}
		for _, bag := range units[u] {
			parts[bag] = best
			for _, c := range labels[bag] {
				counts[best][c]++
			}
		}
		bags[best] += n
	}
	return parts
}

// sortUnits sorts units in random order: groups from the largest to the smallest, bags with several labels by their
// rarest label, and others class by class. size is the number of bags of each class.
func sortUnits(order []int, units []unit, labels [][]int, size map[int]float64, grouped bool) {
	rarest := func(u int) float64 { // of bags without labels: the number of bags
		least := float64(len(labels))
		for _, c := range labels[units[u][0]] {
			least = min(least, size[c])
		}
		return least
	}
	switch {
	case grouped:
		slices.SortStableFunc(order, func(a, b int) int { return len(units[b]) - len(units[a]) })
	case several(labels):
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(rarest(a), rarest(b)) })
	default:
		slices.SortStableFunc(order, func(a, b int) int { return labels[units[a][0]][0] - labels[units[b][0]][0] })
	}
}

// quotas returns the number of bags of each class in a part, n in total: its share rounded down, and
// one more for the classes with the largest remainders. If n allows it, a class of two or more bags is
// in both parts, and the only bag of a class is a training bag. The random order breaks ties, so that
// no class is preferred.
func quotas(order []int, labels [][]int, share float64, n int, training bool) map[int]int {
	type class struct{ label, size, quota int }
	var classes []*class
	byLabel := map[int]*class{}
	for _, bag := range order {
		c := byLabel[labels[bag][0]]
		if c == nil {
			c = &class{label: labels[bag][0]}
			byLabel[c.label], classes = c, append(classes, c)
		}
		c.size++
	}
	for _, c := range classes {
		c.quota = int(share * float64(c.size))
		n -= c.quota
	}
	urgency := func(c *class) float64 {
		remainder := float64(share*float64(c.size)) - float64(c.quota)
		switch {
		case c.quota == 0 && (training || c.size > 1):
			return 1 + remainder // otherwise the class has no bag in this part
		case c.quota+1 == c.size:
			return remainder - 1 // the class would have no bag in the other part
		}
		return remainder
	}
	slices.SortStableFunc(classes, func(a, b *class) int { return cmp.Compare(urgency(b), urgency(a)) })
	out := map[int]int{}
	for i, c := range classes {
		out[c.label] = c.quota
		if i < n {
			out[c.label]++
		}
	}
	return out
}

// distinct returns the distinct values in the order of their first occurrence.
func distinct[T comparable](values []T) (list []T) {
	seen := map[T]bool{}
	for _, v := range values {
		if !seen[v] {
			seen[v], list = true, append(list, v)
		}
	}
	return list
}
