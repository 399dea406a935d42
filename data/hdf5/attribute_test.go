// Attributes of h5py in old and new files.

package hdf5

import "testing"

func TestNumber(t *testing.T) {
	for _, name := range []string{"attributes.h5", "attributes-latest.h5"} {
		d, err := open(t, name).Dataset("coords")
		if err != nil {
			t.Fatal(err)
		}
		for attribute, want := range map[string]float64{"patch_size_level0": 256, "overlap": 0.5, "sizes": 3,
			"pr\u00e4parat": -7} {
			if v, ok := d.Number(attribute); v != want || !ok {
				t.Errorf("%s: %s is %v, %v, want %v", name, attribute, v, ok, want)
			}
		}
		for _, attribute := range []string{"name", "other", ""} {
			if v, ok := d.Number(attribute); ok {
				t.Errorf("%s: %s is %v", name, attribute, v)
			}
		}
	}
	for _, b := range [][]byte{nil, {1}, {3, 0, 255, 255, 255, 255, 255, 255, 0}, {1, 0, 255, 255, 255, 255, 255, 255}} {
		if name, v, ok := readAttribute(b); ok {
			t.Errorf("%v: %q is %v", b, name, v)
		}
	}
}
