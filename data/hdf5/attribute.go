// Attributes of datasets that are numbers.

package hdf5

import "bytes"

// Number returns the value of an attribute that is a number. ok is false if the dataset has no such attribute in its
// header: it may have one elsewhere if it has more than eight.
func (d *Dataset) Number(name string) (value float64, ok bool) {
	for _, b := range d.attributes {
		if found, v, ok := readAttribute(b); ok && found == name {
			return v, true
		}
	}
	return 0, false
}

// readAttribute reads the name and the first number of an attribute.
func readAttribute(b []byte) (name string, value float64, ok bool) {
	const sharedType = 1
	f := &fields{rest: b}
	version, flags := f.number(1), f.number(1)
	sizes := []uint64{f.number(2), f.number(2), f.number(2)} // of the name, the type and the extents
	switch version {
	case 1:
		for i, n := range sizes {
			sizes[i] = (n + 7) / 8 * 8
		}
		flags = 0 // reserved
	case 2:
	case 3:
		f.next(1) // character set of the name
	default:
		return "", 0, false
	}
	text, number := f.next(sizes[0]), f.next(sizes[1])
	f.next(sizes[2])
	t, err := readType(number)
	if err != nil || f.short || flags&sharedType != 0 || len(f.rest) < t.Size {
		return "", 0, false
	}
	var v [1]float32
	t.Floats(v[:], f.rest[:t.Size])
	before, _, _ := bytes.Cut(text, []byte{0})
	return string(before), float64(v[0]), true
}
