// Diagrams of ranks join exactly the learners whose ranks differ by less than the critical difference.

package plot

import (
	"bytes"
	"slices"
	"testing"

	"github.com/miplc/miplc/internal/testkit/testsupport"
)

func TestRanks(t *testing.T) {
	for _, c := range []struct {
		names    []string
		ranks    []float64
		critical float64
	}{
		{[]string{"a", "b"}, []float64{1, 2}, 1.5},
		{[]string{"DEMIPL", "a learner <with> a long & hostile name", "PRODEN", "RC", "LWS"}, []float64{1.2, 2, 2.9, 4.1,
			4.8}, 0.9},
		{[]string{"a", "b", "c"}, []float64{2, 2, 2}, 9},
	} {
		svg := Ranks("ranks", c.names, c.ranks, c.critical)
		if err := testsupport.CheckSVG(svg); err != nil {
			t.Error(err)
		}
		if !bytes.Equal(svg, Ranks("ranks", c.names, c.ranks, c.critical)) {
			t.Error("a second drawing differs")
		}
	}
}

// Groups are as large as the critical difference allows, and no group contains another.
func TestRankGroups(t *testing.T) {
	got := rankGroups([]float64{1, 1.5, 2, 3.5, 3.6}, 1)
	if want := [][2]float64{{1, 2}, {3.5, 3.6}}; !slices.Equal(got, want) {
		t.Errorf("groups %v, want %v", got, want)
	}
	got = rankGroups([]float64{1, 2, 3}, 1)
	if want := [][2]float64{{1, 2}, {2, 3}}; !slices.Equal(got, want) {
		t.Errorf("groups %v, want %v", got, want)
	}
}
