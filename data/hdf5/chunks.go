// Chunks of a dataset: their places in the file, and their filters.

package hdf5

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/miplc/miplc/internal/ndarray"
)

// chunks is the index of a chunked dataset.
type chunks struct {
	shape   []int   // of a chunk
	bytes   int     // of a whole chunk, uncompressed
	list    []chunk // one for each place in the array, by index
	filters []uint16
}

// chunk is where a chunk is stored.
type chunk struct {
	index   uint64 // of the chunk in the array, row-major
	address uint64
	size    uint32 // bytes in the file
	mask    uint32 // bit i: filter i was not applied
}

const (
	maxChunk   = 1 << 30
	maxDeflate = 1032 // times that deflate can expand data; LZF less
)

// Filters that chunks go through.
const (
	filterDeflate  = 1
	filterShuffle  = 2
	filterChecksum = 3
	filterLZF      = 32000
)

// unsupported has the names of common filters that are not supported.
var unsupported = map[uint16]string{
	4: "szip", 5: "nbit", 6: "scaleoffset", 307: "bzip2", 32001: "blosc", 32004: "lz4", 32008: "bitshuffle", 32013: "zfp",
	32015: "zstd", 32026: "blosc2",
}

// readFilters reads a filter pipeline.
func readFilters(b []byte) (list []uint16, err error) {
	const registered = 256 // filters below have no name in version 2
	f := &fields{rest: b}
	version, n := f.number(1), f.number(1)
	if version == 1 {
		f.next(6)
	}
	for range n {
		id, name := uint16(f.number(2)), uint64(0)
		if version == 1 || id >= registered {
			name = f.number(2)
		}
		f.next(2)
		values := f.number(2)
		if version == 1 {
			name, values = (name+7)/8*8, values+values%2
		}
		if f.next(name + 4*values); f.short {
			break
		}
		switch id {
		case filterDeflate, filterShuffle, filterChecksum, filterLZF:
		default:
			return nil, fmt.Errorf("its chunks went through %s (HDF5 filter %d), which is not supported; write them with "+
				"compression='gzip' in h5py, "+
				"or convert the file, on a computer with that filter: h5repack -f NONE -f GZIP=4 old.h5 new.h5",
				cmp.Or(unsupported[id], "an unknown filter"), id)
		}
		list = append(list, id)
	}
	if version != 1 && version != 2 || f.short {
		return nil, errDamaged
	}
	return list, nil
}

// placeChunks reads the layout message of a chunked dataset and the index of its chunks.
func (r *datasetReader) placeChunks(b []byte) error {
	rank := len(r.Shape)
	if b[0] != 3 {
		return errors.New("the index of its chunks has a form that HDF5 1.10 introduced, which is not supported; " + rewrite)
	}
	if len(b) < 11+4*rank || int(b[2]) != rank+1 {
		return errDamaged
	}
	c := &chunks{filters: r.filters, bytes: r.Type.Size}
	r.chunks = c
	for i := range rank {
		extent := int(le.Uint32(b[11+4*i:]))
		if extent < 1 || c.bytes > maxChunk/extent {
			return errDamaged
		}
		c.shape, c.bytes = append(c.shape, extent), c.bytes*extent
	}
	if root := le.Uint64(b[3:]); root != undefined {
		if err := r.tree(root, uint64(8+8*(rank+1)), r.add); err != nil {
			return err
		}
	}
	return c.check(r.Shape)
}

// rewrite is the remedy for forms that are not supported.
const rewrite = `write the file without libver and track_order, or rewrite it: python -c "import h5py; old, new = ` +
	`h5py.File('old.h5'), h5py.File('new.h5', 'w'); ` +
	`old.visititems(lambda n, d: new.update({n: d[()]}) if hasattr(d, 'shape') else None)"`

// add adds a chunk by its key, unless it is left from before the dataset was made smaller.
func (r *datasetReader) add(key []byte, address uint64) error {
	one, outside := chunk{address: address, size: le.Uint32(key), mask: le.Uint32(key[4:])}, false
	for axis, extent := range r.chunks.shape {
		offset, n := le.Uint64(key[8+8*axis:]), uint64(count(r.Shape[axis], extent))
		if offset%uint64(extent) != 0 {
			return errDamaged
		}
		at := offset / uint64(extent)
		outside = outside || at >= n
		one.index = one.index*n + at
	}
	if !outside {
		r.chunks.list = append(r.chunks.list, one)
	}
	return nil
}

// count is the number of chunks along an axis.
func count(extent, chunk int) int { return (extent + chunk - 1) / chunk }

// check makes sure that every chunk of the array was written, once, and that its size is
// possible.
func (c *chunks) check(shape []int) error {
	want := 1
	for axis, extent := range c.shape {
		want *= count(shape[axis], extent)
	}
	slices.SortFunc(c.list, func(a, b chunk) int { return cmp.Compare(a.index, b.index) })
	if len(c.list) < want {
		return fmt.Errorf("only %d of its %d chunks were written", len(c.list), want)
	}
	deflated := slices.Contains(c.filters, filterDeflate) || slices.Contains(c.filters, filterLZF)
	for i, one := range c.list {
		least, most := c.bytes, c.bytes+64 // with a checksum
		if deflated {
			least, most = c.bytes/maxDeflate, maxChunk
		}
		if i != int(one.index) || i >= want || int(one.size) < least || int(one.size) > min(most, maxChunk) {
			return errDamaged
		}
	}
	return nil
}

// grid is the number of chunks along each axis.
func (c *chunks) grid(shape []int) []int {
	out := make([]int, len(shape))
	for i := range out {
		out[i] = count(shape[i], c.shape[i])
	}
	return out
}

// stride is the number of values from one index of an axis to the next in a chunk.
func (c *chunks) stride(axis int) int { return ndarray.Size(c.shape[axis+1:]) }

// tree calls leaf with the key and the address of each child of the lowest nodes of the version 1 B-tree with its root
// at an address. The keys have keySize bytes.
func (s *scan) tree(root, keySize uint64, leaf func(key []byte, child uint64) error) error {
	var visit func(address uint64, depth int) error
	visit = func(address uint64, depth int) error {
		b, err := s.read(address, 24)
		if err != nil {
			return err
		}
		if string(b[:4]) != "TREE" || depth > maxDepth {
			return errDamaged
		}
		level, n := b[5], uint64(le.Uint16(b[6:]))
		entries, err := s.read(address+24, n*(keySize+8))
		if err != nil {
			return err
		}
		for ; len(entries) > 0; entries = entries[keySize+8:] {
			child := le.Uint64(entries[keySize:])
			if level > 0 {
				err = visit(child, depth+1)
			} else {
				err = leaf(entries[:keySize], child)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	return visit(root, 0)
}
