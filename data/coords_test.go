// Tests of the range of coordinates in a description.

package data

import (
	"strings"
	"testing"
)

// someCoords is a store in which only the second bag has coordinates.
type someCoords struct{ Store }

func (someCoords) Files(bag int) []File {
	return []File{{Instances: 2, Coords: [][]float32{nil, {3, 5, 1, 9}, nil}[bag]}}
}

// A bag without coordinates does not hide those of others.
func TestCoordsOfSomeBags(t *testing.T) {
	d := &Dataset{Offsets: []int{0, 2, 3, 6}, Store: someCoords{}}
	const want = "coordinates of 1 of 3 bags: x 1 to 3, y 5 to 9\n"
	r, with := coordRange(d)
	if text := (Stats{Bags: d.Bags(), Coords: r, WithCoords: with}).Details(); !strings.Contains(text, want) {
		t.Errorf("%q lacks %q", text, want)
	}
}
