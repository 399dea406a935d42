// Needs of JPEG and TIFF files, checked before they are decoded.

package imagebags

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

// Limits for what decoders process. Normal images stay far below.
const (
	maxScans    = 500      // of a progressive JPEG; each scan may process all pixels
	maxValues   = 4 << 20  // of one TIFF field
	maxPackBits = 16 << 20 // bytes in TIFF's PackBits, which expands up to 64-fold
)

// guardJPEG rejects files that need more time to decode than the limits on size and pixels allow.
func guardJPEG(content []byte, _ Limits) error {
	if n := bytes.Count(content, []byte{0xff, 0xda}); n > maxScans {
		return fmt.Errorf("the JPEG image has %d scans, more than the limit of %d", n, maxScans)
	}
	return nil
}

// Fields and compressions of TIFF 6.0.
const (
	tagWidth       = 256
	tagHeight      = 257
	tagCompression = 259
	tagStripCounts = 279
	tagStripRows   = 278
	tagTileWidth   = 322
	tagTileHeight  = 323
	tagTileCounts  = 325

	fax1, fax4 = 2, 4 // fax compressions are fax1 to fax4
	packBits   = 32773
)

// tiffFields are the fields that the guard checks.
type tiffFields struct {
	value map[uint16]uint32 // first value of each field
	sum   map[uint16]uint64 // of all values, for the fields of byte counts
	rows  []byte            // location of the single value of tagStripRows, 2 or 4 bytes
}

// guardTIFF checks the first directory of a file against the limits, because the decoder trusts the
// sizes of strips and tiles, and how often a part of the file is used. It reduces the rows of a
// strip to those of the image, because many programs write a larger number for a single strip.
func guardTIFF(content []byte, limits Limits) error {
	var order binary.ByteOrder = binary.LittleEndian
	if content[0] == 'M' {
		order = binary.BigEndian
	}
	f, err := readTIFFFields(content, order)
	if err != nil {
		return err
	}
	width, height := int64(f.value[tagWidth]), int64(f.value[tagHeight])
	if width > 0 && height > int64(limits.pixels())/width {
		return nil // the caller reports too many pixels
	}
	packed := f.sum[tagStripCounts] + f.sum[tagTileCounts]
	switch c := f.value[tagCompression]; {
	case c >= fax1 && c <= fax4:
		return errors.New("TIFF images in fax compression are not read; save as PNG")
	case c == packBits && packed > maxPackBits:
		return fmt.Errorf("TIFF images of more than %d bytes in PackBits are not read; save as PNG", maxPackBits)
	case packed > 2*uint64(len(content)):
		return errors.New("the image cannot be decoded: its parts are larger than the file")
	}
	if int64(f.value[tagStripRows]) > height {
		at := f.rows
		if at == nil {
			return errors.New("the image cannot be decoded: the number of rows in a strip is not one number")
		}
		if len(at) == 2 {
			order.PutUint16(at, uint16(height)) // smaller than the previous value
		} else {
			order.PutUint32(at, uint32(height))
		}
	}
	if w, h := int64(f.value[tagTileWidth]), int64(f.value[tagTileHeight]); w > 0 && h > 0 {
		across, down := (width+w-1)/w*w, (height+h-1)/h*h
		if across > 0 && down > int64(limits.pixels())/across {
			return fmt.Errorf("the image is in tiles of %dx%d pixels, in all more than the limit of %d", w, h, limits.pixels())
		}
	}
	return nil
}

// readTIFFFields reads the directory. The decoder rejects invalid ones.
func readTIFFFields(content []byte, order binary.ByteOrder) (*tiffFields, error) {
	f := &tiffFields{value: map[uint16]uint32{}, sum: map[uint16]uint64{}}
	if len(content) < 8 {
		return f, nil
	}
	at := int64(order.Uint32(content[4:]))
	if at+2 > int64(len(content)) {
		return f, nil
	}
	entries := int64(order.Uint16(content[at:]))
	for at += 2; entries > 0 && at+12 <= int64(len(content)); entries, at = entries-1, at+12 {
		if err := f.entry(content, int(at), order); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// entry reads one field of 12 bytes: tag, type, count, and value or offset.
func (f *tiffFields) entry(content []byte, at int, order binary.ByteOrder) error {
	tag, kind, count := order.Uint16(content[at:]), order.Uint16(content[at+2:]), order.Uint32(content[at+4:])
	size := map[uint16]int64{1: 1, 3: 2, 4: 4}[kind] // bytes, shorts, longs
	if size == 0 || count == 0 {
		return nil
	}
	if count > maxValues {
		return fmt.Errorf("the image cannot be decoded: one of its TIFF fields has %d values, more than the limit of %d",
			count, maxValues)
	}
	from := int64(at + 8)
	if size*int64(count) > 4 {
		from = int64(order.Uint32(content[at+8:]))
	} else if tag == tagStripRows && count == 1 && size > 1 {
		f.rows = content[at+8 : at+8+int(size)]
	}
	if from+size*int64(count) > int64(len(content)) {
		return nil
	}
	number := func(i int64) uint32 {
		switch p := content[from+i*size:]; size {
		case 1:
			return uint32(p[0])
		case 2:
			return uint32(order.Uint16(p))
		default:
			return order.Uint32(p)
		}
	}
	f.value[tag] = number(0)
	if tag == tagStripCounts || tag == tagTileCounts {
		for i := range int64(count) {
			f.sum[tag] += uint64(number(i))
		}
	}
	return nil
}
