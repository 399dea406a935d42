package parquet

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
)

// page is the header of a page.
type page struct {
	kind         int64
	size, stored int64 // bytes without and with compression
	values       int64 // including missing ones
	encoding     int64
	defs, reps   int64 // bytes of the levels of version 2
	levels       [2]int64
	compressed   bool // of version 2
	hasHeader    bool // of the kind
}

// Kinds of pages.
const (
	pageData       = 0
	pageDictionary = 2
	pageData2      = 3
)

const (
	maxHeader = 1 << 16   // bytes of a page header; statistics can contain long texts
	maxPage   = 256 << 20 // bytes of a page; writers aim at 1 MiB
)

// readPage reads a PageHeader.
func readPage(t *thrift) page {
	p := page{compressed: true}
	t.object(func(id int, kind byte) {
		switch id {
		case 1:
			p.kind = t.int(kind)
		case 2:
			p.size = t.int(kind)
		case 3:
			p.stored = t.int(kind)
		case 5, 7, 8: // headers of data, dictionary and data of version 2
			if kind != thriftStruct {
				t.fail()
				return
			}
			p.hasHeader = true
			t.object(func(field int, kind byte) { p.field(t, id, field, kind) })
		default:
			t.skip(kind)
		}
	})
	return p
}

// field reads a field of the header of a kind of pages.
func (p *page) field(t *thrift, header, field int, kind byte) {
	const version2 = 8
	switch {
	case field == 1:
		p.values = t.int(kind)
	case header != version2 && field == 2, header == version2 && field == 4:
		p.encoding = t.int(kind)
	case header != version2 && (field == 3 || field == 4):
		p.levels[field-3] = t.int(kind)
	case header == version2 && field == 5:
		p.defs = t.int(kind)
	case header == version2 && field == 6:
		p.reps = t.int(kind)
	case header == version2 && field == 7:
		p.compressed = t.int(kind) != 0
	default:
		t.skip(kind)
	}
}

// pageReader reads the pages of a chunk.
type pageReader struct {
	*Column
	chunk
	in         *bufio.Reader
	left       int64 // bytes of the chunk
	seen       int   // values
	dictionary *values
	stored     []byte // buffers
	plain      bytes.Buffer
	zstd       *zstd.Decoder
	gzip       gzip.Reader
}

// next reads the values of the next page with data. It returns nil after the last one.
func (r *pageReader) next() (*values, error) {
	for r.seen < r.chunk.values {
		p, err := r.header()
		if err != nil {
			return nil, err
		}
		switch p.kind {
		case pageDictionary:
			if r.dictionary != nil {
				return nil, errDamaged
			}
			raw, err := r.content(p.size, p.stored, true)
			if err == nil {
				r.dictionary = &values{n: int(p.values)}
				err = r.plainValues(r.dictionary, bytes.Clone(raw), r.dictionary.n)
			}
			if err != nil {
				return nil, err
			}
		case pageData, pageData2:
			if p.values == 0 || p.values > int64(r.chunk.values-r.seen) {
				return nil, errDamaged
			}
			r.seen += int(p.values)
			if p.kind == pageData {
				return r.data(p)
			}
			return r.data2(p)
		default: // an index
			if _, err := r.content(p.stored, p.stored, false); err != nil {
				return nil, err
			}
		}
	}
	return nil, nil
}

// header reads the header of the next page.
func (r *pageReader) header() (page, error) {
	// A header has no length; almost all are shorter than 100 bytes.
	for n := int64(256); ; n *= 16 {
		b, err := r.in.Peek(int(min(n, r.left)))
		if err != nil {
			return page{}, readError(err)
		}
		t := &thrift{b: b}
		p := readPage(t)
		if t.failed {
			if n >= min(r.left, maxHeader) {
				return p, errDamaged
			}
			continue
		}
		size := len(b) - len(t.b)
		r.in.Discard(size)
		r.left -= int64(size)
		if !p.hasHeader && p.kind != 1 || p.size < 0 || p.stored < 0 || p.stored > r.left || p.values < 0 || p.defs < 0 || p.reps < 0 {
			return p, errDamaged
		}
		if max(p.size, p.stored, p.values) > maxPage {
			return p, fmt.Errorf("a page of the column has more than %d MiB; write the file with smaller pages (1 MiB is usual)", maxPage>>20)
		}
		return p, nil
	}
}

func readError(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errDamaged
	}
	return err
}

// content reads stored bytes, which are size bytes without compression. The result is valid until
// the next call.
func (r *pageReader) content(size, stored int64, compressed bool) ([]byte, error) {
	if stored > r.left {
		return nil, errDamaged
	}
	r.left -= stored
	if int64(cap(r.stored)) < stored {
		r.stored = make([]byte, stored)
	}
	r.stored = r.stored[:stored]
	if _, err := io.ReadFull(r.in, r.stored); err != nil {
		return nil, readError(err)
	}
	if !compressed {
		return r.stored, nil
	}
	b, err := r.decompress(size)
	if err != nil || int64(len(b)) != size {
		if errors.As(err, new(*unsupportedError)) {
			return nil, err
		}
		return nil, errors.Join(errDamaged, err)
	}
	return b, nil
}

// unsupportedError reports a codec or an encoding.
type unsupportedError struct{ what, instead string }

func (e *unsupportedError) Error() string {
	return fmt.Sprintf("it uses %s, which is not supported; %s", e.what, e.instead)
}

// decompress decompresses r.stored to at most size bytes and one.
func (r *pageReader) decompress(size int64) ([]byte, error) {
	const none, snappyCodec, gzipCodec, zstdCodec = 0, 1, 2, 6
	names := map[int64]string{3: "LZO", 4: "Brotli", 5: "LZ4", 7: "LZ4"}
	switch r.codec {
	case none:
		return r.stored, nil
	case snappyCodec:
		const most = 64 // a copy of 64 bytes has 3
		n, err := snappy.DecodedLen(r.stored)
		if err != nil || int64(n) != size || n > most*len(r.stored) {
			return nil, errDamaged
		}
		r.plain.Reset()
		r.plain.Grow(n)
		return snappy.Decode(r.plain.AvailableBuffer()[:n], r.stored)
	case gzipCodec:
		if err := r.gzip.Reset(bytes.NewReader(r.stored)); err != nil {
			return nil, err
		}
		return r.limited(&r.gzip, size)
	case zstdCodec:
		if r.zstd == nil {
			var err error
			if r.zstd, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxPage), zstd.WithDecoderLowmem(true)); err != nil {
				return nil, err
			}
		}
		if err := r.zstd.Reset(bytes.NewReader(r.stored)); err != nil {
			return nil, err
		}
		return r.limited(r.zstd, size)
	}
	name := names[r.codec]
	if name == "" {
		return nil, errDamaged
	}
	return nil, &unsupportedError{"the compression " + name, "write the file with compression='zstd'"}
}

// limited reads at most size bytes and one.
func (r *pageReader) limited(in io.Reader, size int64) ([]byte, error) {
	r.plain.Reset()
	_, err := r.plain.ReadFrom(io.LimitReader(in, size+1))
	return r.plain.Bytes(), err
}

// close frees the decoder.
func (r *pageReader) close() {
	if r.zstd != nil {
		r.zstd.Close()
	}
}
