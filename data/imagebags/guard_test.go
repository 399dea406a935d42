// TIFF files that claim too much are refused.

package imagebags

import (
	"bytes"
	"encoding/binary"
	"io"
	"strings"
	"testing"
)

// field is one field of a TIFF directory with an inline value.
type field struct {
	tag, kind    uint16
	count, value uint32
}

// madeTIFF returns a grey image of 4x2 pixels with some fields changed.
func madeTIFF(order binary.AppendByteOrder, change ...field) []byte {
	start := "II*\x00"
	if order.String() == "BigEndian" {
		start = "MM\x00*"
	}
	fields := []field{{256, 4, 1, 4}, {257, 4, 1, 2}, {258, 4, 1, 8}, {259, 4, 1, 1}, {262, 4, 1, 1}, {273, 4, 1, 8},
		{278, 4, 1, 2}, {279, 4, 1, 8}}
	for _, c := range change {
		at := len(fields)
		for i, f := range fields {
			if f.tag == c.tag {
				at = i
			}
		}
		fields = append(fields[:at], append([]field{c}, fields[min(at+1, len(fields)):]...)...)
	}
	b := order.AppendUint32([]byte(start), 16)
	b = append(b, 10, 20, 30, 40, 50, 60, 70, 80) // the pixels, at offset 8
	b = order.AppendUint16(b, uint16(len(fields)))
	for _, f := range fields {
		b = order.AppendUint32(order.AppendUint16(order.AppendUint16(b, f.tag), f.kind), f.count)
		if f.kind == 3 {
			b = order.AppendUint16(order.AppendUint16(b, uint16(f.value)), 0)
		} else {
			b = order.AppendUint32(b, f.value)
		}
	}
	return order.AppendUint32(b, 0)
}

// Valid files are read, also if the directory says that all rows are in one strip. Files whose
// directory claims much more data than they contain are rejected before a decoder reads them.
func TestGuard(t *testing.T) {
	for _, c := range []struct {
		name    string
		content []byte
		want    string // of the error; empty: read
	}{
		{"sound", madeTIFF(binary.LittleEndian), ""},
		{"big-endian", madeTIFF(binary.BigEndian), ""},
		{"all rows in one strip", madeTIFF(binary.LittleEndian, field{278, 4, 1, 1<<32 - 1}), ""},
		{"the same as a short, big-endian", madeTIFF(binary.BigEndian, field{278, 3, 1, 65535}), ""},
		{"directory at the end of 4 GiB", append([]byte("II*\x00\xff\xff\xff\xff"), make([]byte, 99)...), "cut short"},
		{"fax", madeTIFF(binary.LittleEndian, field{259, 4, 1, 4}), "fax compression"},
		{"strip longer than the file", madeTIFF(binary.LittleEndian, field{279, 4, 1, 1 << 31}),
			"its parts are larger than the file"},
		{"much PackBits", append(madeTIFF(binary.LittleEndian, field{259, 4, 1, 32773}, field{279, 4, 1, 17 << 20}),
			make([]byte, 17<<20)...), "PackBits"},
		{"field of a billion values", madeTIFF(binary.LittleEndian, field{278, 1, 1 << 30, 0}),
			"one of its TIFF fields has 1073741824 values"},
		{"rows twice", madeTIFF(binary.LittleEndian, field{278, 3, 2, 9}), "not one number"},
		{"tile of a billion pixels", madeTIFF(binary.LittleEndian, field{322, 4, 1, 1 << 20}, field{323, 4, 1, 1 << 10}),
			"in tiles of 1048576x1024 pixels"},
		{"one very long row", madeTIFF(binary.LittleEndian, field{256, 4, 1, 24_999_999}, field{257, 4, 1, 1}),
			"24999999x1 pixels; the limit of a side is 65535"},
		{"too many pixels", madeTIFF(binary.LittleEndian, field{256, 4, 1, 1 << 20}, field{257, 4, 1, 1 << 20}),
			"claims 1048576x1048576 pixels"},
		{"scans", append([]byte("\xff\xd8"), bytes.Repeat([]byte("\xff\xda\x00"), 501)...), "the JPEG image has 501 scans"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := Image{open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(c.content)), nil }}
			got, err := m.Read(Size{}, Limits{})
			switch {
			case c.want == "" && err != nil:
				t.Errorf("not read: %v", err)
			case c.want == "" && got.Bounds().Dx() == 4 && got.RGBAAt(3, 1).R != 80:
				t.Errorf("the last pixel is %v", got.RGBAAt(3, 1))
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

// The size of an archive limits the total number of pixels of its images.
func TestAllowance(t *testing.T) {
	for size, pixels := range map[int64]int{0: freePixels, 1 << 20: freePixels, 100 << 20: maxPixelsPerByte * 100 << 20} {
		a := newPixelBudget(size)
		if err := a.spend(pixels); err != nil {
			t.Errorf("%d bytes: %v", size, err)
		}
		if err := a.spend(1); err == nil || !strings.Contains(err.Error(), "unpack it if it can be trusted") {
			t.Errorf("%d bytes: one pixel more: %v", size, err)
		}
	}
	if err := (*pixelBudget)(nil).spend(1 << 60); err != nil {
		t.Errorf("a folder: %v", err)
	}
}
