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
		var svg, again bytes.Buffer
		if err := Ranks(&svg, "ranks", c.names, c.ranks, c.critical); err != nil {
			t.Fatal(err)
		}
		if err := testsupport.CheckSVG(svg.Bytes()); err != nil {
			t.Error(err)
		}
		if err := Ranks(&again, "ranks", c.names, c.ranks, c.critical); err != nil ||
			!bytes.Equal(svg.Bytes(), again.Bytes()) {
			t.Errorf("a second drawing differs: %v", err)
		}
	}
	if Ranks(&bytes.Buffer{}, "ranks", []string{"a"}, []float64{1}, 1) == nil {
		t.Error("one learner is drawn")
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
