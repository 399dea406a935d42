// Where the chunks of a dataset are, and their filters.

package hdf5

import (
	"cmp"
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
func readFilters(b []byte) ([]uint16, error) {
	if len(b) < 2 || b[0] != 1 && b[0] != 2 {
		return nil, errDamaged
	}
	version, n := b[0], int(b[1])
	if b = b[2:]; version == 1 {
		if len(b) < 6 {
			return nil, errDamaged
		}
		b = b[6:]
	}
	var list []uint16
	for range n {
		id, size, ok := filter(b, version)
		if !ok {
			return nil, errDamaged
		}
		switch id {
		case filterDeflate, filterShuffle, filterChecksum, filterLZF:
		default:
			name := unsupported[id]
			if name == "" {
				name = "an unknown filter"
			}
			return nil, fmt.Errorf("its chunks went through %s (HDF5 filter %d), which is not supported; write them with "+
				"compression='gzip' in h5py, "+
				"or convert the file, on a computer with that filter: h5repack -f NONE -f GZIP=4 old.h5 new.h5", name, id)
		}
		list, b = append(list, id), b[size:]
	}
	return list, nil
}

// filter returns the number of the filter at the start of b and the size of its entry.
func filter(b []byte, version byte) (id uint16, size int, ok bool) {
	const registered = 256 // filters below have no name in version 2
	if len(b) < 6 {
		return 0, 0, false
	}
	id = le.Uint16(b)
	name, at := 0, 2
	if version == 1 || id >= registered {
		name, at = int(le.Uint16(b[2:])), 4
	}
	if len(b) < at+4 {
		return 0, 0, false
	}
	values := int(le.Uint16(b[at+2:]))
	if version == 1 {
		name = (name + 7) / 8 * 8
		values += values % 2
	}
	size = at + 4 + name + 4*values
	return id, size, size <= len(b)
}

// placeChunks reads the layout message of a chunked dataset and the index of its chunks.
func (r *datasetReader) placeChunks(b []byte) error {
	rank := len(r.Shape)
	c := &chunks{filters: r.filters}
	r.chunks = c
	var index func() error
	if b[0] == 3 {
		if len(b) < 11+4*rank || int(b[2]) != rank+1 {
			return errDamaged
		}
		for i := range rank {
			c.shape = append(c.shape, int(le.Uint32(b[11+4*i:])))
		}
		index = func() error {
			if root := le.Uint64(b[3:]); root != undefined {
				return r.tree(root, 0)
			}
			return nil
		}
	} else {
		var err error
		if index, err = r.placeIndexed(b); err != nil {
			return err
		}
	}
	c.bytes = r.Type.Size
	for _, extent := range c.shape {
		if extent < 1 || c.bytes > maxChunk/extent {
			return errDamaged
		}
		c.bytes *= extent
	}
	if err := index(); err != nil {
		return err
	}
	return c.check(r.Shape)
}

// rewrite is the remedy for forms that are not supported.
const rewrite = `write the file without libver, or rewrite it: python -c "import h5py; old, new = ` +
	`h5py.File('old.h5'), h5py.File('new.h5', 'w'); ` +
	`old.visititems(lambda n, d: new.update({n: d[()]}) if hasattr(d, 'shape') else None)"`

// placeIndexed reads a layout message of version 4 or 5.
func (r *datasetReader) placeIndexed(b []byte) (index func() error, err error) {
	const filtered, single, implicit, fixedArray, extensibleArray, tree = 2, 1, 2, 3, 4, 5
	rank := len(r.Shape)
	if len(b) < 5 || int(b[3]) != rank+1 {
		return nil, errDamaged
	}
	flags, width := b[2], int(b[4])
	at := 5 + (rank+1)*width
	if width < 1 || width > 8 || len(b) < at+1 {
		return nil, errDamaged
	}
	for i := range rank {
		r.chunks.shape = append(r.chunks.shape, int(min(uint(b[5+i*width:5+(i+1)*width]), maxChunk+1)))
	}
	kind, b := b[at], b[at+1:]
	if kind == single {
		return r.single(b, flags&filtered != 0)
	}
	// The address follows the settings of the index. The settings are skipped, because the index
	// contains them too.
	form, known := map[byte]struct {
		settings int // bytes
		read     func(address uint64) error
	}{implicit: {0, r.implicit}, fixedArray: {1, r.fixedArray}, extensibleArray: {5, r.extensibleArray},
		tree: {6, r.chunkTree}}[kind]
	if !known || len(b) < form.settings+8 {
		return nil, errDamaged
	}
	address := le.Uint64(b[form.settings:])
	return func() error {
		if address == undefined {
			return nil // nothing was written
		}
		return form.read(address)
	}, nil
}

// implicit lists chunks that follow each other without an index.
func (r *datasetReader) implicit(address uint64) error {
	const bytes = 32 // of memory for a chunk
	n, most := uint64(1), min(r.file.size/uint64(r.chunks.bytes), r.left/bytes)
	for axis, extent := range r.chunks.shape {
		along := max(1, (r.limits[axis]-1)/uint64(extent)+1)
		if along > most/n {
			return errDamaged
		}
		n *= along
	}
	for i := range n {
		r.add(chunk{address: address + i*uint64(r.chunks.bytes), size: uint32(r.chunks.bytes)}, r.coordinates(i))
	}
	return nil
}

// single reads the address of the only chunk.
func (r *datasetReader) single(b []byte, filtered bool) (index func() error, err error) {
	one := chunk{}
	if filtered {
		if len(b) < 12 {
			return nil, errDamaged
		}
		one.size, one.mask = uint32(min(le.Uint64(b), maxChunk+1)), le.Uint32(b[8:])
		b = b[12:]
	}
	if len(b) < 8 {
		return nil, errDamaged
	}
	one.address = le.Uint64(b)
	return func() error {
		if !filtered {
			one.size = uint32(r.chunks.bytes)
		}
		if one.address != undefined {
			r.chunks.list = append(r.chunks.list, one)
		}
		return nil
	}, nil
}

// tree reads a node of the tree that indexes chunks.
func (r *datasetReader) tree(address uint64, depth int) error {
	const chunkTree = 1
	if depth > maxDepth {
		return errDamaged
	}
	b, err := r.read(address, 24)
	if err != nil {
		return err
	}
	if string(b[:4]) != "TREE" || b[4] != chunkTree {
		return errDamaged
	}
	leaf, n := b[5] == 0, uint64(le.Uint16(b[6:]))
	key := uint64(8 + 8*(len(r.Shape)+1))
	entries, err := r.read(address+24, n*(key+8))
	if err != nil {
		return err
	}
	for i := range n {
		e := entries[i*(key+8):]
		child := le.Uint64(e[key:])
		if !leaf {
			if err := r.tree(child, depth+1); err != nil {
				return err
			}
			continue
		}
		at := make([]uint64, len(r.chunks.shape))
		for axis, extent := range r.chunks.shape {
			offset := le.Uint64(e[8+8*axis:])
			if offset%uint64(extent) != 0 {
				return errDamaged
			}
			at[axis] = offset / uint64(extent)
		}
		r.add(chunk{address: child, size: le.Uint32(e), mask: le.Uint32(e[4:])}, at)
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
