// The candidate sets that a reader allocates. Numbers in a wrong place, such as dates instead of labels, must not
// allocate much memory.

package bagfile

import (
	"fmt"

	"github.com/miplc/miplc/data/rawfile"
	"github.com/miplc/miplc/internal/diag"
)

// emptyCandidates returns the candidate sets of bags without any candidate, [bags, classes]. It returns an error if
// they need too much memory.
func emptyCandidates(limit rawfile.Limit, bags, classes int) ([]uint8, error) {
	err := limit.Budget().Check(fmt.Sprintf("a table of %s for %s", diag.Count(classes, "candidate label"),
		diag.Count(bags, "bag")), float64(classes)*float64(bags), "check the column of the candidates")
	if err != nil {
		return nil, err
	}
	return make([]uint8, bags*classes), nil
}

// classesUpTo returns the number of classes of a file whose labels are the numbers from first to largest. It returns an
// error if there are fewer examples than classes. Validate reports each class without examples, too, but needs memory
// for all of them.
func classesUpTo(first, largest, examples int, what string) (int, error) {
	if largest-first >= examples {
		return 0, fmt.Errorf("the largest label is %d, but the bags have only %s in all, so some classes have no examples: "+
			"labels are the numbers of classes, counted from %d", largest, diag.Count(examples, what), first)
	}
	return largest - first + 1, nil
}
