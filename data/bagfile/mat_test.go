// The layouts of MAT files.

package bagfile

import (
	"path/filepath"
	"reflect"
	"testing"

	"github.com/miplc/miplc/data"
)

// The .mat files of testdata contain the same three bags in all accepted layouts. mat.py wrote them.
func TestMATLayouts(t *testing.T) {
	want := data.Dataset{
		Shape:      []int{2},
		Instances:  []float32{0.5, -1, 2, 0.25, 3, 4, 0, 1, -7.25, 300, 0.125, 0.75},
		Offsets:    []int{0, 2, 3, 6},
		Candidates: []uint8{1, 1, 0, 0, 1, 1, 1, 0, 1},
		Classes:    3,
		Labels:     []int{0, 2, 0},
		ClassNames: []string{"1", "2", "3"},
	}
	unlabeled, instances := want, want
	unlabeled.Labels = nil
	instances.InstLabels = []int{0, -1, 2, -1, -1, 0}
	for name, want := range map[string]data.Dataset{
		"bags": want, "bags-plain": want, "bags-vector": want, "bags-named": want,
		"bags-logical": unlabeled, "bags-instances": instances,
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Open(filepath.Join("testdata", name+".mat"))
			if err != nil {
				t.Fatal(err)
			}
			want.Name = name
			if !reflect.DeepEqual(*got, want) {
				t.Errorf("got  %+v\nwant %+v", *got, want)
			}
		})
	}
}
